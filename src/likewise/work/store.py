"""Where scores and artifacts are kept: nothing is computed twice, and a killed run resumes.

A store is a folder: `scores.sqlite` (write-ahead log, one row per score, safe for several processes), one folder of
artifacts per kind (`views/`), and `likewise.json`, which says that the folder is ours. Keys are hashes of whatever a
result depends on; who computes it makes them. Every score is a committed row the moment it exists; every file appears
whole or not at all. Rows and files carry checksums: what does not match is named in a warning and computed anew.
Nothing is ever unpickled.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from safetensors.torch import load_file
from torch import Tensor

from likewise._base.files import check_regular, is_part, make_folder, remove_leftovers, write_guard, write_whole
from likewise._base.hashing import digest
from likewise._base.progress import warn
from likewise._base.sealed import read_metadata, verify, write
from likewise.errors import DamagedStoreWarning, StoreError

FORMAT = 1
_PATIENCE = 60  # seconds for another process to let go of the database
SCHEMA = """
CREATE TABLE IF NOT EXISTS scores (
    key TEXT PRIMARY KEY, value REAL, reason TEXT, measure TEXT, a TEXT, b TEXT, run TEXT, at REAL, seal TEXT
) WITHOUT ROWID
"""


class Store:
    """A folder of scores and artifacts."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.run = uuid.uuid4().hex
        with write_guard(self.path):
            self._claim()
        self._lock = threading.RLock()  # one connection serves all threads, one at a time
        self._database = self._open()

    def __fspath__(self) -> str:
        return str(self.path)

    def artifacts(self, kind: str) -> Artifacts:
        """The artifacts of one kind, like "views"."""
        return Artifacts(self.path / kind)

    @property
    def _scores(self) -> Path:
        return self.path / "scores.sqlite"

    def _claim(self) -> None:
        """Make the folder ours, or see that it is."""
        marker = self.path / "likewise.json"
        if self.path.exists() and not self.path.is_dir():
            raise StoreError(f"{self.path} is a file, not a store. Name a folder.")
        check_regular(marker, StoreError)
        if marker.exists():
            try:
                number = json.loads(marker.read_text())["format"]
            except (ValueError, LookupError, TypeError):
                number = None
            if not isinstance(number, int):
                raise StoreError(
                    f"{marker} is damaged. Remove it and run again: the scores and views beside it "
                    "have checksums of their own."
                )
            if number != FORMAT:
                raise StoreError(
                    f"{self.path} is a store of another version (format {number}, this is {FORMAT}). "
                    "Name another folder."
                )
            return
        foreign = self.path.exists() and not all(_ours(path) for path in self.path.iterdir())
        if foreign and not marker.exists():  # another process may have made it a store meanwhile
            raise StoreError(f"{self.path} is not a store: it holds other files. Name a new or an empty folder.")
        write_whole(marker, json.dumps({"format": FORMAT, "made by": "likewise"}).encode())

    def _open(self) -> sqlite3.Connection:
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                return self._connected()
            except sqlite3.OperationalError as error:
                # two processes that turn a new file to WAL at one moment: one is refused at once, whatever the timeout
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise StoreError(f"cannot open {self._scores}: {error}.") from error
                time.sleep(0.01)
            except sqlite3.DatabaseError:
                break
        aside = self._scores.with_suffix(f".damaged-{int(time.time())}")
        self._scores.rename(aside)
        warn(
            f"{self._scores} is damaged. It was set aside as {aside.name}; its scores are computed anew.",
            DamagedStoreWarning,
        )
        return self._connected()

    def _connected(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._scores, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
        try:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=NORMAL")
            database.execute(SCHEMA)
            if database.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise sqlite3.DatabaseError("quick check failed")
        except BaseException:
            database.close()
            raise
        return database

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __len__(self) -> int:
        with self._lock:
            return int(self._database.execute("SELECT count(*) FROM scores").fetchone()[0])

    # --- scores -----------------------------------------------------------------------------------

    def find(self, keys: Iterable[str]) -> dict[str, tuple[float, str]]:
        """Value and reason of those keys that are stored and intact."""
        todo, scores = list(keys), {}
        for i in range(0, len(todo), 500):
            chunk = todo[i : i + 500]
            marks = ",".join("?" * len(chunk))
            try:
                with self._lock:
                    rows = self._database.execute(
                        f"SELECT key, value, reason, seal FROM scores WHERE key IN ({marks})", chunk
                    ).fetchall()
            except sqlite3.DatabaseError as error:
                raise StoreError(f"cannot read {self._scores}: {error}.") from error
            for key, value, reason, seal in rows:
                if seal == _seal(key, value, reason):
                    scores[key] = (float("nan") if value is None else float(value), reason)
                else:
                    self._discard(key)
        return scores

    def _discard(self, key: str) -> None:
        warn(
            f"a score in {self._scores} does not match its checksum (key {key[:12]}); it is computed anew.",
            DamagedStoreWarning,
        )
        with self._lock:
            self._database.execute("DELETE FROM scores WHERE key = ?", (key,))

    def put(self, key: str, value: float, reason: str, measure: str, a: str, b: str) -> None:
        """Keep a score; a second process that computed it too changes nothing."""
        stored = None if value != value else value
        row = (key, stored, reason, measure, a, b, self.run, time.time(), _seal(key, stored, reason))
        try:
            with self._lock:
                self._database.execute("INSERT OR IGNORE INTO scores VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        except sqlite3.OperationalError as error:
            raise StoreError(
                f"cannot write to {self._scores}: {error}. The {len(self)} scores in it are safe; make "
                "room and run again to resume."
            ) from error


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
        return write(self.path(key), tensors, facts, durable=False)


def intact(path: Path) -> dict[str, str] | None:
    """The facts of an artifact that matches its checksum, for which it is read once; None of any other."""
    try:
        return verify(path, required=True)
    except (OSError, ValueError):
        return None


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of an artifact, mapped rather than read, and its facts."""
    try:
        return load_file(path), read_metadata(path)
    except Exception as error:  # whatever a damaged byte leads to
        raise StoreError(f"{path} is no file of a store, or it is damaged. Remove it, and run again.") from error


def open_store(store: Store | str | os.PathLike[str] | None) -> AbstractContextManager[Store | None]:
    """A store by its folder, closed after use; one that is open stays open, and none stays none."""
    return nullcontext(store) if store is None or isinstance(store, Store) else Store(store)


def _ours(path: Path) -> bool:
    """What another process may have begun to put here, and the views of an extraction, which needs no store."""
    return path.name == "views" or path.name.startswith(("likewise.json", "scores.")) or is_part(path)


def _seal(key: str, value: float | None, reason: str) -> str:
    return digest([f"{key}{value!r}{reason}"])[:16]
