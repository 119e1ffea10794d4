"""Faults that a machine may have while a job writes: each strikes at one write after another, as SQLite tests itself.

A write is whatever changes a folder: opening a file to write, writing to it, renaming, making a folder, a line of a
manifest, a statement that changes a database. They are counted, and from the k-th on (or at the k-th alone) they fail.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

CHANGES = ("INSERT", "DELETE", "CREATE", "BEGIN IMMEDIATE", "COMMIT", "PRAGMA JOURNAL_MODE")


class Strike:
    """Counts the writes below a folder; at the k-th it does what `fault` says."""

    def __init__(self, folder: Path, fault: str, k: int) -> None:
        self.folder, self.fault, self.k = folder.absolute(), fault, k
        self.writes = 0
        self._lock = threading.Lock()

    def __call__(self, path: Any, *, database: bool = False) -> None:
        """Count a write to a path; raise where it fails."""
        if not database and not Path(os.fsdecode(path)).absolute().is_relative_to(self.folder):
            return
        with self._lock:
            self.writes += 1
            due = self.writes == self.k or (self.fault in ("full", "denied") and self.writes > self.k > 0)
        if not due:
            return
        if self.fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fault == "interrupt":
            raise KeyboardInterrupt
        if database:
            error = sqlite3.OperationalError("database or disk is full" if self.fault == "full" else "disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL if self.fault == "full" else sqlite3.SQLITE_IOERR
            error.sqlite_errorname = "SQLITE_FULL" if self.fault == "full" else "SQLITE_IOERR"
            raise error
        number = {"full": errno.ENOSPC, "io": errno.EIO, "denied": errno.EACCES}[self.fault]
        raise OSError(number, os.strerror(number), os.fsdecode(path))


class _File:
    """A file whose writes are counted; one that fails has written half of what it was to write."""

    def __init__(self, file: Any, path: Any, strike: Strike) -> None:
        self._file, self._path, self._strike = file, path, strike

    def write(self, content: Any) -> Any:
        try:
            self._strike(self._path)
        except OSError:
            self._file.write(content[: len(content) // 2])
            raise
        return self._file.write(content)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


@contextmanager
def striking(strike: Strike) -> Iterator[None]:
    """Inside, writes go through a strike."""
    plain_open, plain_write = io.open, os.write
    opened: dict[int, Any] = {}

    def open_file(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if isinstance(file, int) or not set("wax+") & set(mode):
            return plain_open(file, mode, *arguments, **options)
        strike(file)
        return _File(plain_open(file, mode, *arguments, **options), file, strike)

    def open_descriptor(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        writing = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if writing:
            strike(path)
        descriptor = plain_descriptor(path, flags, *arguments, **options)
        if writing:
            opened[descriptor] = path
        return descriptor

    def write(descriptor: int, content: Any) -> int:
        if descriptor in opened:
            try:
                strike(opened[descriptor])
            except OSError:
                plain_write(descriptor, content[: len(content) // 2])
                raise
        return plain_write(descriptor, content)

    def counted(name: str) -> Callable[..., Any]:
        plain = getattr(os, name)

        def call(path: Any, *arguments: Any, **options: Any) -> Any:
            strike(path)
            return plain(path, *arguments, **options)

        return call

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *arguments: Any) -> Any:
            if sql.strip().upper().startswith(CHANGES):
                strike(None, database=True)
            return super().execute(sql, *arguments)

        def executemany(self, sql: str, *arguments: Any) -> Any:
            strike(None, database=True)
            return super().executemany(sql, *arguments)

    def connect(*arguments: Any, **options: Any) -> Any:
        in_memory = arguments[:1] == (":memory:",)
        return plain_connect(*arguments, **({} if in_memory else {"factory": Connection}) | options)

    plain_descriptor, plain_connect = os.open, sqlite3.connect
    with ExitStack() as stack:
        for target, name, function in (
            (io, "open", open_file),
            (builtins, "open", open_file),
            (os, "open", open_descriptor),
            (os, "write", write),
            *((os, name, counted(name)) for name in ("replace", "rename", "mkdir")),
            (sqlite3, "connect", connect),
        ):
            stack.enter_context(patch.object(target, name, function))
        yield
