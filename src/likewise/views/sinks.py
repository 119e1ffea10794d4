"""Where activations go as they come: into memory, or into a file that grows.

A growing file leaves room for a safetensors header at its start (the format allows spaces behind
the header), so that finishing it is writing the header and renaming: nothing is copied, and a file
under its final name is always whole. Reading maps the file; what is not touched is not read.
The header holds a checksum of the rows and of itself: disks do lose bits.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import zlib
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any
from uuid import uuid4

import torch
from torch import Tensor

from likewise._base.files import guarded, is_alive
from likewise._base.hashing import as_bytes
from likewise.errors import InputError, StoreError

_HEADER = 4096  # header blocks are this long or a multiple of it, so values start on a page
_BEHIND = 2**26  # bytes that may wait for the disk while the network goes on
CHECKSUM = "checksum"
_DAMAGE = (OSError, ValueError, LookupError, TypeError, AttributeError, struct.error, RuntimeError)
_DTYPES = {"F32": torch.float32, "F64": torch.float64, "I32": torch.int32, "I64": torch.int64}


class MemorySink:
    """Rows in memory, in one piece from the start: a second copy is never made."""

    def __init__(self, label: str, n: int | None) -> None:
        self.label = label
        self._expected = n
        self._values: Tensor | None = None
        self.n = 0

    def append(self, rows: Tensor) -> None:
        """Take the rows of one batch."""
        end = self.n + len(rows)
        if self._values is None:
            size = max(end, self._expected or 0)
            self._values = torch.empty(size, rows.shape[1], dtype=kept_dtype(rows))
        check_width(self.label, self._values.shape[1], rows)
        if end > len(self._values):
            grown = self._values.new_empty(max(end, 2 * self.n), rows.shape[1])
            grown[: self.n] = self._values[: self.n]
            self._values = grown
        self._values[self.n : end] = rows
        self.n = end

    def finish(self) -> Tensor:
        """All rows as one tensor."""
        assert self._values is not None  # a pass without batches was refused before
        return self._values if self.n == len(self._values) else self._values[: self.n].clone()

    def abort(self) -> None:
        """Drop what was taken."""
        self._values = None


class Checksum:
    """CRC-32 of what a file holds, in the order it was written."""

    def __init__(self) -> None:
        self._value = 0

    def update(self, content: Any) -> None:
        """Take in more content."""
        self._value = zlib.crc32(content, self._value)

    def sealed(self, header: Mapping[str, Any]) -> str:
        """The checksum with the header taken in as well."""
        return f"{zlib.crc32(json.dumps(header).encode(), self._value):08x}"


class Writer:
    """Writes on a thread of its own, in order: the network waits for a disk only if far ahead of it.

    A file is opened for each write: a network may have more layers than a process open files.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="likewise-writer")
        self._waiting: deque[tuple[Path, int, Future[None]]] = deque()

    def write(self, path: Path, content: bytes | memoryview, checksum: Checksum | None = None) -> None:
        """Append to a file, now or soon; what went wrong with an earlier write is raised here."""
        while self._waiting and (self._waiting[0][2].done() or self._behind() > _BEHIND):
            self._await_first()
        future = self._thread.submit(_append, path, content, checksum)
        self._waiting.append((path, len(content), future))

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

    def _behind(self) -> int:
        return sum(size for _, size, _ in self._waiting)

    def _await_first(self) -> None:
        _, _, future = self._waiting.popleft()
        future.result()


def _append(path: Path, content: bytes | memoryview, checksum: Checksum | None) -> None:
    with guarded(path.parent), path.open("ab") as file:
        file.write(content)
    if checksum is not None:
        checksum.update(content)


class FileSink:
    """Rows in a file that grows, written behind the network's back."""

    def __init__(self, label: str, folder: Path, facts: Mapping[str, str], writer: Writer) -> None:
        self.label = label
        self.n = self.width = 0
        self._writer = writer
        self._facts = dict(facts)
        needed = 8 + len(json.dumps(self._facts)) + 1024  # shapes and a few facts come at the end
        self._header = -(-needed // _HEADER) * _HEADER
        self._dtype = torch.float32
        self._checksum = Checksum()
        self._path = folder / f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex}.partial"
        writer.write(self._path, b" " * self._header)

    def append(self, rows: Tensor) -> None:
        """Take the rows of one batch; a thread writes them."""
        if not self.width:
            self.width = rows.shape[1]
            self._dtype = kept_dtype(rows)
        check_width(self.label, self.width, rows)
        self._writer.write(self._path, as_bytes(rows.to(self._dtype)), self._checksum)
        self.n += len(rows)

    def finish(self, path: Path, facts: Mapping[str, str], labels: Tensor | None = None) -> None:
        """Write the header, with facts that were not known at the start, and the final name."""
        kind = next(key for key, dtype in _DTYPES.items() if dtype == self._dtype)
        end = self.n * self.width * self._dtype.itemsize
        header: dict[str, Any] = {"__metadata__": {**self._facts, **facts}}
        header["values"] = {"dtype": kind, "shape": [self.n, self.width], "data_offsets": [0, end]}
        if labels is not None:
            # 4 bytes each: behind float32 values, wider numbers would not lie on their own boundary
            self._writer.write(self._path, as_bytes(labels.int()), self._checksum)
            offsets = [end, end + 4 * len(labels)]
            header["labels"] = {"dtype": "I32", "shape": [len(labels)], "data_offsets": offsets}
        self._writer.flush()
        header["__metadata__"][CHECKSUM] = self._checksum.sealed(header)
        words = json.dumps(header).encode()
        with self._path.open("r+b") as file:
            file.write(struct.pack("<Q", self._header - 8) + words.ljust(self._header - 8))
        self._path.replace(path)

    def abort(self) -> None:
        """Drop what was taken and its file."""
        self._writer.abandon(self._path)
        self._path.unlink(missing_ok=True)


def mapped(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a file, mapped rather than read, and its facts."""
    try:
        header, rows = _opened(path)
        tensors = {}
        facts = header.pop("__metadata__", {})
        facts.pop(CHECKSUM, None)
        for name, entry in header.items():
            part = rows[slice(*entry["data_offsets"])]
            tensors[name] = part.view(_DTYPES[entry["dtype"]]).view(entry["shape"])
    except _DAMAGE as error:
        raise StoreError(f"{path} is no view written here, or it is damaged. Remove it, and extract again.") from error
    return tensors, facts


def intact(path: Path, layer: str) -> bool:
    """Whether a file holds what was written for a layer, by its checksum; it is read once."""
    try:
        header, rows = _opened(path)
        facts = header["__metadata__"]
        expected = facts.pop(CHECKSUM)
        found = Checksum()
        found.update(rows.numpy().data)
        return bool(found.sealed(header) == expected and facts["layer"] == layer)
    except _DAMAGE:
        return False


def _opened(path: Path) -> tuple[dict[str, Any], Tensor]:
    """The header of a file, and the bytes behind it, mapped."""
    size = path.stat().st_size
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        if length > size - 8:
            raise ValueError("the header is longer than the file")
        header = json.loads(file.read(length))
    whole = torch.from_file(str(path), shared=False, size=size, dtype=torch.uint8)
    return header, whole[8 + length :]


def remove_leftovers(folder: Path) -> None:
    """Remove what killed extractions of this machine left unfinished."""
    for path in folder.glob(f"{socket.gethostname()}-*.partial"):
        pid = path.stem.split("-")[-2]
        if pid.isdecimal() and not is_alive(int(pid)):
            path.unlink(missing_ok=True)


def kept_dtype(rows: Tensor) -> torch.dtype:
    """What rows are kept in: half precision holds too few digits for sums over many inputs."""
    return torch.float64 if rows.dtype == torch.float64 else torch.float32


def check_width(label: str, width: int, rows: Tensor) -> None:
    """Refuse rows of another width than those before."""
    if rows.shape[1] != width:
        raise InputError(
            f"{label} has {width} columns in the first batch and {rows.shape[1]} in a later one. "
            "Give inputs of one size, or choose reduce='mean', 'cls' or 'last'."
        )
