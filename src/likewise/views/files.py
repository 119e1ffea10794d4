"""Activations from files: npy, npz, safetensors, and torch files of plain tensors. Pickles are refused."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from likewise.errors import InputError, did_you_mean

KINDS = (".npy", ".npz", ".safetensors", ".pt", ".pth", ".th")


def read_arrays(addresses: Iterable[str]) -> dict[str, Any]:
    """Arrays by name: a file of one array under the file's name, of several under file:key."""
    found: dict[str, Any] = {}
    for address in addresses:
        for name, array in _read(address).items():
            if name in found:
                raise InputError(f"two arrays would be called {name!r}. Rename one of the files.")
            found[name] = array
    return found


def _read(address: str) -> dict[str, Any]:
    path, key = _split(address)
    if not path.exists():
        raise InputError(f"no file {str(path)!r}. Check the path.")
    if path.suffix not in KINDS:
        raise InputError(
            f"{str(path)!r} is not a file of activations ({', '.join(KINDS[:3])}). "
            "Save the array with numpy.save."
        )
    arrays = _load(path)
    if key:
        if key not in arrays:
            raise InputError(f"no array {key!r} in {str(path)!r}.{did_you_mean(key, arrays)}")
        return {f"{path.stem}:{key}": arrays[key]}
    if len(arrays) == 1:
        return {path.stem: next(iter(arrays.values()))}
    return {f"{path.stem}:{name}": array for name, array in arrays.items()}


def _split(address: str) -> tuple[Path, str]:
    """`file.npz:key` into its parts; a path that exists as it stands is one."""
    head, colon, key = address.rpartition(":")
    if colon and not Path(address).exists() and Path(head).suffix in KINDS:
        return Path(head), key
    return Path(address), ""


def _load(path: Path) -> dict[str, Any]:
    refused = InputError(
        f"{str(path)!r} holds pickled objects, which can run code when read. "
        "Save plain arrays with numpy.save or safetensors."
    )
    if path.suffix == ".safetensors":
        return _load_safetensors(path)
    if path.suffix in (".pt", ".pth", ".th"):
        return _load_torch(path, refused)
    try:
        loaded = np.load(path, allow_pickle=False)
        return dict(loaded) if path.suffix == ".npz" else {"": loaded}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        if "pickle" in str(error).lower():
            raise refused from None
        raise InputError(f"cannot read {str(path)!r}: {error}.") from error


def _load_safetensors(path: Path) -> dict[str, Any]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return dict(load_file(path))
    except (SafetensorError, OSError) as error:
        raise InputError(f"cannot read {str(path)!r}: {error}.") from error


def _load_torch(path: Path, refused: InputError) -> dict[str, Any]:
    import pickle

    import torch

    try:
        loaded = torch.load(path, weights_only=True, map_location="cpu")
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError):
        raise refused from None
    arrays = loaded if isinstance(loaded, dict) else {"": loaded}
    if not all(isinstance(value, torch.Tensor) for value in arrays.values()):
        raise refused
    return arrays
