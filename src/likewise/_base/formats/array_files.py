"""Arrays from npy and npz files: what a header claims is checked before anything is read.

numpy believes a header: one that claims terabytes is given them, and one that claims too little gives
part of the values. Here the claim has to agree with the size of the file, an archive is weighed before
it is unpacked, its checksums are read to the end, and pickled objects are refused.
"""

from __future__ import annotations

import math
import os
import struct
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from likewise._base.arrays import Array
from likewise._base.machine import free_memory
from likewise.errors import InputError

_CHUNK = 2**24
_USUAL, _RATIO = 2**28, 50  # bytes that any archive may unpack to, and how many times its size a larger one may
_HEADERS: dict[tuple[int, int], Any] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_npy(path: str | os.PathLike[str]) -> Array:
    """The array of an npy file. Call it within `reading`, which names the file in every error."""
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        check_room(size, path, on_disk=size)
        return _array(file, size, path)


def read_npz(
    path: str | os.PathLike[str], names: Iterable[str] | None = None, memory: int | None = None
) -> dict[str, Array]:
    """The arrays of an npz file by name, or some of them; `memory` is the most they may take."""
    with zipfile.ZipFile(path) as archive:
        members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
        first = min(
            (member.header_offset for member in members.values()), default=1
        )  # zipfile takes it for another file
        if first or _announced(path, archive) not in (len(members), 0xFFFF):  # the latter where there are too many
            raise ValueError("its list of arrays is empty, not whole or does not belong to it")
        names = list(members) if names is None else [name for name in names if name in members]
        need = sum(members[name].file_size for name in names)
        check_room(need, path, on_disk=Path(path).stat().st_size, memory=memory)
        arrays = {}
        for name in names:
            with archive.open(members[name]) as file:
                arrays[name] = _array(file, members[name].file_size, path)
                file.read(1)  # past the end, which is where the checksum is compared
    return arrays


def is_npz(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins like an archive."""
    with Path(path).open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _announced(path: str | os.PathLike[str], archive: zipfile.ZipFile) -> int:
    """How many members the end of an archive announces, which zipfile does not compare with what it finds."""
    end = struct.Struct("<4s4H2LH")
    with Path(path).open("rb") as file:
        file.seek(-end.size - len(archive.comment), os.SEEK_END)
        return int(end.unpack(file.read(end.size))[4])


def check_room(need: int, path: str | os.PathLike[str], *, on_disk: int, memory: int | None = None) -> None:
    """Refuse what would not fit: into free memory, or where it grows when unpacked, into the limit.

    Where no limit is given, an archive may not unpack to many times its size.
    """
    free = free_memory()
    if need > free:
        room = f"{_size(free)} are free"
    elif memory is not None and need > max(memory, on_disk):
        room = f"the limit is {_size(memory)}"
    elif memory is None and need > _USUAL + _RATIO * on_disk:
        raise InputError(
            f"{str(path)!r} has {_size(on_disk)} and would unpack to {_size(need)}, more than such a file holds. "
            "Save it without compression where you trust it."
        )
    else:
        return
    raise InputError(f"{str(path)!r} would take {_size(need)} of memory, and {room}. Save fewer rows or columns.")


def pickled(path: str | os.PathLike[str]) -> InputError:
    """The error for a file that holds more than plain arrays."""
    return InputError(
        f"{str(path)!r} holds pickled objects, which can run code when read. "
        "Save plain arrays with numpy.save or safetensors."
    )


def _array(file: Any, size: int, path: str | os.PathLike[str]) -> Array:
    """The array of a buffered file, which can peek."""
    if file.peek(1)[:1] == b"\x80":  # how every pickle of the last twenty years begins
        raise pickled(path)
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"it is of version {version} of the format, with names for its columns")
    shape, by_column, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise pickled(path)
    need = _bytes_of(shape, dtype)
    if need != size - file.tell():
        raise ValueError(
            f"its header claims an array {shape} of {dtype} ({need:,} bytes), and {size - file.tell():,} bytes follow"
        )
    raw = np.empty(need, dtype=np.uint8)
    for start_at in range(0, need, _CHUNK):
        chunk = file.read(min(_CHUNK, need - start_at))
        raw[start_at : start_at + len(chunk)] = np.frombuffer(chunk, dtype=np.uint8)
        if len(chunk) < min(_CHUNK, need - start_at):
            raise ValueError("it ends too early")
    values = np.empty(shape, dtype) if not need else raw.view(dtype)
    values = values.reshape(shape, order="F" if by_column else "C")
    return values if dtype.isnative else values.astype(dtype.newbyteorder("="))


def _bytes_of(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    if dtype.kind not in "biufcUS":
        raise ValueError(f"it holds {dtype}, not numbers")
    if any(side < 0 for side in shape):
        raise ValueError(f"its header claims the shape {shape}")
    return math.prod(shape) * dtype.itemsize


def _size(count: int) -> str:
    for unit, factor in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:,} bytes"
