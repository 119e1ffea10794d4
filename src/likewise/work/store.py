"""Where scores and artifacts are kept: nothing is computed twice, and a killed run resumes.

A store is a folder: `scores.sqlite` (one row per score, for the processes of one machine) or `scores/` (files of every
writer, for shared disks), one folder of artifacts per kind (`views/`), and `likewise.json`, which says that the folder
is ours and which of the two it is. Keys are hashes of whatever a
result depends on; who computes it makes them. Every score is a committed row the moment it exists; every file appears
whole or not at all. Rows and files carry checksums: what does not match is named in a warning and computed anew.
Nothing is ever unpickled.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from safetensors.torch import load_file
from torch import Tensor

from likewise._base.files import is_part, make_folder, remove_leftovers, write_guard, write_whole
from likewise._base.folders import file_of, read_bytes
from likewise._base.hashing import digest
from likewise._base.progress import warn
from likewise._base.sealed import read_metadata, verify, write
from likewise.errors import DamagedStoreWarning, LikewiseError, StoreError
from likewise.work.database import Database
from likewise.work.journal import Journal, is_shared
from likewise.work.remote import RemoteFolder

FORMATS: dict[int, Callable[[Path], Database | Journal]] = {
    1: lambda folder: Database(folder / "scores.sqlite"),
    2: lambda folder: Journal(folder / "scores"),  # on a shared disk
}
_MARKER = 4096  # bytes at most


class Store:
    """A folder of scores and artifacts.

    Args:
        path: The folder, which is made where there is none.
        shared: Whether it is a new one for several machines, which write to files of their own; by default where the
            disk is one of another machine. A store stays what it was made as.
        artifacts: An address such as "s3://bucket/folder" where artifacts are kept, read by `fsspec`; the folder then
            holds copies.

    Raises:
        StoreError: It is no store, or cannot be read or written.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, shared: bool | None = None, artifacts: str | None = None
    ) -> None:
        self.path = Path(path)
        self.run = uuid.uuid4().hex
        self._address = artifacts
        with write_guard(self.path):
            number = self._claim(2 if (is_shared(self.path) if shared is None else shared) else 1)
        if shared is not None and shared != (number == 2):
            kind = "several machines" if number == 2 else "one machine"
            raise StoreError(f"{self.path} was made as a store for {kind}. Name another folder.")
        self._scores = FORMATS[number](self.path)

    def __fspath__(self) -> str:
        return str(self.path)

    def artifacts(self, kind: str) -> Artifacts:
        """The artifacts of one kind, like "views"."""
        folder = self.path / kind
        if not folder.resolve().is_relative_to(self.path.resolve()):
            raise StoreError(f"{folder} leads out of {self.path}. Remove the link, or name another folder.")
        return Artifacts(folder, None if self._address is None else f"{self._address.rstrip('/')}/{kind}")

    def _claim(self, new: int) -> int:
        """Make the folder ours, or see that it is; the number of its format."""
        marker = self.path / "likewise.json"
        if self.path.exists() and not self.path.is_dir():
            raise StoreError(f"{self.path} is a file, not a store. Name a folder.")
        if marker.exists():
            try:
                number = json.loads(read_bytes(self.path, marker.name, limit=_MARKER))["format"]
            except LikewiseError:
                raise
            except (ValueError, LookupError, TypeError, RecursionError):
                number = None
            if not isinstance(number, int):
                raise StoreError(
                    f"{marker} is damaged. Remove it and run again: the scores and views beside it "
                    "have checksums of their own."
                )
            if number not in FORMATS:
                raise StoreError(
                    f"{self.path} is a store of another version (format {number}, this reads "
                    f"{' and '.join(map(str, FORMATS))}). Name another folder."
                )
            return number
        foreign = self.path.exists() and not all(_ours(path) for path in self.path.iterdir())
        if foreign and not marker.exists():  # another process may have made it a store meanwhile
            raise StoreError(f"{self.path} is not a store: it holds other files. Name a new or an empty folder.")
        if (self.path / "scores.sqlite").exists():  # the marker was removed
            new = 1
        elif (self.path / "scores").exists():
            new = 2
        write_whole(marker, json.dumps({"format": new, "made by": "likewise"}).encode())
        return new

    def close(self) -> None:
        """Close the database."""
        self._scores.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._scores)

    # --- scores -----------------------------------------------------------------------------------

    def find(self, keys: Iterable[str]) -> dict[str, tuple[float, str]]:
        """Value and reason of those keys that are stored and intact."""
        todo, scores = list(keys), {}
        for i in range(0, len(todo), 500):
            for key, value, reason, seal in self._scores.rows(todo[i : i + 500]):
                typed = isinstance(reason, str) and (value is None or isinstance(value, float))
                if typed and seal == _seal(key, value, reason):
                    scores[key] = (float("nan") if value is None else value, reason)
                else:
                    self._discard(key)
        return scores

    def _discard(self, key: str) -> None:
        warn(
            f"a score in {self._scores.path} does not match its checksum (key {key[:12]}); it is computed anew.",
            DamagedStoreWarning,
        )
        self._scores.discard(key)

    def put(self, key: str, value: float, reason: str, measure: str, a: str, b: str) -> None:
        """Keep a score; a second process that computed it too changes nothing."""
        self.put_many([(key, value, reason, measure, a, b)])

    def put_many(self, scores: Iterable[tuple[str, float, str, str, str, str]]) -> None:
        """Keep scores, all of them or none: in one transaction, many times as fast as one by one."""
        rows, at = [], time.time()
        for key, value, *facts in scores:
            stored = None if value != value else float(value)
            rows.append((key, stored, *facts, self.run, at, _seal(key, stored, facts[0])))
        self._scores.put(rows)


class Artifacts:
    """A folder of artifacts, each in a file named by its key; with an address, copies of those that are there."""

    def __init__(self, folder: Path, address: str | None = None) -> None:
        self.folder = folder
        self._remote = None if address is None else RemoteFolder(address)
        make_folder(folder)
        remove_leftovers(folder)

    def path(self, key: str) -> Path:
        """Where the artifact of a key is, or would be."""
        return self.folder / f"{key}.safetensors"

    def find(self, key: str) -> dict[str, Tensor] | None:
        """The tensors of a key, mapped; None where there are none, with a warning where they are damaged."""
        path = self.path(key)
        if not path.exists() and (self._remote is None or not self._remote.get(path)):
            return None
        if intact(file_of(self.folder, path.name)) is None:
            warn(f"{path} does not match its checksum; it is computed anew.", DamagedStoreWarning)
            return None
        return read(path)[0]

    def put(self, key: str, tensors: Mapping[str, Tensor], facts: Mapping[str, str]) -> Path:
        """Write an artifact, over what is there."""
        path = write(self.path(key), tensors, facts)
        if self._remote is not None:
            self._remote.put(path)
        return path


def intact(path: Path) -> dict[str, str] | None:
    """The facts of an artifact that matches its checksum, for which it is read once; None of any other."""
    try:
        return verify(file_of(path.parent, path.name), required=True)
    except (OSError, ValueError):
        return None


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of an artifact, mapped rather than read, and its facts."""
    try:
        facts = read_metadata(file_of(path.parent, path.name))  # first: it refuses pipes, devices and links outside
        return load_file(path), facts
    except Exception as error:  # whatever a damaged byte leads to
        raise StoreError(f"{path} is no file of a store, or it is damaged. Remove it, and run again.") from error


def open_store(store: Store | str | os.PathLike[str] | None) -> AbstractContextManager[Store | None]:
    """A store by its folder, closed after use; one that is open stays open, and none stays none."""
    return nullcontext(store) if store is None or isinstance(store, Store) else Store(store)


def _ours(path: Path) -> bool:
    """What another process may have begun to put here, and the views of an extraction, which needs no store."""
    return (
        path.name in ("views", "scores", "unfinished")
        or path.name.startswith(("likewise.json", "scores."))
        or is_part(path)
    )


def _seal(key: str, value: float | None, reason: str) -> str:
    return digest([f"{key}{value!r}{reason}"])[:16]
