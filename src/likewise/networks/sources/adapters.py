"""`hf:ADAPTER` and `hf:BASE+ADAPTER`: adapters of PEFT, such as LoRAs, on the network they were trained with.

An adapter names its base in `adapter_config.json`; the second form puts it on another copy of it. The base is built
with the head it was trained with, since the names of an adapter's tensors have it. A head that predicts words is then
left out again, as of every network of transformers.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise._base.files import reading
from likewise._base.optional import require
from likewise.errors import InputError, MissingDataError, first_line, quoted_list
from likewise.networks import weights
from likewise.networks.inputs.normalisation import unwrapped
from likewise.networks.sources.base import Request, weights_only
from likewise.networks.sources.repository import Repository

_FACTS = "adapter_config.json"
_FILES = ("adapter_model.safetensors", "adapter_model.bin")
_HEADS = {
    "CAUSAL_LM": "AutoModelForCausalLM",
    "SEQ_2_SEQ_LM": "AutoModelForSeq2SeqLM",
    "SEQ_CLS": "AutoModelForSequenceClassification",
    "TOKEN_CLS": "AutoModelForTokenClassification",
    "QUESTION_ANS": "AutoModelForQuestionAnswering",
}
_PREFIX = "base_model.model."  # of all tensors of an adapter


@dataclass(frozen=True)
class Adapter:
    """An adapter and what its configuration says; `base` is the folder or name of the network it belongs to."""

    repository: Repository
    base: str
    facts: Mapping[str, Any]

    @property
    def address(self) -> str:
        """Where both are found from anywhere."""
        places = (Path(place).expanduser() for place in (self.base, self.repository.name))
        base, adapter = (str(place.resolve()) if place.is_dir() else str(place) for place in places)
        return f"hf:{base}+{adapter}"

    def kind(self, transformers: Any, config: Any) -> Any:
        """The class of transformers that the adapter was trained with; refused for a base of another class."""
        name = _HEADS.get(str(self.facts.get("task_type")))
        name = name or (self.facts.get("auto_mapping") or {}).get("base_model_class") or "AutoModel"
        kind = getattr(transformers, name, transformers.AutoModel)
        is_auto = hasattr(kind, "_model_mapping")
        if not (type(config) in kind._model_mapping if is_auto else isinstance(config, kind.config_class)):
            raise self._unfit(type(config).__name__, f"it belongs to a {name}")
        return kind

    @property
    def classes(self) -> int | None:
        """How many classes the head has that came with the adapter, None where none did."""
        heads = {"classifier", "score"} & set(self.facts.get("modules_to_save") or ())
        rows = [
            len(value)
            for key, value in (self.tensors() if heads else {}).items()
            if value.ndim == 2 and heads & set(key.split(".")) and not key.endswith("dense.weight")
        ]
        return rows[-1] if rows else None

    def tensors(self) -> dict[str, Any]:
        """The tensors of the adapter by name."""
        path = next(filter(None, map(self.repository.file, _FILES)), None)
        if path is None:
            raise MissingDataError(
                f"{self.repository.address} has an {_FACTS} but no weights that can be read ({' or '.join(_FILES)}). "
                "Fetch them."
            )
        return weights.read(path)

    def put_on(self, net: Any) -> Any:
        """The network with the adapter in its layers; refused where that does not fit."""
        peft: Any = require("peft", extra="adapters", to=f"load {self.repository.address}")
        kind = str(self.facts.get("peft_type"))
        originals = set(net.state_dict())
        with weights_only(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Found missing adapter keys")  # refused below
            try:
                adapted = peft.PeftModel.from_pretrained(net, self.repository.name, **self.repository.file_options)
            except (ValueError, RuntimeError) as error:
                heading, _, details = str(error).partition(":\n")  # torch lists what does not fit below a heading
                raise self._unfit(type(net).__name__, first_line(ValueError(details or heading))) from error
        inside = unwrapped(adapted)
        if inside is adapted:
            raise InputError(
                f"{self.repository.address} is an adapter of the kind {kind}, which changes the inputs and no layers. "
                "Load it with peft and pass the module, or give a LoRA."
            )
        needed = peft.get_peft_model_state_dict(adapted, save_embedding_layers=False)
        self._check_names({key.removeprefix(_PREFIX) for key in needed}, originals, type(net).__name__)
        return inside

    def _check_names(self, needed: set[str], originals: set[str], kind: str) -> None:
        """Refuse an adapter with more or fewer weights than its layers have; one of words brings those of its base."""
        names = {key.removeprefix(_PREFIX) for key in self.tensors()}
        surplus = sorted(name for name in names - needed if name.replace(".base_layer.", ".") not in originals)
        if surplus:
            raise self._unfit(kind, f"there is no place for {quoted_list(surplus)}")
        if missing := sorted(needed - names):
            raise InputError(
                f"the adapter {self.repository.name} lacks weights that its {_FACTS} asks for: {quoted_list(missing)}. "
                "Fetch it again."
            )

    def _unfit(self, kind: str, reason: str) -> InputError:
        return InputError(
            f"the adapter {self.repository.name} does not fit the {kind} of {self.base}: {reason}. Name the "
            f"network it was trained with: 'hf:BASE+{self.repository.name}'."
        )


def find_adapter(request: Request, revision: str | None, subfolder: str | None) -> Adapter | None:
    """The adapter that an address names, None where it names a whole network."""
    base, plus, name = request.name.rpartition("+")
    if not plus or Path(request.name).expanduser().is_dir():
        base, name = "", request.name
    folder = Path(name).expanduser()
    options = {"subfolder": subfolder} if subfolder else {}
    options |= {"revision": revision} if revision and not folder.is_dir() else {}
    repository = Repository(str(folder) if folder.is_dir() else name, request.address, options, None)
    path = _config_of(repository, asked=bool(base), typed=request.typed)
    if path is None:
        if base:
            raise MissingDataError(
                f"there is no adapter at {name!r}: it has no {_FACTS}, nor can one be downloaded. Give the folder that "
                "save_pretrained of peft wrote."
            )
        return None
    with reading(path, f"{path} is damaged: {{reason}}. Fetch it again."):
        facts = dict(json.loads(Path(path).read_text(encoding="utf-8")))
    base = base or str(facts.get("base_model_name_or_path") or "")
    if not base:
        raise InputError(f"{request.address} does not say which network it belongs to. Name it: 'hf:BASE+{name}'.")
    return Adapter(repository, base, facts)


def _config_of(repository: Repository, *, asked: bool, typed: bool) -> str | None:
    """The path of an adapter's configuration; on the hub it is looked for where there is no network's."""
    if Path(repository.name).is_dir():
        path = Path(repository.name) / repository.options.get("subfolder", "") / _FACTS
        return str(path) if path.is_file() else None
    if not typed:  # what a file names is not fetched
        return None
    try:
        return repository.file(_FACTS) if asked or repository.file("config.json") is None else None
    except OSError:  # no repository of that name, which is said where its network is looked for
        return None
