"""Worker processes of this machine: started quickly, ended at once, never left behind.

Importing torch takes longer than many a task. On Linux, functions that are known to be safe in a copy of this process
run in such copies, with nothing to import, as long as no other thread could leave a lock behind in them and no GPU is
in use. For all others one server process imports torch once, with the module of the tasks' function, and workers are
forked from there; elsewhere each worker imports it for itself. A worker holds one end of a pipe whose other end is open
as long as this process lives and wants it to: when that is closed, also by a kill, the worker ends.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

import torch

from likewise.errors import InputError, WorkerError
from likewise.work.engines.base import Engine, Remote, engine


@engine("processes")
def processes(count: str | None) -> Engine:
    """That many worker processes, one per core if not said."""
    if count is not None and not (count.isascii() and count.isdigit() and int(count)):
        raise InputError(
            f"engine={f'processes:{count}'!r} does not say how many processes, at least 1. Write it like "
            "'processes:2', or 'processes' for one per core."
        )
    workers = int(count or torch.get_num_threads())
    pool = Processes(workers)
    return Remote(pool.submit, workers, pool.close, pool.prepare)


class Processes:
    """A pool of worker processes that starts again when one of them was lost."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._copied = False
        self._executor: ProcessPoolExecutor | None = None
        self._pids: set[int] = set()

    def prepare(self, copyable: bool) -> bool:
        """Say whether the tasks to come are safe in a copy of this process; whether copies will run them."""
        self._copied = copyable and _can_copy()
        return self._copied

    def submit(self, function: Callable[..., Any], *given: Any) -> Future[Any]:
        """Hand a task to the workers, which are started if there are none."""
        try:
            with warnings.catch_warnings():
                if self._copied:  # torch's own threads are none that the copies would wait for
                    warnings.filterwarnings("ignore", ".*multi-threaded, use of fork", DeprecationWarning)
                return self._started().submit(function, *given)
        except BrokenExecutor as error:
            started = self._ready()
            self.close(finished=False)
            if not started:
                raise WorkerError(f"the worker processes ended as they started. {_REMEDY}") from error
            return self.submit(function, *given)
        except (EOFError, OSError) as error:
            raise WorkerError(f"worker processes cannot be started: {error}. {_REMEDY}") from error

    def _started(self) -> ProcessPoolExecutor:
        if self._executor is not None:
            return self._executor
        if getattr(multiprocessing.current_process(), "_inheriting", False):
            raise WorkerError(f"a worker process reached the call that started it. {_REMEDY}")
        context: Any = multiprocessing.get_context(self._method())
        if self._method() == "forkserver":
            # what is loaded of ours will be wanted there too; a module of the user's may do anything
            context.set_forkserver_preload(["torch", *(name for name in sys.modules if name.startswith("likewise."))])
        held, self._lifeline = context.Pipe(duplex=False)
        self._reports, report = context.Pipe(duplex=False)
        self._pids.clear()
        given = (held, report, self._lifeline if self._copied else None)
        self._executor = ProcessPoolExecutor(self._workers, mp_context=context, initializer=_begin, initargs=given)
        return self._executor

    def _method(self) -> str:
        if self._copied:
            return "fork"
        return "forkserver" if _can_fork() else "spawn"

    def close(self, finished: bool) -> None:
        """End the workers: at once if they have not finished."""
        if self._executor is None:
            return
        if not finished:
            pids = self._ready()
            self._lifeline.close()
            for child in multiprocessing.active_children():
                if child.pid in pids:
                    child.kill()
        self._executor.shutdown(cancel_futures=True)
        self._lifeline.close()
        self._reports.close()
        self._executor = None

    def _ready(self) -> set[int]:
        """The processes that reported that they had started."""
        while self._reports.poll():
            self._pids.add(self._reports.recv())
        return self._pids


_REMEDY = (
    "In a script, put the call under `if __name__ == '__main__':`, since workers import the script; or "
    "leave the engine out."
)


def _can_fork() -> bool:
    """Elsewhere than on Linux, system libraries do not outlive a fork."""
    return sys.platform == "linux"


def _can_copy() -> bool:
    """Whether copies of this process work: a lock that another thread holds would stay locked in them for ever."""
    others = [thread for thread in threading.enumerate() if thread is not threading.current_thread()]
    return _can_fork() and all(map(_is_harmless, others)) and not torch.cuda.is_initialized()  # type: ignore[no-untyped-call]


def _is_harmless(thread: threading.Thread) -> bool:
    """A thread of ours that writes files, or one that draws a progress bar: copies need no lock of either."""
    return thread.name.startswith("likewise-writer") or type(thread).__module__.startswith("rich.")


def _begin(lifeline: Connection, started: Connection, other_end: Connection | None) -> None:
    """The first thing a worker does. A Ctrl-C is for the process that started it.

    A copy has the other end of the lifeline too, and lets go of it. It must not wake the threads that torch had.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if other_end is not None:
        other_end.close()
        torch.set_num_threads(1)
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    started.send(os.getpid())


def _end_with(lifeline: Connection) -> None:
    try:
        lifeline.recv()
    except (EOFError, OSError):
        os._exit(1)
