"""Networks of transformers, by name or from a folder.

Classifiers come as classifiers, everything else as its bare encoder. Text networks get a `tokenize`
of their own; the normalisation of image networks is read from their preprocessor.

A folder or a repository may bring Python code. It is run only where `trust_remote_code=true` was typed;
transformers is never left to ask on standard input.
"""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from likewise._base.compat import prepare_torchvision
from likewise._base.optional import require
from likewise.errors import InputError, MissingDataError
from likewise.networks.headers import stated_normalisation
from likewise.networks.sources.base import Built, Wish, weights_only
from likewise.networks.zoo.text import FromTransformers, quiet

_CLASSIFIERS = ("ForSequenceClassification", "ForImageClassification")


def from_hf(wish: Wish) -> Built:
    """The network of a folder or of the hub, with its published weights or without."""
    prepare_torchvision()
    transformers = require("transformers", extra="language", to=f"load {wish.address}")
    if not wish.typed:
        wish = replace(wish, name=_here(wish))
    if Path(wish.name).is_dir() and not (Path(wish.name) / "config.json").is_file():
        raise _no_network(wish)
    options = dict(wish.options)
    longest = options.pop("longest", 128)
    classes = options.pop("classes", None)
    trusted = options.pop("trust_remote_code", False) is True
    how = {"trust_remote_code": trusted} | ({} if wish.typed else {"local_files_only": True})
    if classes is not None:
        options |= {"num_labels": classes}
    config = _published(transformers.AutoConfig, wish, **how, **options)
    if not trusted:
        _check_kernels(config, wish)
    kind = _kind(transformers, config, classes)
    net = _made(kind, config, wish, how)
    if getattr(net, "main_input_name", "") == "pixel_values":
        return Built(net, *_normalisation(transformers, wish))
    tokenizer = _published(transformers.AutoTokenizer, wish, **how)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    net.tokenize = FromTransformers(tokenizer, longest)
    return Built(net)


def _here(wish: Wish) -> str:
    """The folder of a network that a file named: one on this disk, or what was downloaded before."""
    if Path(wish.name).is_dir():
        return wish.name
    hub = import_module("huggingface_hub")
    try:
        found = hub.try_to_load_from_cache(wish.name, "config.json")
    except ValueError:  # no name of the hub
        found = None
    if isinstance(found, str):
        return str(Path(found).parent)
    raise MissingDataError(
        f"{wish.address} belongs to hf:{wish.name}, which is not on this disk, and a file may not "
        f"choose what is fetched. Where you trust it: 'hf:{wish.name}@{wish.address}'."
    )


def _kind(transformers: Any, config: Any, classes: int | None) -> Any:
    named = (config.architectures or [""])[0]
    if named.endswith(_CLASSIFIERS) and hasattr(transformers, named):
        return getattr(transformers, named)
    return transformers.AutoModel if classes is None else (transformers.AutoModelForSequenceClassification)


def _made(kind: Any, config: Any, wish: Wish, how: dict[str, bool]) -> Any:
    if wish.pretrained:
        safe = {"use_safetensors": True, "ignore_mismatched_sizes": True}
        return _published(kind, wish, config=config, **safe, **how)
    if hasattr(kind, "from_config"):
        return kind.from_config(config, trust_remote_code=how["trust_remote_code"])
    return kind(config)


def _check_kernels(config: Any, wish: Wish) -> None:
    """Refuse a config that has compiled code of the hub do its attention."""
    wanted = getattr(config, "_attn_implementation", None)
    if isinstance(wanted, str) and ("/" in wanted or ":" in wanted):
        raise _brings_code(wish)


def _normalisation(transformers: Any, wish: Wish) -> tuple[Any, Any]:
    path = transformers.utils.cached_file(
        wish.name,
        "preprocessor_config.json",
        local_files_only=not wish.typed,
        _raise_exceptions_for_missing_entries=False,
    )
    stated = json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
    if not stated.get("do_normalize", True):
        return None, None
    return stated_normalisation({"mean": stated.get("image_mean"), "std": stated.get("image_std")}, path)


def _published(kind: Any, wish: Wish, **options: Any) -> Any:
    try:
        with quiet(import_module("transformers.utils.logging")), weights_only():
            return kind.from_pretrained(wish.name, **options)
    except OSError as error:
        raise _no_network(wish) from error
    except ValueError as error:
        if "trust_remote_code" in str(error):
            raise _brings_code(wish) from error
        raise


def _brings_code(wish: Wish) -> InputError:
    return InputError(
        f"hf:{wish.name} brings code of its own, which is not run unasked. Where you trust it, type "
        f"'hf:{wish.name},trust_remote_code=true'."
    )


def _no_network(wish: Wish) -> MissingDataError:
    return MissingDataError(
        f"{wish.address} is neither a folder with a network of transformers nor can it be "
        "downloaded. Give a folder that save_pretrained wrote: hf:PATH."
    )
