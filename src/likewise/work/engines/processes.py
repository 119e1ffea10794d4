"""Worker processes of this machine: started quickly, ended at once, never left behind.

Importing torch takes longer than scoring many pairs. On Linux one server process imports it once and
workers are forked from there; elsewhere each worker imports it for itself. A worker holds one end of a
pipe whose other end is open as long as this process lives and wants it to: when that is closed, also by
a kill, the worker ends.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

from likewise.errors import WorkerError

PRELOADED = ["likewise.comparison.blocks"]


class Processes:
    """A pool of worker processes that can be started again."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._context = multiprocessing.get_context("forkserver" if _can_fork() else "spawn")
        self._executor: ProcessPoolExecutor | None = None
        self._pids: set[int] = set()

    def submit(self, function: Callable[..., Any], *given: Any) -> Future[Any]:
        if self._executor is None:
            self._start()
            assert self._executor is not None
        try:
            return self._executor.submit(function, *given)
        except (EOFError, OSError) as error:
            raise WorkerError(f"worker processes cannot be started: {error}. {_REMEDY}") from error

    def _start(self) -> None:
        if getattr(multiprocessing.current_process(), "_inheriting", False):
            raise WorkerError(f"a worker process came upon the call that started it. {_REMEDY}")
        if _can_fork():
            self._context.set_forkserver_preload(PRELOADED)
        held, self._lifeline = self._context.Pipe(duplex=False)
        self._started, told = self._context.Pipe(duplex=False)
        self._pids.clear()
        self._executor = ProcessPoolExecutor(
            self._workers, mp_context=self._context, initializer=_begin, initargs=(held, told)
        )

    def restart(self, error: BaseException) -> None:
        """Let what is left of a broken pool go; the next task starts another."""
        if not self._heard():
            self.close(at_once=True)
            raise WorkerError(f"the worker processes ended as they started. {_REMEDY}") from error
        self.close(at_once=True)

    def close(self, *, at_once: bool) -> None:
        if self._executor is None:
            return
        if at_once:
            self._heard()
            self._lifeline.close()
            for child in multiprocessing.active_children():
                if child.pid in self._pids:
                    child.kill()
        self._executor.shutdown(cancel_futures=True)
        self._lifeline.close()
        self._started.close()
        self._executor = None

    def _heard(self) -> set[int]:
        """The processes that said they were ready."""
        while self._started.poll():
            self._pids.add(self._started.recv())
        return self._pids


_REMEDY = (
    "In a script, put the call under `if __name__ == '__main__':`, since workers import the script; or "
    "leave the engine out."
)


def _can_fork() -> bool:
    """Elsewhere than on Linux, system libraries do not outlive a fork."""
    return sys.platform == "linux"


def _begin(lifeline: Connection, started: Connection) -> None:
    """The first thing a worker does. A Ctrl-C is for the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    started.send(os.getpid())


def _end_with(lifeline: Connection) -> None:
    try:
        lifeline.recv()
    except (EOFError, OSError):
        os._exit(1)
