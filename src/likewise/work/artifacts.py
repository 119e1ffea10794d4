"""Tensors on disk by key, with facts beside them: whole or absent, mapped rather than read, with a checksum.

An artifact is a safetensors file. One that grows leaves room for its header at the start (the format allows spaces
behind the header), so that finishing it is writing the header and renaming: nothing is copied, and a file under its
final name is always whole. Reading maps the file; what is not touched is not read. The header holds a checksum of
the content and of itself: disks do lose bits.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from likewise._base.files import make_folder, part_name, remove_leftovers, write_guard
from likewise._base.hashing import as_bytes
from likewise._base.warnings import warn
from likewise.errors import DamagedStoreWarning, StoreError

CHECKSUM = "checksum"
_HEADER = 4096  # header blocks are this long or a multiple of it, so values start on a page
_BEHIND = 2**26  # bytes that may wait for the disk while the work goes on
_DAMAGE = (OSError, ValueError, LookupError, TypeError, AttributeError, struct.error, RuntimeError)
_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_ENTRY = 250  # bytes of a header that one tensor may need beside its name


class Artifacts:
    """A folder of artifacts, each in a file named by its key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        make_folder(folder)
        remove_leftovers(folder)

    def path(self, key: str) -> Path:
        """Where the artifact of a key is, or would be."""
        return self.folder / f"{key}.safetensors"

    def find(self, key: str) -> dict[str, Tensor] | None:
        """The tensors of a key, mapped; None where there are none, with a warning where they are damaged."""
        path = self.path(key)
        if not path.exists():
            return None
        if intact(path) is None:
            warn(f"{path} does not match its checksum; it is computed anew.", DamagedStoreWarning)
            return None
        return read(path)[0]

    def put(self, key: str, tensors: Mapping[str, Tensor], facts: Mapping[str, str]) -> Path:
        """Write an artifact, over what is there."""
        path = self.path(key)
        stream = Stream(self.folder, facts, Writer(path), names=list(tensors))
        try:
            for name in sorted(tensors, key=lambda name: -tensors[name].itemsize):  # each on its own boundary
                stream.append(name, tensors[name])
            stream.finish(path)
        except BaseException:
            stream.abort()
            raise
        return path


class Writer:
    """Writes on a thread of its own, in order: the work waits for a disk only if far ahead of it.

    A file is opened for each write: there may be more streams than files a process may open. `place` is what an
    error names.
    """

    def __init__(self, place: Path) -> None:
        self._place = place
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="likewise-writer")
        self._waiting: deque[tuple[Path, int, Future[None]]] = deque()

    def write(self, path: Path, content: bytes | memoryview, checksum: Checksum | None = None) -> None:
        """Append to a file, now or soon; what went wrong with an earlier write is raised here."""
        while self._waiting and (self._waiting[0][2].done() or self._behind() > _BEHIND):
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

    def _behind(self) -> int:
        return sum(size for _, size, _ in self._waiting)

    def _await_first(self) -> None:
        with write_guard(self._place):
            self._waiting.popleft()[2].result()


def _append(path: Path, content: bytes | memoryview, checksum: Checksum | None) -> None:
    with path.open("ab") as file:
        file.write(content)
    if checksum is not None:
        checksum.update(content)


class Checksum:
    """CRC-32 of what a file holds, in the order it was written."""

    def __init__(self) -> None:
        self._value = 0

    def update(self, content: Any) -> None:
        """Take in what comes next."""
        self._value = zlib.crc32(content, self._value)

    def sealed(self, header: Mapping[str, Any]) -> str:
        """The checksum with the header taken in as well."""
        return f"{zlib.crc32(json.dumps(header).encode(), self._value):08x}"


class Stream:
    """An artifact that grows: tensors one after another, each by rows.

    The header takes the `names` given and a few more, as does what `finish` adds to the facts.
    """

    def __init__(self, folder: Path, facts: Mapping[str, str], writer: Writer, names: Sequence[str] = ()) -> None:
        self._facts, self._writer = dict(facts), writer
        self._entries: dict[str, dict[str, Any]] = {}
        self._end = 0
        self._checksum = Checksum()
        needed = 8 + len(json.dumps([self._facts, names])) + _ENTRY * len(names) + 1024
        self._header = -(-needed // _HEADER) * _HEADER
        self._part = part_name(folder)
        writer.write(self._part, b" " * self._header)

    def append(self, name: str, rows: Tensor) -> None:
        """Add rows to the last tensor, or begin another."""
        if name not in self._entries:
            kind = next((key for key, dtype in _DTYPES.items() if dtype == rows.dtype), None)
            if kind is None:
                raise StoreError(f"cannot store {name!r}: it is of {rows.dtype}. Give real or whole numbers.")
            shape = [0, *rows.shape[1:]] if rows.ndim else []
            self._entries[name] = {"dtype": kind, "shape": shape, "data_offsets": [self._end, self._end]}
        content, entry = as_bytes(rows), self._entries[name]
        self._writer.write(self._part, content, self._checksum)
        self._end += len(content)
        entry["data_offsets"][1] = self._end
        if rows.ndim:
            entry["shape"][0] += len(rows)

    def finish(self, path: Path, facts: Mapping[str, str] | None = None) -> None:
        """Write the header, with facts that were not known at the start, and give the file its name."""
        header = {"__metadata__": {**self._facts, **(facts or {})}, **self._entries}
        self._writer.flush()
        header["__metadata__"][CHECKSUM] = self._checksum.sealed(header)
        words = json.dumps(header).encode()
        if len(words) > self._header - 8:
            raise StoreError(f"the header of {path} takes {len(words)} bytes, and {self._header - 8} were set aside.")
        with write_guard(path):
            with self._part.open("r+b") as file:
                file.write(struct.pack("<Q", self._header - 8) + words.ljust(self._header - 8))
            self._part.replace(path)

    def abort(self) -> None:
        """Leave nothing behind."""
        self._writer.abandon(self._part)
        self._part.unlink(missing_ok=True)


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of an artifact, mapped rather than read, and its facts."""
    try:
        header, content = _opened(path)
        facts = header.pop("__metadata__", {})
        facts.pop(CHECKSUM, None)
        tensors = {}
        for name, entry in header.items():
            part = content[slice(*entry["data_offsets"])]
            tensors[name] = part.view(_DTYPES[entry["dtype"]]).view(entry["shape"])
    except _DAMAGE as error:
        raise StoreError(f"{path} is no file of a store, or it is damaged. Remove it, and run again.") from error
    return tensors, facts


def intact(path: Path) -> Mapping[str, str] | None:
    """The facts of an artifact that matches its checksum, for which it is read once; None of any other."""
    try:
        header, content = _opened(path)
        facts: dict[str, str] = header["__metadata__"]
        expected, found = facts.pop(CHECKSUM), Checksum()
        found.update(content.numpy().data)
        return facts if found.sealed(header) == expected else None
    except _DAMAGE:
        return None


def put_file(path: str | os.PathLike[str], tensors: Mapping[str, Tensor], facts: Mapping[str, str]) -> Path:
    """Write an artifact to a file of the user's choice, whose suffix may be left out. Returns its path."""
    target = Path(path)
    return Artifacts(target.parent).put(target.name.removesuffix(".safetensors"), tensors, facts)


def read_intact(path: str | os.PathLike[str]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and facts of a file that matches its checksum; an error that does not name the file otherwise."""
    if intact(Path(path)) is None:
        Path(path).open("rb").close()  # what is not there is said so
        raise ValueError("it does not match its checksum")
    return read(Path(path))


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
