"""What a weights file may say of its network: a header is data, and its author may be a stranger.

It may name a network of the zoo, timm, torchvision or transformers, with options that set sizes.
Whatever could run code, download or read another file (a Python file, a hub's address, a checkpoint,
remote code) has to be typed by the person at the keyboard.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from likewise.errors import InputError, LikewiseError
from likewise.networks.address import PREFIXES, Address, parse
from likewise.networks.zoo.registry import ZOO

_ZOO_TYPED = {"folder"}  # names a folder of files to read
_SIZES = {"classes", "channels", "size"}
OPTIONS = {
    "timm": _SIZES
    | {"num_classes", "in_chans", "img_size", "patch_size", "global_pool", "embed_dim", "depth"}
    | {"depths", "num_heads", "mlp_ratio", "window_size", "qkv_bias", "class_token", "drop_rate"}
    | {"drop_path_rate", "attn_drop_rate", "proj_drop_rate", "output_stride", "act_layer"}
    | {"channels_last", "width", "groups", "width_per_group", "cardinality", "base_width"},
    "torchvision": _SIZES
    | {"num_classes", "dropout", "stochastic_depth_prob", "width_mult", "groups", "aux_logits"}
    | {"width_per_group", "image_size", "patch_size", "attention_dropout", "transform_input"}
    | {"growth_rate", "drop_rate", "init_weights", "zero_init_residual"},
    "hf": _SIZES
    | {"longest", "num_labels", "hidden_size", "num_hidden_layers", "num_attention_heads"}
    | {"intermediate_size", "vocab_size", "max_position_embeddings", "type_vocab_size"}
    | {"hidden_act", "hidden_dropout_prob", "attention_probs_dropout_prob", "image_size"}
    | {"patch_size", "num_channels", "layer_norm_eps", "depths", "embed_dim", "hidden_sizes"},
}
_LARGEST, _DEEPEST = 10**6, 1000
_COUNTS = {"depth", "depths", "num_hidden_layers", "heads", "num_heads", "num_attention_heads"}
_WORD = re.compile(r"[A-Za-z0-9_-]{0,40}")


def stated_network(known: Mapping[str, Any], path: Path) -> Address:
    """The network a header names, where it is one a header may name."""
    name = known["network"]
    if not isinstance(name, str) or len(name) > 1000:
        raise _broken(path)
    try:
        found = parse(name)
    except LikewiseError as error:
        raise InputError(f"{path} names a network that cannot be built: {error}") from error
    if found.prefix not in PREFIXES:
        raise InputError(
            f"{path} belongs to {found.name!r} of a Python file, which is run only where you type "
            f"it. Where you trust it: '{found.prefix}:{found.name}@{path}'."
        )
    if (found.prefix == "timm" and ":" in found.name) or _is_elsewhere(found):
        raise InputError(
            f"{path} belongs to a network that is kept elsewhere ({name!r}), and a file may not "
            f"choose what is fetched or read. Where you trust it: '{name}@{path}'."
        )
    if found.options or found.weights:
        raise _broken(path)
    return Address(found.prefix, found.name, {}, str(path))


def stated_options(
    found: Address,
    known: Mapping[str, Any],
    path: str | Path,
    typed: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The options a header gives a network, or the first that has to be typed instead."""
    options = _options(known, Path(path))
    for name, value in options.items():
        if name in (typed or {}):
            continue  # what is typed counts, whatever the file says
        allowed = name in _choosable(found) if found.prefix in PREFIXES else not _is_word(value)
        if not allowed or not _is_plain(name, value):
            shown = repr(value) if len(repr(value)) <= 40 else f"{repr(value)[:40]}…"
            raise InputError(
                f"{path} asks for the option {name}={shown}, which a file may not choose. Where "
                f"you trust it, type it: '{found.prefix}:{found.name},{name}=VALUE@{path}'."
            )
    return options


def stated_normalisation(known: Mapping[str, Any], path: str | Path) -> tuple[Any, Any]:
    """Mean and deviation a header gives, None where it gives none."""
    mean, std = known.get("mean"), known.get("std")
    if mean is None or std is None:
        return None, None
    for name, values in (("mean", mean), ("std", std)):
        numbers = isinstance(values, list) and all(_is_number(value) for value in values)
        positive = numbers and (name == "mean" or min(values, default=0) > 0)
        if not positive or not 1 <= len(values) <= 4096 or len(values) != len(mean):
            raise InputError(f"{path} gives no usable {name} to normalise images by. Fetch the file again.")
    return mean, std


def _choosable(found: Address) -> set[str]:
    if found.prefix == "zoo":
        return set(ZOO.get(found.name).options) - _ZOO_TYPED
    return OPTIONS[found.prefix]


def _is_elsewhere(found: Address) -> bool:
    """Whether a network of transformers is named by an address or by a path that climbs."""
    climbs = ".." in Path(found.name).parts
    return found.prefix == "hf" and (climbs or "://" in found.name or found.name[:1] == "\\")


def _options(known: Mapping[str, Any], path: Path) -> dict[str, Any]:
    options = known.get("options", {})
    if not isinstance(options, Mapping) or len(options) > 100:
        raise _broken(path)
    return dict(options)


def _broken(path: str | Path) -> InputError:
    return InputError(
        f"the header of {path} is damaged: it does not say which network it belongs to. Name it: 'zoo:resnet20@{path}'."
    )


def _is_word(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and any(map(_is_word, value)))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_plain(name: str, value: Any) -> bool:
    """Whether a value is a truth value, a number of sensible size, a word, or a few of these."""
    if isinstance(value, list):
        return len(value) <= 64 and all(_is_plain(name, part) for part in value)
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, str):
        return _WORD.fullmatch(value) is not None
    return _is_number(value) and abs(value) <= (_DEEPEST if name in _COUNTS else _LARGEST)
