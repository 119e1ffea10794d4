"""Networks of transformers, by name or from a folder.

Classifiers come as classifiers, everything else as its bare encoder. Text networks get a `tokenize`
of their own; the normalisation of image networks is read from their preprocessor.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

from likewise._compat import prepare_torchvision
from likewise._optional import require
from likewise.errors import MissingDataError
from likewise.networks.language import FromTransformers, quiet
from likewise.networks.sources import Built, Wish

_CLASSIFIERS = ("ForSequenceClassification", "ForImageClassification")


def from_hf(wish: Wish) -> Built:
    """The network of a folder or of the hub, with its published weights or without."""
    prepare_torchvision()
    transformers = require("transformers", extra="language", to=f"load {wish.address}")
    if Path(wish.name).is_dir() and not (Path(wish.name) / "config.json").is_file():
        raise _no_network(wish)
    options = dict(wish.options)
    longest = options.pop("longest", 128)
    classes = options.pop("classes", None)
    if classes is not None:
        options |= {"num_labels": classes}
    config = _published(transformers.AutoConfig, wish, **options)
    kind = _kind(transformers, config, classes)
    net = _made(kind, config, wish)
    if getattr(net, "main_input_name", "") == "pixel_values":
        return Built(net, *_normalisation(transformers, wish))
    tokenizer = _published(transformers.AutoTokenizer, wish)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    net.tokenize = FromTransformers(tokenizer, longest)
    return Built(net)


def _kind(transformers: Any, config: Any, classes: int | None) -> Any:
    named = (config.architectures or [""])[0]
    if named.endswith(_CLASSIFIERS) and hasattr(transformers, named):
        return getattr(transformers, named)
    return (
        transformers.AutoModel
        if classes is None
        else (transformers.AutoModelForSequenceClassification)
    )


def _made(kind: Any, config: Any, wish: Wish) -> Any:
    if wish.pretrained:
        return _published(
            kind, wish, config=config, use_safetensors=True, ignore_mismatched_sizes=True
        )
    return kind.from_config(config) if hasattr(kind, "from_config") else kind(config)


def _normalisation(transformers: Any, wish: Wish) -> tuple[Any, Any]:
    path = transformers.utils.cached_file(
        wish.name, "preprocessor_config.json", _raise_exceptions_for_missing_entries=False
    )
    stated = json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
    if not stated.get("do_normalize", True):
        return None, None
    return stated.get("image_mean"), stated.get("image_std")


def _published(kind: Any, wish: Wish, **options: Any) -> Any:
    try:
        with quiet(import_module("transformers.utils.logging")):
            return kind.from_pretrained(wish.name, **options)
    except OSError as error:
        raise _no_network(wish) from error


def _no_network(wish: Wish) -> MissingDataError:
    return MissingDataError(
        f"{wish.address} is neither a folder with a network of transformers nor can it be "
        "downloaded. Give a folder that save_pretrained wrote: hf:PATH."
    )
