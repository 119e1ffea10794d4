"""The scores of a store on a shared disk: every writer appends to a file of its own, and readers merge them.

SQLite needs locks and shared memory, which network file systems do not give. Here no file has two writers, so none is
locked, and machines need not know of each other. A file grows by lines; a line holds the scores that were put together
and a checksum, so that what a kill or a lost connection cut short counts as absent. A writer closes its file after
every line: on a network file system, that is what others then see.
"""

from __future__ import annotations

import json
import os
import threading
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from likewise._base.files import make_folder, part_name, write_guard
from likewise._base.manifest import is_regular
from likewise._base.progress import warn
from likewise.errors import DamagedStoreWarning, StoreError
from likewise.work.database import Row

ENDING = ".scores"
_LONGEST = 2**26  # bytes of a line
# file systems of other machines, as the system names them
NETWORK = {
    *("nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "afs", "pvfs2"),
    *("panfs", "wekafs", "9p", "fuse.sshfs", "fuse.glusterfs", "fuse.beegfs", "fuse.juicefs", "fuse.s3fs"),
}


class Journal:
    """Rows of scores by key; `path` is the folder of the writers' files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        make_folder(path)
        self._file = path / f"{part_name(path).stem.removeprefix('.')}{ENDING}"  # of this machine, process and store
        self._lock = threading.RLock()
        self._rows: dict[str, Row] = {}
        self._read_to: dict[str, int] = {}

    def rows(self, keys: Sequence[str]) -> list[Row]:
        """Key, value, reason and seal of keys, where anybody has stored them."""
        with self._lock:
            self._merge()
            return [(key, *self._rows[key][1:3], self._rows[key][-1]) for key in keys if key in self._rows]

    def put(self, rows: Iterable[Row]) -> None:
        """Add rows, all or none; of those whose key is there, none is changed."""
        text = json.dumps([list(row) for row in rows])
        line = f"{zlib.crc32(text.encode()):08x} {text}\n".encode()
        with self._lock, write_guard(self._file):
            descriptor = os.open(
                self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0), 0o666
            )
            try:
                end = os.fstat(descriptor).st_size
                self._write(descriptor, line, end)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    @staticmethod
    def _write(descriptor: int, line: bytes, end: int) -> None:
        """Append a line; where the disk is full, nothing of it stays."""
        try:
            while line:
                line = line[os.write(descriptor, line) :]
        except BaseException:
            os.ftruncate(descriptor, end)
            raise

    def discard(self, key: str) -> None:
        """Forget a row that does not match its seal; who computes it anew writes it again."""
        with self._lock:
            self._rows.pop(key, None)

    def __len__(self) -> int:
        with self._lock:
            self._merge()
            return len(self._rows)

    def close(self) -> None:
        """Nothing is open between calls."""

    def _merge(self) -> None:
        """Read what was added to any file since the last time."""
        for path in sorted(self.path.glob(f"*{ENDING}")):
            if not is_regular(path):
                raise StoreError(
                    f"{path} is {'a link' if path.is_symlink() else 'no file'}, and a store holds files of its own. "
                    "Remove it, or name another folder."
                )
            start = self._read_to.get(path.name, 0)
            if path.stat().st_size > start:
                self._read_to[path.name] = self._read(path, start)

    def _read(self, path: Path, start: int) -> int:
        """Take the whole lines behind `start`; where they end."""
        try:
            with path.open("rb") as file:
                file.seek(start)
                while line := file.readline(_LONGEST):
                    if not line.endswith(b"\n"):
                        if len(line) == _LONGEST:
                            raise StoreError(f"{path} holds no scores, or it is damaged. Remove it, and run again.")
                        break  # being written, or cut short by a kill
                    self._take(path, line)
                    start += len(line)
        except OSError as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"cannot read {path}: {error.strerror or error}.") from error
        return start

    def _take(self, path: Path, line: bytes) -> None:
        checksum, _, text = line.rstrip(b"\n").partition(b" ")
        rows = _parsed(text) if checksum == f"{zlib.crc32(text):08x}".encode() else None
        if rows is None:
            warn(
                f"{path} holds a line that does not match its checksum; its scores are computed anew.",
                DamagedStoreWarning,
            )
            return
        for row in rows:
            there = self._rows.get(row[0])
            if there is None or (row[7], row[6]) < (there[7], there[6]):  # the first, wherever readers begin
                self._rows[row[0]] = row


def _parsed(text: bytes) -> list[Row] | None:
    """The rows of a line; None where they are none."""
    try:
        lists: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    kinds: tuple[Any, ...] = (str, (float, type(None)), str, str, str, str, str, float, str)
    if not isinstance(lists, list):
        return None
    for row in lists:
        if not isinstance(row, list) or len(row) != len(kinds):
            return None
        if not all(isinstance(value, kind) for value, kind in zip(row, kinds, strict=True)):
            return None
    return [tuple(row) for row in lists]


def is_shared(path: Path) -> bool:
    """Whether a folder, or the nearest above it that exists, is on a file system of another machine."""
    folder = path.absolute()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        mounts = [line.split()[1:3] for line in Path("/proc/self/mounts").read_text().splitlines()]
    except OSError:  # of another system, which says nothing of it there
        return False
    folder = folder.resolve()
    kinds = {Path(point.replace("\\040", " ")): kind for point, kind in mounts}
    nearest = next((above for above in (folder, *folder.parents) if above in kinds), None)
    return nearest is not None and kinds[nearest] in NETWORK
