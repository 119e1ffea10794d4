"""Activations from files: npy, npz, safetensors, and torch files of plain tensors. Pickles are refused."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from likewise._base import sealed
from likewise._base.files import reading
from likewise._base.formats.array_files import pickled, read_npy, read_npz
from likewise.errors import InputError, did_you_mean

KINDS = (".npy", ".npz", ".safetensors", ".pt", ".pth", ".th")


def read_arrays(addresses: Iterable[str], *, memory: int | None = None) -> dict[str, Any]:
    """Arrays by name: a file of one array under the file's name, of several under file:key.

    `memory` is the most, in bytes, that a compressed file may become.
    """
    arrays: dict[str, Any] = {}
    for address in addresses:
        for name, array in _read(address, memory).items():
            if name in arrays:
                raise InputError(f"two arrays would be called {name!r}. Rename one of the files.")
            arrays[name] = array
    return arrays


def _read(address: str, memory: int | None) -> dict[str, Any]:
    path, key = _split(address)
    if not _exists(path):
        raise InputError(f"no file {str(path)!r}. Check the path.")
    if path.suffix not in KINDS:
        raise InputError(
            f"{str(path)!r} is not a file of activations ({', '.join(KINDS[:3])}). Save the array with numpy.save."
        )
    arrays = _load(path, memory)
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
    if colon and not _exists(Path(address)) and Path(head).suffix in KINDS:
        return Path(head), key
    return Path(address), ""


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name no file can have
        return False


def _load(path: Path, memory: int | None) -> dict[str, Any]:
    with reading(path, f"cannot read {str(path)!r}: {{reason}}. Save the array again."):
        if path.suffix == ".safetensors":
            return sealed.read(path, required=False)[0]
        if path.suffix in (".pt", ".pth", ".th"):
            return _load_torch(path, memory)
        if path.suffix == ".npz":
            return dict(read_npz(path, memory=memory))
        return {"": read_npy(path)}


def _load_torch(path: Path, memory: int | None) -> dict[str, Any]:
    import torch

    from likewise._base.formats.torch_files import read_torch

    loaded = read_torch(path, pickled(path), memory)
    arrays = loaded if isinstance(loaded, dict) else {"": loaded}
    if not all(isinstance(value, torch.Tensor) for value in arrays.values()):
        raise pickled(path)
    return arrays
