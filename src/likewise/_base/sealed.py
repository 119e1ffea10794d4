"""Safetensors files with a checksum over all they hold: whole or absent, and damage is found when they are read.

`write` and `Stream` write them, `verify` checks them; the values are read by safetensors, which maps a file rather
than reading it. A file that grows leaves room for its header at the start (the format allows spaces behind the
header), so that finishing it is writing the header and renaming: nothing is copied, and a file under its final name
is always whole.

The checksum is the CRC-32 of the values and of the header without it, among the metadata. A second word there says
that there is one, so that damage to the checksum itself does not pass for a file without. Files of other programs
have none and are read as they are; the BLAKE2 hashes that earlier versions wrote into files of weights and matrices
are still checked.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from likewise._base.arrays import Array
from likewise._base.files import check_regular, give_name, make_folder, part_name, remove_leftovers, write_guard
from likewise._base.formats.records import parse
from likewise._base.hashing import as_bytes
from likewise._base.manifest import SEALED
from likewise.errors import StoreError

ENDING = ".safetensors"
Content = bytes | memoryview
_CHECKSUM, _MARK, _OLD_SEAL = "checksum", "sealed", "seal"
_METADATA = "__metadata__"
_LONGEST_HEADER = 100_000_000  # what safetensors itself accepts
_PAGE = 4096  # headers are a multiple of it, so that values start on a page
_ENTRY = 250  # bytes of a header that one tensor may need beside its name
_CHUNK = 2**22
_BACKLOG = 2**26  # bytes that may wait for the disk while the work goes on
_DTYPES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "complex64": "C64",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint64": "U64",
    "uint32": "U32",
    "uint16": "U16",
    "uint8": "U8",
    "bool": "BOOL",
}


def write(
    path: str | os.PathLike[str],
    tensors: Mapping[str, Tensor | Array],
    metadata: Mapping[str, str],
    *,
    ending: str = ENDING,
) -> Path:
    """Write tensors to a file whose ending may be left out, over what is there. Returns its path."""
    target = target_of(path, ending)
    make_folder(target.parent)
    remove_leftovers(target.parent)
    stream = Stream(target.parent, metadata, Writer(target), names=list(tensors))
    try:
        for name in sorted(tensors, key=lambda name: -tensors[name].itemsize):  # values on their own boundaries
            values = tensors[name]
            stream.append(name, values if isinstance(values, Tensor) else torch.from_numpy(np.array(values, order="C")))
        stream.finish(target)
    except BaseException:
        stream.abort()
        raise
    return target


def target_of(path: str | os.PathLike[str], ending: str = ENDING) -> Path:
    """The path of a file whose ending may be left out."""
    return Path(path).with_name(f"{Path(path).name.removesuffix(ending)}{ending}")


def verify(path: str | os.PathLike[str], *, required: bool = False) -> dict[str, str]:
    """The metadata of a file that is as it was written, for which it is read once.

    A file without a checksum passes unless one is `required`. Call it within `reading`, which names the file.
    """
    check_regular(path, StoreError)
    with Path(path).open("rb") as file:
        start, header = _read_header(file)
        metadata: dict[str, str] = header.get(_METADATA, {})
        checksum, old_seal = str(metadata.get(_CHECKSUM, "")), str(metadata.get(_OLD_SEAL, ""))
        if len(old_seal) == 64:
            intact = old_seal == _old_seal(start.replace(old_seal.encode(), b"0" * 64), file)
        elif re.fullmatch("[0-9a-f]{8}", checksum):
            del metadata[_CHECKSUM]
            intact = checksum == _checksum(_crc32(file), header)
        else:
            intact = not required and _MARK not in metadata
    if not intact:
        raise ValueError("it does not match its checksum")
    return _without_seal(metadata)


def read(path: str | os.PathLike[str], *, required: bool = True) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a file that is as it was written, mapped rather than read, and its metadata."""
    metadata = verify(path, required=required)
    return load_file(path), metadata


def read_metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    """The metadata of a file, which is not checked."""
    check_regular(path, StoreError)
    with Path(path).open("rb") as file:
        return _without_seal(_read_header(file)[1].get(_METADATA, {}))


def _without_seal(metadata: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in metadata.items() if name not in (_CHECKSUM, _MARK, _OLD_SEAL)}


def _read_header(file: IO[bytes]) -> tuple[bytes, dict[str, Any]]:
    """The bytes before the values, and the header they hold; an empty one where safetensors will refuse it."""
    start = file.read(8)
    length = int.from_bytes(start, "little")
    start += file.read(length) if length <= _LONGEST_HEADER else b""
    try:
        header = parse(start[8:])
    except ValueError:
        return start, {}
    return start, header if isinstance(header.get(_METADATA, {}), dict) else {}


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk


def _crc32(file: IO[bytes]) -> int:
    value = 0
    for chunk in _chunks(file):
        value = zlib.crc32(chunk, value)
    return value


def _checksum(values: int, header: Mapping[str, Any]) -> str:
    """The checksum of a file from that of its values, and its header."""
    return f"{zlib.crc32(json.dumps(header).encode(), values):08x}"


def _old_seal(start: bytes, file: IO[bytes]) -> str:
    content = hashlib.blake2b(start, digest_size=32)
    for chunk in _chunks(file):
        content.update(chunk)
    return content.hexdigest()


class Writer:
    """Writes on a thread of its own, in order: the work waits for a disk only if far ahead of it.

    A file is opened for each write: there may be more streams than files a process may open. `target` is what an
    error names.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="likewise-writer")
        self._waiting: deque[tuple[Path, int, Future[None]]] = deque()

    def write(self, path: Path, content: Content, checksum: Callable[[Content], None] | None = None) -> None:
        """Append to a file, now or soon; what went wrong with an earlier write is raised here."""
        while self._waiting and (self._waiting[0][2].done() or self._backlog() > _BACKLOG):
            self._await_first()
        self._waiting.append((path, len(content), self._thread.submit(_append, path, content, checksum)))

    def flush(self) -> None:
        """Wait until all is written."""
        while self._waiting:
            self._await_first()

    def abandon(self, path: Path) -> None:
        """Drop what still waits for one file."""
        futures = [future for file, _, future in self._waiting if file == path]
        for future in futures:
            future.cancel()
        wait(futures)
        self._waiting = deque(entry for entry in self._waiting if entry[0] != path)

    def _backlog(self) -> int:
        return sum(size for _, size, _ in self._waiting)

    def _await_first(self) -> None:
        with write_guard(self._target):
            self._waiting.popleft()[2].result()


def _append(path: Path, content: Content, checksum: Callable[[Content], None] | None) -> None:
    with path.open("ab") as file:
        file.write(content)
    if checksum is not None:
        checksum(content)


class Stream:
    """A file that grows: tensors one after another, each by rows.

    The header takes `names` and a few more, as does what `finish` adds to the metadata.
    """

    def __init__(self, folder: Path, metadata: Mapping[str, str], writer: Writer, names: Sequence[str] = ()) -> None:
        self._metadata, self._writer = dict(metadata), writer
        self._entries: dict[str, dict[str, Any]] = {}
        self._end = self._crc32 = 0
        needed = 8 + len(json.dumps([self._metadata, names])) + _ENTRY * len(names) + 1024
        self._header = -(-needed // _PAGE) * _PAGE
        self._part = part_name(folder)
        writer.write(self._part, b" " * self._header)

    def append(self, name: str, rows: Tensor) -> None:
        """Add rows to the last tensor, or begin another."""
        if name not in self._entries:
            dtype = _DTYPES.get(str(rows.dtype).removeprefix("torch."))
            if dtype is None:
                raise StoreError(f"cannot store {name!r}: it is of {rows.dtype}. Give real or whole numbers.")
            shape = [0, *rows.shape[1:]] if rows.ndim else []
            self._entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [self._end, self._end]}
        content, entry = as_bytes(rows), self._entries[name]
        self._writer.write(self._part, content, self._update)
        self._end += len(content)
        entry["data_offsets"][1] = self._end
        if rows.ndim:
            entry["shape"][0] += len(rows)

    def _update(self, content: Content) -> None:
        self._crc32 = zlib.crc32(content, self._crc32)

    def finish(self, path: Path, metadata: Mapping[str, str] | None = None) -> None:
        """Write the header, with metadata that were not known at the start; once the disk has it, give it its name."""
        header = {_METADATA: {**self._metadata, **(metadata or {}), _MARK: "likewise"}, **self._entries}
        self._writer.flush()
        header[_METADATA][_CHECKSUM] = _checksum(self._crc32, header)
        text = json.dumps(header).encode()
        if len(text) > self._header - 8:
            raise StoreError(f"the header of {path} takes {len(text)} bytes, and {self._header - 8} were set aside.")
        with write_guard(path):
            with self._part.open("r+b") as file:
                file.write(struct.pack("<Q", self._header - 8) + text.ljust(self._header - 8))
                file.flush()
                os.fsync(file.fileno())
            give_name(self._part, path, SEALED)

    def abort(self) -> None:
        """Leave nothing behind."""
        self._writer.abandon(self._part)
        self._part.unlink(missing_ok=True)
