"""Files of torch (.pt, .pth, .th and their like): tensors are read, a pickle of anything else is not."""

from __future__ import annotations

import pickle
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from likewise._base.files import reading
from likewise._base.formats.array_files import check_room
from likewise.errors import InputError


def read_torch(path: Path, refused: InputError, memory: int | None = None) -> Any:
    """What a file of torch holds, tensors in dictionaries; `refused` is raised for a pickle of more.

    `memory` is the most its tensors may take.
    """
    damaged = f"{path} is not a whole torch file: {{reason}}. Fetch it again."
    with reading(path, damaged):
        size = path.stat().st_size
        if not size:
            raise InputError(f"{path} is empty. Fetch it again.")
        if not _is_pickle(path):
            raise ValueError("it begins like none")
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                need = sum(member.file_size for member in archive.infolist())
                check_room(need, path, on_disk=size, memory=memory)
                _check_sums(archive)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of pickle protocols: errors tell it below
                stored = torch.load(path, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            raise refused from error
        tensors = list(_tensors(stored))
        need = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        check_room(need, path, on_disk=size, memory=memory)
    return stored


def _check_sums(archive: zipfile.ZipFile) -> None:
    """Compare the checksums of an archive, which torch does not look at.

    torch can be told to write none (`set_crc32_options`): then they are wrong for every part.
    """
    wrong = 0
    for member in archive.infolist():
        try:
            with archive.open(member) as file:
                while file.read(2**22):
                    pass
        except zipfile.BadZipFile:
            wrong += 1
    if 0 < wrong < len(archive.infolist()):
        raise ValueError(f"{wrong} of its parts do not match their checksums")


def _tensors(stored: Any, depth: int = 0) -> Iterator[Tensor]:
    """All tensors in nested dictionaries, each of a kind that holds its numbers itself."""
    if isinstance(stored, Tensor):
        # tensors that refer to numbers elsewhere, or to none, have no use as weights or activations
        if stored.layout != torch.strided or stored.is_quantized or stored.is_meta:
            raise ValueError(f"it holds a tensor of layout {stored.layout}, not plain numbers")
        yield stored
    elif isinstance(stored, Mapping) and depth < 8:
        for value in stored.values():
            yield from _tensors(value, depth + 1)


def _is_pickle(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(1) in (b"\x80", b"P")  # a bare pickle, or one in an archive of torch
