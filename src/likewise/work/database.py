"""The scores of a store in SQLite: one file with a write-ahead log, for the processes of one machine.

The file may be damaged, or a stranger's. It is opened only if it is a file itself and holds our table and nothing else,
which is looked at before anything is written: a view, a trigger or a generated column would run what its author likes.
A rollback journal is none of ours, and may name files elsewhere that SQLite would remove. No statement runs for ever.

Who opens the file holds a lock on the folder that others share; who makes a new one, or sets a damaged one aside,
holds it alone and looks again first. So of several processes that meet a damaged file, one sets it aside, and no other
takes the new one for it. A process that wrote to a file that was set aside meanwhile writes again, to the new one.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from likewise._base.files import write_guard, write_whole
from likewise._base.manifest import mode_of
from likewise._base.progress import warn
from likewise.errors import DamagedStoreWarning, StoreError

try:
    import fcntl
except ImportError:  # on Windows, a file that is open cannot be set aside
    fcntl = None  # type: ignore[assignment]

PATIENCE = 60  # seconds for another process to let go of the database
LONGEST = 600  # seconds that one statement may take
SCHEMA = """
CREATE TABLE IF NOT EXISTS scores (
    key TEXT PRIMARY KEY, value REAL, reason TEXT, measure TEXT, a TEXT, b TEXT, run TEXT, at REAL, seal TEXT
) WITHOUT ROWID
"""
_TABLE = " ".join(SCHEMA.replace("IF NOT EXISTS ", "").split())
_STEPS = 200_000  # of SQLite between two looks at the clock
_LONGEST_TEXT = 2**26
Row = tuple[Any, ...]  # in the order of the columns


class Database:
    """Rows of scores by key; `path` is the file, beside which SQLite keeps its log."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()  # one connection serves all threads, one at a time
        self._until = 0.0
        self._connection, self._number = self._open()

    # --- opening ----------------------------------------------------------------------------------

    def _open(self) -> tuple[sqlite3.Connection, int]:
        try:
            with self._locked(alone=False):
                return self._connected()
        except (FileNotFoundError, sqlite3.DatabaseError):
            pass
        with self._locked(alone=True):
            try:
                return self._connected()
            except FileNotFoundError:
                self._set_aside()  # the log of a file that is gone would become that of the new one
            except sqlite3.DatabaseError:
                warn(
                    f"{self.path} is damaged. It was set aside as {self._set_aside()}; its scores are computed anew.",
                    DamagedStoreWarning,
                )
            write_whole(self.path, _empty())
            return self._connected()

    @contextmanager
    def _locked(self, *, alone: bool) -> Iterator[None]:
        if fcntl is None:
            yield
            return
        with write_guard(self.path):
            folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            with write_guard(self.path):
                fcntl.flock(folder, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            yield
        finally:
            os.close(folder)

    def _set_aside(self) -> str:
        """Rename the file and its log; the new name."""
        aside = self.path.with_name(f"{self.path.stem}.damaged-{time.time_ns()}")
        with write_guard(self.path):
            for ending in ("", "-wal", "-shm"):
                path = Path(f"{self.path}{ending}")
                if os.path.lexists(path):
                    path.rename(f"{aside}{ending}")
        return aside.name

    def _connected(self) -> tuple[sqlite3.Connection, int]:
        """A connection to the file that is there, and the file's number; a damaged one is a DatabaseError."""
        for ending in ("", "-wal", "-shm"):
            _check_file(Path(f"{self.path}{ending}"))
        journal = Path(f"{self.path}-journal")
        if os.path.lexists(journal):
            raise StoreError(f"{journal} is no file of a store. Remove it, or name another folder.")
        number = self.path.stat().st_ino
        self._look()
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return self._prepared(), number
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise StoreError(f"cannot open {self.path}: {error}.") from error
                time.sleep(0.01)

    def _look(self) -> None:
        """Refuse what is not ours before SQLite writes as much as a log."""
        try:
            connection = self._connect("mode=ro&immutable=1")
        except sqlite3.OperationalError as error:
            raise StoreError(f"cannot open {self.path}: {error}.") from error
        try:
            self._check_schema(connection)
        except sqlite3.DatabaseError:  # damaged, or being written: seen again under its locks
            pass
        finally:
            connection.close()

    def _prepared(self) -> sqlite3.Connection:
        connection = self._connect("mode=rw")
        try:
            if not self._check_schema(connection):
                raise sqlite3.DatabaseError("it holds nothing")
            if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise sqlite3.DatabaseError("quick check failed")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self, mode: str) -> sqlite3.Connection:
        address = f"{self.path.absolute().as_uri()}?{mode}"
        connection = sqlite3.connect(address, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_TEXT)
        connection.text_factory = _text
        self._until = time.monotonic() + LONGEST
        connection.set_progress_handler(self._is_late, _STEPS)
        connection.execute("PRAGMA trusted_schema=OFF")
        return connection

    def _check_schema(self, connection: sqlite3.Connection) -> bool:
        """Whether our table is there; refused where anything else is."""
        objects = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
        if any((kind, name, " ".join(str(sql).split())) != ("table", "scores", _TABLE) for kind, name, sql in objects):
            raise StoreError(
                f"{self.path} is no database of a store: it holds other things than a table of scores. Name another "
                "folder."
            )
        return bool(objects)

    def _is_late(self) -> bool:
        """Whether a statement has to end; SQLite asks now and then, which is also when a Ctrl-C ends it."""
        return time.monotonic() > self._until

    # --- use --------------------------------------------------------------------------------------

    @contextmanager
    def _using(self, doing: str) -> Iterator[sqlite3.Connection]:
        """The connection, to the file that has the name now; what goes wrong is said in a sentence."""
        with self._lock:
            self._follow()
            self._until = time.monotonic() + LONGEST
            try:
                yield self._connection
            except (sqlite3.ProgrammingError, sqlite3.InterfaceError):  # wrong values of a caller
                raise
            except sqlite3.Error as error:
                code, late = getattr(error, "sqlite_errorcode", None), time.monotonic() > self._until
                if code == sqlite3.SQLITE_INTERRUPT and not late:
                    raise KeyboardInterrupt from error
                reason = f"no end within {LONGEST} seconds" if late else str(error)
                full = code == sqlite3.SQLITE_FULL
                advice = f" The {len(self)} scores in it are safe; make room and run again to resume." if full else ""
                raise StoreError(f"cannot {doing} {self.path}: {reason}.{advice}") from error

    def _follow(self) -> bool:
        """Open the file anew where the one that is open was set aside; whether it was."""
        if self.path.exists() and self.path.stat().st_ino == self._number:
            return False
        self._connection.close()
        self._connection, self._number = self._open()
        return True

    def rows(self, keys: Sequence[str]) -> list[Row]:
        """Key, value, reason and seal of at most 500 keys, where they are stored."""
        marks = ",".join("?" * len(keys))
        with self._using("read") as connection:
            return connection.execute(
                f"SELECT key, value, reason, seal FROM scores WHERE key IN ({marks})", keys
            ).fetchall()

    def put(self, rows: Iterable[Row]) -> None:
        """Add rows, all or none; of those whose key is there, none is changed."""
        rows = list(rows)
        while True:
            with self._using("write to") as connection, connection:  # which commits, or takes all of it back
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany("INSERT OR IGNORE INTO scores VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
            with self._lock:
                if not self._follow():
                    return

    def discard(self, key: str) -> None:
        """Remove a row."""
        with self._using("write to") as connection:
            connection.execute("DELETE FROM scores WHERE key = ?", (key,))

    def __len__(self) -> int:
        with self._using("read") as connection:
            return int(connection.execute("SELECT count(*) FROM scores").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _check_file(path: Path) -> None:
    """Refuse a link, a pipe or a folder where a file of ours belongs; its log may be removed this moment."""
    mode = mode_of(path, follow=False)
    if mode and not stat.S_ISREG(mode):
        what = "a link" if stat.S_ISLNK(mode) else "no file"
        raise StoreError(f"{path} is {what}, and a store holds files of its own. Remove it, or name another folder.")


def _empty() -> bytes:
    """A database with our table, ready for a write-ahead log."""
    connection = sqlite3.connect(":memory:")
    connection.execute(SCHEMA)
    content = bytearray(connection.serialize())
    connection.close()
    content[18] = content[19] = 2  # the versions of the format by which it is written and read: with such a log
    return bytes(content)


def _text(content: bytes) -> str:
    return content.decode(errors="replace")
