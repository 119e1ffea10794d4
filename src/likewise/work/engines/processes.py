"""Worker processes of this machine, by loky: reused by later calls, replaced when lost, ended with this process."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future
from typing import Any

import torch

from likewise.errors import InputError, WorkerError, first_line
from likewise.work.engines.base import Engine, Remote, engine

# with psutil, loky takes what a worker keeps between tasks for a leak
_ENVIRONMENT = {"LOKY_MAX_MEMORY_LEAK_SIZE": "1e18"}


@engine("processes")
def processes(count: str | None, *, workers: int | None = None) -> Engine:
    """That many worker processes, one per core by default."""
    if count is not None and not (count.isascii() and count.isdigit() and int(count)):
        raise InputError(
            f"engine={f'processes:{count}'!r} does not say how many processes, at least 1. Write it like "
            "'processes:2', or 'processes' for one per core."
        )
    pool = Processes(int(count or workers or torch.get_num_threads()))
    return Remote(pool.submit, pool.workers, pool.close)


class Processes:
    """The pool of worker processes, which starts again when one of them was lost."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._executor: Any = None

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Hand a task to the workers, which are started if there are none."""
        while True:
            executor = self._started()
            try:
                return executor.submit(function, *arguments)
            except BrokenExecutor:  # a worker was lost since
                continue

    def _started(self) -> Any:
        try:
            try:
                executor = self._reusable()
            except BrokenExecutor:  # one that was killed while it started; another time it is not chance
                executor = self._reusable()
        except (BrokenExecutor, EOFError, OSError) as error:
            raise WorkerError(
                f"worker processes cannot be started: {first_line(error)}. Leave the engine out."
            ) from error
        self._executor = executor
        return executor

    def _reusable(self) -> Any:
        from loky import get_reusable_executor

        executor = get_reusable_executor(self.workers, initializer=_begin, initargs=(os.getpid(),), env=_ENVIRONMENT)
        if executor is not self._executor:  # workers that cannot start are not to be taken for lost tasks
            executor.submit(int).result()
        return executor

    def close(self, finished: bool) -> None:
        """End the workers at once if they have not finished; otherwise they end when idle."""
        if not finished and self._executor is not None:
            self._executor.shutdown(kill_workers=True)


def _begin(parent: int) -> None:
    """A worker leaves a Ctrl-C to the process that started it, and ends when that process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
