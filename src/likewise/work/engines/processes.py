"""Worker processes of this machine, by loky: reused by later calls, replaced when lost, ended with this process.

With `num_gpus` every process has GPUs of its own, and sees no others: then there is a pool of one process for each.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future
from typing import Any

import torch

from likewise.errors import InputError, WorkerError, brief, first_line
from likewise.work.engines.base import Engine, Remote, engine, engine_settings

# with psutil, loky takes what a worker keeps between tasks for a leak
_ENVIRONMENT = {"LOKY_MAX_MEMORY_LEAK_SIZE": "1e18"}
_GPUS = "CUDA_VISIBLE_DEVICES"


@engine("processes")
def processes(count: str | None, *, workers: int | None = None, num_gpus: int | None = None) -> Engine:
    """That many worker processes, one per core by default; with `num_gpus`, one for every so many GPUs."""
    if count is not None and not (count.isascii() and count.isdigit() and int(count)):
        raise InputError(
            f"engine={f'processes:{count}'!r} does not say how many processes, at least 1. Write it like "
            "'processes:2', or 'processes' for one per core."
        )
    if count is not None:
        engine_settings("processes", int(count), None)
    pool: Processes | GpuProcesses
    if num_gpus is None:
        pool = Processes(int(count or workers or torch.get_num_threads()))
    else:
        pool = GpuProcesses(_shares(num_gpus, int(count or workers or 0)))
    return Remote(pool.submit, pool.workers, pool.close)


def _shares(size: int, count: int) -> list[str]:
    """The GPUs of each process, so many apiece; of as many processes as there are shares, where no count is given."""
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise InputError(f"num_gpus is {brief(size)}. Give how many GPUs every process has, at least 1.")
    there = torch.cuda.device_count()
    gpus = os.environ.get(_GPUS, ",".join(map(str, range(there)))).split(",")[:there]
    shares = [",".join(gpus[start : start + size]) for start in range(0, there - size + 1, size)]
    if not shares or count > len(shares):
        raise InputError(
            f"{max(1, count)} processes with {size} GPUs each need {size * max(1, count)}, and there are {there} here. "
            "Ask for fewer, or leave num_gpus out."
        )
    return shares[: count or None]


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


class GpuProcesses:
    """One process per share of the GPUs; a task goes to the one with the fewest."""

    def __init__(self, shares: list[str]) -> None:
        self.workers = len(shares)
        self._shares, self._waiting = shares, [0] * len(shares)
        self._pools: dict[int, Any] = {}
        self._lock = threading.Lock()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Hand a task to a process, which is started if it does not run."""
        with self._lock:
            number = min(range(self.workers), key=self._waiting.__getitem__)
            try:
                future: Future[Any] = self._pool(number).submit(function, *arguments)
            except BrokenExecutor:  # it was lost since
                del self._pools[number]
                future = self._pool(number).submit(function, *arguments)
            self._waiting[number] += 1
        future.add_done_callback(lambda _: self._free(number))
        return future

    def _pool(self, number: int) -> Any:
        from loky import ProcessPoolExecutor

        if number not in self._pools:
            environment = {**_ENVIRONMENT, _GPUS: self._shares[number]}
            self._pools[number] = ProcessPoolExecutor(1, initializer=_begin, initargs=(os.getpid(),), env=environment)
        return self._pools[number]

    def _free(self, number: int) -> None:
        with self._lock:
            self._waiting[number] -= 1

    def close(self, finished: bool) -> None:
        """End the processes, which hold memory of their GPUs."""
        pools, self._pools = self._pools, {}
        for pool in pools.values():
            pool.shutdown(kill_workers=not finished)


def _begin(parent: int) -> None:
    """A worker leaves a Ctrl-C to the process that started it, and ends when that process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
