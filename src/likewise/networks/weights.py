"""Weights on disk: safetensors, or torch files that hold tensors and nothing else.

Published files wrap the same tensors in different ways: under `state_dict`, with `module.` before
each name, with other names for the same layer. Wrappers are removed; what is left over or
missing is named. Where a file holds nothing but the moving average of the weights, that is taken, with a warning.
How images are normalised is in the header of a file, or in a `models.json` in its folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor, nn

from likewise._base import sealed
from likewise._base.files import is_file, reading
from likewise._base.formats.torch_files import read_torch
from likewise._base.progress import warn
from likewise.errors import InputError, MissingDataError
from likewise.networks.inputs.normalisation import Normalised, unwrapped

TORCH_ENDINGS = (".pt", ".pth", ".th", ".bin", ".ckpt", ".pth.tar")
_WRAPPERS = ("state_dict", "model_state_dict", "model", "net", "network", "weights", "params", "module")
_AVERAGES = ("state_dict_ema", "ema_state_dict", "model_ema", "ema", "params_ema", "ema_model")
_COUNTER = "num_batches_tracked"  # older files lack it, and nothing depends on it
_PREFIXES = ("module.", "_orig_mod.", "net.", "model.")
State = dict[str, Tensor]


def read(path: str | Path) -> State:
    """The tensors of a weights file by name."""
    path = Path(path).expanduser()
    if not is_file(path):
        raise not_there(path)
    if path.suffix == ".safetensors":
        with reading(path, f"{path} is not a whole safetensors file. Fetch it again."):
            sealed.verify(path)
            return dict(load_file(path))
    if not path.name.endswith(TORCH_ENDINGS):
        raise InputError(
            f"{path.name} is no weights file: it ends in {path.suffix!r}. Give .safetensors, or "
            f"{', '.join(TORCH_ENDINGS)} holding tensors alone."
        )
    refused = InputError(
        f"{path.name} is a pickle of more than tensors, and nothing is unpickled here. Where "
        "you trust it, save its tensors: safetensors.torch.save_file(net.state_dict(), "
        f"'{path.stem}.safetensors')."
    )
    return _tensors(read_torch(path, refused), path)


def is_weights_name(text: str) -> bool:
    """Whether a text is the path of a weights file: one that exists, or that ends like one.

    >>> is_weights_name("runs/model.pth.tar"), is_weights_name("step1000")
    (True, False)
    """
    return text.endswith((".safetensors", *TORCH_ENDINGS)) or is_file(Path(text).expanduser())


def not_there(path: Path) -> MissingDataError:
    """The error for a path where no weights are."""
    return MissingDataError(f"there are no weights at {path}. Give the path of a file.")


def _tensors(stored: Any, path: Path) -> State:
    plain = _unwrapped(stored, _WRAPPERS)
    parts = stored if isinstance(stored, Mapping) else {}
    averages = {name: _unwrapped(parts.get(name), (*_WRAPPERS, "shadow")) for name in _AVERAGES}
    name, average = next(((name, state) for name, state in averages.items() if state), ("", {}))
    if plain and average:
        warn(f"{path.name} holds weights, which are taken, and their moving average, {name!r}, which is not.")
    elif average:
        warn(f"{path.name} holds no weights but their moving average, {name!r}, which is taken.")
    elif not plain:
        raise InputError(f"{path.name} holds no tensors by name. Save a state_dict.")
    return plain or average


def _unwrapped(stored: Any, wrappers: Sequence[str]) -> State:
    """The tensors by name that are in a mapping, or in the mapping a wrapper's name leads to; {} where none are."""
    if not isinstance(stored, Mapping):
        return {}
    for wrapper in wrappers:
        inside = _unwrapped(stored.get(wrapper), wrappers)
        if inside:
            return inside
    return {str(key): value for key, value in stored.items() if isinstance(value, Tensor)}


def fit(net: nn.Module, state: State, *, label: str, renames: Sequence[tuple[str, str]] = ()) -> None:
    """Put tensors into a network, or name the ones that do not fit."""
    here = unwrapped(net).state_dict()
    there = _renamed(state, here, renames)
    missing = [key for key in here if key not in there and not key.endswith(_COUNTER)]
    extra = [key for key in sorted(there) if key not in here and not key.endswith(_COUNTER)]
    other = [
        f"{key} ({_shape(there[key])} there, {_shape(here[key])} here)"
        for key in here
        if key in there and there[key].shape != here[key].shape
    ]
    faults = [
        f"{what} {_some(keys)}"
        for what, keys in (("missing", missing), ("unexpected", extra), ("of another shape", other))
        if keys
    ]
    if faults:
        raise InputError(
            f"the weights of {label} are of another architecture: {'; '.join(faults)}. Name the "
            "architecture they were made for, with its options such as classes=."
        )
    unwrapped(net).load_state_dict(there, strict=False)


def _renamed(state: State, target: State, renames: Sequence[tuple[str, str]]) -> State:
    keys = {key: key for key in state}
    foreign = [prefix for prefix in _PREFIXES if not any(key.startswith(prefix) for key in target)]
    while prefix := next((one for one in foreign if all(key.startswith(one) for key in keys.values())), None):
        keys = {key: now.removeprefix(prefix) for key, now in keys.items()}
    for pattern, replacement in renames:
        keys = {key: re.sub(pattern, replacement, now) for key, now in keys.items()}
    return {keys[key]: tensor for key, tensor in state.items()}


def split_normalisation(state: State) -> tuple[State, dict[str, Any]]:
    """The weights of a network, and the mean and deviation of the `Normalised` around it where both were saved."""
    for key in state:
        prefix = key.removesuffix("mean")
        own = {name: state.get(f"{prefix}{name}") for name in ("mean", "std")}
        rest = {name: value for name, value in state.items() if name not in (f"{prefix}mean", f"{prefix}std")}
        if prefix != key and own["std"] is not None and all(name.startswith(f"{prefix}net.") for name in rest):
            return rest, {name: value.flatten().tolist() for name, value in own.items() if value is not None}
    return state, {}


def _some(keys: list[str], most: int = 3) -> str:
    rest = len(keys) - most
    return ", ".join(keys[:most]) + (f" and {rest} more" if rest > 0 else "")


def _shape(tensor: Tensor) -> str:
    return " × ".join(str(size) for size in tensor.shape) or "a number"


def facts(path: str | Path) -> dict[str, Any]:
    """What is known of a weights file: network, options, classes, normalisation (`mean`, `std`)."""
    path = Path(path).expanduser()
    if path.suffix == ".safetensors" and is_file(path):
        with reading(path, f"{path} is not a whole safetensors file. Fetch it again."):
            with safe_open(path, framework="pt") as file:
                header = (file.metadata() or {}).get("likewise")
            if header:
                return _mapping(json.loads(header))
    models = path.parent / "models.json"
    if not is_file(models):
        return {}
    with reading(models, f"{models} is no list of models: {{reason}}. Repair or remove it."):
        content = _mapping(json.loads(models.read_text(encoding="utf-8")))
        entry = _mapping(content.get("models", {})).get(path.stem)
        if entry is None:
            return {}
        entry = _mapping(entry)
        normalisation = _mapping(entry.get("normalisation") or content.get("normalisation") or {})
        dataset = entry.get("dataset") or content.get("dataset")
        return normalisation | ({"dataset": dataset} if dataset else {})


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"a {type(value).__name__} stands where names and values should")
    return value


def save(net: nn.Module, path: str | Path, *, about: Mapping[str, Any] | None = None) -> None:
    """Write a network's weights and how its images are normalised: whole or not at all."""
    header = dict(about or {})
    whole = unwrapped(net, keep_normalisation=True)
    if isinstance(whole, Normalised):
        header |= {"mean": whole.mean.flatten().tolist(), "std": whole.std.flatten().tolist()}
    sealed.write(path, unwrapped(net).state_dict(), {"likewise": json.dumps(header)})
