"""Where the files of a network of transformers are: a folder, or a name on the hub at one commit.

Config, weights, tokenizer and processor are all read from there, so that a revision or a sub-folder applies to each
of them. Weights are read as tensors alone, whatever their file. Code that a repository brings is run only where
`trust_remote_code=true` was typed; transformers is never left to ask on standard input.
"""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from likewise._base.files import reading
from likewise.errors import InputError, MissingDataError, MissingDependencyError, did_you_mean, first_line
from likewise.networks.inputs.feature_extractors import quiet
from likewise.networks.sources.base import Request, weights_only

_COMMIT = re.compile(r"/snapshots/([0-9a-f]{7,64})(/|$)")
_ENCODER = "0_Transformer"  # where older versions of sentence-transformers keep the encoder
_PROCESSORS = ("preprocessor_config.json", "processor_config.json")
_TOKENIZERS = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json", "spiece.model", "tokenizer.model")


@dataclass(frozen=True)
class Repository:
    """A folder or a name of the hub, the `options` it is read with, and the commit it is at, where there is one."""

    name: str
    address: str
    options: Mapping[str, Any]
    commit: str | None

    @property
    def trusted(self) -> bool:
        """Whether code it brings may be run."""
        return bool(self.options["trust_remote_code"])

    def read(self, kind: Any, missing: Any = None, **options: Any) -> Any:
        """What one of the classes of transformers reads from there; `missing` is raised where nothing is."""
        try:
            with quiet(import_module("transformers.utils.logging")), weights_only():
                return kind.from_pretrained(self.name, **self.options, **options)
        except ImportError as error:
            raise MissingDependencyError(
                f"{self.address} needs a library that is not installed: {first_line(error)}."
            ) from error
        except OSError as error:
            raise missing or no_network(self.address) from error
        except pickle.UnpicklingError as error:
            raise InputError(
                f"the weights of {self.address} are a pickle of more than tensors, and nothing is unpickled here. "
                "Where you trust them, load them with transformers and save_pretrained them anew."
            ) from error
        except ValueError as error:
            if "trust_remote_code" in str(error):
                raise brings_code(self.name) from error
            raise

    def weights(self, kind: Any, config: Any, **options: Any) -> tuple[Any, Mapping[str, Any]]:
        """A network with its weights (safetensors where there are such), and which of them did not fit."""
        missing = MissingDataError(
            f"{self.address} has a config.json but no weights that can be read (model.safetensors or "
            "pytorch_model.bin, whole or in shards), nor can they be downloaded. Fetch them, or take it untrained: "
            f"'{self.address},pretrained=false'."
        )
        safe = {"ignore_mismatched_sizes": True, "output_loading_info": True}
        net, info = self.read(kind, missing, config=config, **safe, **options)
        return net, info

    def tokenizer(self, other: str | None = None) -> Any:
        """The tokenizer, or that of another folder or name; None where there are no files of one."""
        auto = import_module("transformers").AutoTokenizer
        if other is not None:
            here = {"trust_remote_code": False, "local_files_only": self.options.get("local_files_only", False)}
            elsewhere = Repository(str(Path(other).expanduser()) if other else "", f"tokenizer={other}", here, None)
            missing = MissingDataError(f"there is no tokenizer at {other!r}. Give a folder or a name.")
            try:
                exists = other != "" and any(elsewhere.file(name) for name in _TOKENIZERS)
            except OSError:  # no repository of that name
                exists = False
            if not exists:
                raise missing
            return elsewhere.read(auto, missing)
        for repository in (self, self.root):
            if any(repository.file(name) for name in _TOKENIZERS):
                return repository.read(auto)
        return None

    def facts(self, kind: Any, method: str) -> tuple[Repository, Mapping[str, Any]] | None:
        """What the file of a processor says, whichever it is, and where it was found; None where there is none."""
        for repository in (self, self.root):
            try:
                return repository, getattr(kind, method)(repository.name, **repository.file_options)[0]
            except OSError:
                repository.check_whole(_PROCESSORS)
        return None

    def check_whole(self, names: tuple[str, ...]) -> None:
        """Refuse files that are there but damaged."""
        for path in filter(None, map(self.file, names)):
            with reading(Path(path), f"{path} is damaged: {{reason}}. Fetch it again."):
                json.loads(Path(path).read_text(encoding="utf-8"))

    @property
    def root(self) -> Repository:
        """The same without its sub-folder: tokenizers and processors often lie above the weights."""
        return replace(self, options={name: value for name, value in self.options.items() if name != "subfolder"})

    def file(self, name: str) -> str | None:
        """The path of one of its files, None where it has no such file."""
        options = {"_raise_exceptions_for_missing_entries": False, **self.file_options}
        path: str | None = import_module("transformers").utils.cached_file(self.name, name, **options)
        return path

    @property
    def file_options(self) -> dict[str, Any]:
        """The options that files are read with."""
        return {name: value for name, value in self.options.items() if name != "trust_remote_code"}


def locate(request: Request, revision: str | None, subfolder: str | None, trusted: bool) -> Repository:
    """The repository a request means, at the commit it is at now."""
    options: dict[str, Any] = {"trust_remote_code": trusted} | ({"subfolder": subfolder} if subfolder else {})
    folder = Path(request.name).expanduser() if request.typed else Path(_on_this_disk(request))
    if folder.is_dir():
        if revision is not None:
            raise InputError(
                f"{folder} is a folder, which has no revisions such as {revision!r}. Name the folder of that "
                "revision, or a network of the hub."
            )
        if not (folder / (subfolder or "") / "config.json").is_file():
            if subfolder is None and (folder / _ENCODER / "config.json").is_file():
                return locate(request, revision, _ENCODER, trusted)
            raise no_network(request.address)
        options |= {} if request.typed else {"local_files_only": True}
        return Repository(str(folder), request.address, options, _commit(folder.resolve()))
    options |= {"revision": revision} if revision else {}
    here = Repository(request.name, request.address, options, None)
    try:
        config = here.file("config.json")
    except OSError as error:
        raise _no_revision(request, revision) from error
    if config is None:
        raise _no_revision(request, revision)
    commit = _commit(Path(config))
    return replace(here, options=options | ({"revision": commit} if commit else {}), commit=commit)


def _commit(path: Path) -> str | None:
    """The commit whose files lie at a path of a hub's cache."""
    match = _COMMIT.search(path.as_posix())
    return None if match is None else match[1]


def _on_this_disk(request: Request) -> str:
    """The folder of a network that a file named: one on this disk, or what was downloaded before."""
    if Path(request.name).is_dir():
        return request.name
    hub = import_module("huggingface_hub")
    try:
        config = hub.try_to_load_from_cache(request.name, "config.json")
    except ValueError:  # no name of the hub
        config = None
    if isinstance(config, str):
        return str(Path(config).parent)
    raise MissingDataError(
        f"{request.address} belongs to hf:{request.name}, which is not on this disk, and a file may not "
        f"choose what is fetched. Where you trust it: 'hf:{request.name}@{request.address}'."
    )


def _no_revision(request: Request, revision: str | None) -> MissingDataError:
    if revision is None:
        return no_network(request.address)
    revisions = _local_revisions(request.name)
    here = f" On this disk are {', '.join(revisions)}." if revisions else ""
    return MissingDataError(
        f"revision {revision!r} of {request.name} is not on this disk and cannot be downloaded."
        f"{did_you_mean(revision, revisions)}{here} Name one that the repository has: 'hf:{request.name}@main'."
    )


def _local_revisions(name: str) -> list[str]:
    """The revisions of a network that were downloaded before."""
    hub = import_module("huggingface_hub")
    refs = (
        Path(hub.constants.HF_HUB_CACHE) / hub.file_download.repo_folder_name(repo_id=name, repo_type="model") / "refs"
    )
    return sorted(path.relative_to(refs).as_posix() for path in refs.rglob("*") if path.is_file())[:20]


def brings_code(name: str) -> InputError:
    """The refusal of code that nobody asked for."""
    return InputError(
        f"hf:{name} brings code of its own, which is not run unasked. Where you trust it, type "
        f"'hf:{name},trust_remote_code=true'."
    )


def no_network(address: str) -> MissingDataError:
    """The error for a place where no network is."""
    return MissingDataError(
        f"{address} is neither a folder with a network of transformers nor can it be "
        "downloaded. Give a folder that save_pretrained wrote: hf:PATH."
    )
