"""`hf:NAME` and `hf:FOLDER`: networks of transformers, by their name on the hub or from a folder.

Classifiers come as classifiers, everything else as its bare encoder. Text networks get a `tokenize`
of their own; the normalisation of image networks is read from their preprocessor.

A folder or a repository may bring Python code. It is run only where `trust_remote_code=true` was typed;
transformers is never left to ask on standard input.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from likewise._base.compat import prepare_torchvision
from likewise._base.optional import require
from likewise.errors import InputError, MissingDataError
from likewise.networks.headers import declared_normalisation
from likewise.networks.sources.base import SIZES, Loaded, Request, Source, source, weights_only
from likewise.networks.zoo.text import FromTransformers, quiet

_CLASSIFIERS = ("ForSequenceClassification", "ForImageClassification")


_HEADER_OPTIONS = (
    SIZES
    | {"longest", "num_labels", "hidden_size", "num_hidden_layers", "num_attention_heads"}
    | {"intermediate_size", "vocab_size", "max_position_embeddings", "type_vocab_size"}
    | {"hidden_act", "hidden_dropout_prob", "attention_probs_dropout_prob", "image_size"}
    | {"patch_size", "num_channels", "layer_norm_eps", "depths", "embed_dim", "hidden_sizes"}
)


@source("hf")
class Transformers(Source):
    """Networks of a folder or of the hub, with their published weights or without."""

    def build(self, request: Request) -> Loaded:
        prepare_torchvision()
        transformers = require("transformers", extra="language", to=f"load {request.address}")
        if not request.typed:
            request = replace(request, name=_on_this_disk(request))
        if Path(request.name).is_dir() and not (Path(request.name) / "config.json").is_file():
            raise _no_network(request)
        options = dict(request.options)
        longest = options.pop("longest", 128)
        classes = options.pop("classes", None)
        trusted = options.pop("trust_remote_code", False) is True
        how = {"trust_remote_code": trusted} | ({} if request.typed else {"local_files_only": True})
        if classes is not None:
            options |= {"num_labels": classes}
        config = _published(transformers.AutoConfig, request, **how, **options)
        if not trusted:
            _check_kernels(config, request)
        net = _make(_kind(transformers, config, classes), config, request, how)
        if getattr(net, "main_input_name", "") == "pixel_values":
            return Loaded(net, *_normalisation(transformers, request))
        tokenizer = _published(transformers.AutoTokenizer, request, **how)
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        net.tokenize = FromTransformers(tokenizer, longest)
        return Loaded(net)

    def accepts(self, name: str) -> Collection[str]:
        return ("classes",)

    def whole(self, prefix: str, name: str) -> str:
        return f"hf:{Path(name).resolve()}" if Path(name).is_dir() else f"hf:{name}"

    def header_options(self, name: str) -> Collection[str]:
        return _HEADER_OPTIONS

    def is_elsewhere(self, name: str) -> bool:
        """An address of the web, or a path that climbs."""
        return ".." in Path(name).parts or "://" in name or name[:1] == "\\"


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


def _kind(transformers: Any, config: Any, classes: int | None) -> Any:
    name = (config.architectures or [""])[0]
    if name.endswith(_CLASSIFIERS) and hasattr(transformers, name):
        return getattr(transformers, name)
    return transformers.AutoModel if classes is None else (transformers.AutoModelForSequenceClassification)


def _make(kind: Any, config: Any, request: Request, how: dict[str, bool]) -> Any:
    if request.pretrained:
        safe = {"use_safetensors": True, "ignore_mismatched_sizes": True}
        return _published(kind, request, config=config, **safe, **how)
    if hasattr(kind, "from_config"):
        return kind.from_config(config, trust_remote_code=how["trust_remote_code"])
    return kind(config)


def _check_kernels(config: Any, request: Request) -> None:
    """Refuse a config that has compiled code of the hub do its attention."""
    wanted = getattr(config, "_attn_implementation", None)
    if isinstance(wanted, str) and ("/" in wanted or ":" in wanted):
        raise _brings_code(request)


def _normalisation(transformers: Any, request: Request) -> tuple[Any, Any]:
    path = transformers.utils.cached_file(
        request.name,
        "preprocessor_config.json",
        local_files_only=not request.typed,
        _raise_exceptions_for_missing_entries=False,
    )
    preprocessor = json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
    if not preprocessor.get("do_normalize", True):
        return None, None
    return declared_normalisation({"mean": preprocessor.get("image_mean"), "std": preprocessor.get("image_std")}, path)


def _published(kind: Any, request: Request, **options: Any) -> Any:
    try:
        with quiet(import_module("transformers.utils.logging")), weights_only():
            return kind.from_pretrained(request.name, **options)
    except OSError as error:
        raise _no_network(request) from error
    except ValueError as error:
        if "trust_remote_code" in str(error):
            raise _brings_code(request) from error
        raise


def _brings_code(request: Request) -> InputError:
    return InputError(
        f"hf:{request.name} brings code of its own, which is not run unasked. Where you trust it, type "
        f"'hf:{request.name},trust_remote_code=true'."
    )


def _no_network(request: Request) -> MissingDataError:
    return MissingDataError(
        f"{request.address} is neither a folder with a network of transformers nor can it be "
        "downloaded. Give a folder that save_pretrained wrote: hf:PATH."
    )
