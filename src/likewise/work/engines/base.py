"""Where work runs: this machine's cores, other processes, or a cluster.

An engine runs a function over tasks and hands back results as they come. It knows nothing of measures:
`Local` runs tasks on threads of this process, which share what was computed; `Remote` sends them to an
executor. Bigger than one machine is the business of Dask and Ray: whatever looks like
`concurrent.futures.Executor` can be an engine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import torch
from threadpoolctl import threadpool_limits

from likewise._base.optional import require
from likewise.errors import InputError, WorkerError, brief
from likewise.work.engines.processes import Processes

S = TypeVar("S")
T = TypeVar("T")
_GAVE_UP = ("KilledWorker", "WorkerCrashedError")  # what Dask and Ray say of a task that failed


@dataclass(frozen=True)
class Lost:
    """Stands for the result of a task that ended its worker, the second time with none beside it."""

    reason: str


class Local:
    """This machine: tasks on threads of this process."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or torch.get_num_threads()

    def run(self, function: Callable[[S], T], tasks: Iterable[S]) -> Generator[tuple[S, T], None, None]:
        """Tasks with their results, as they come. Close it to stop."""
        if self.workers == 1:
            yield from ((task, function(task)) for task in tasks)
            return
        pool = ThreadPoolExecutor(self.workers, initializer=lambda: torch.set_num_threads(1))
        running: dict[Future[T], S] = {}
        try:
            with threadpool_limits(1, user_api="blas"):
                for task in tasks:
                    running[pool.submit(function, task)] = task
                    if len(running) >= 8 * self.workers:
                        yield from _finished(running)
                while running:
                    yield from _finished(running)
        finally:
            pool.shutdown(cancel_futures=True)


def _finished(running: dict[Future[T], S]) -> Iterator[tuple[S, T]]:
    """Wait for some of the running tasks; they are no longer among the running."""
    done, _ = wait(running, return_when=FIRST_COMPLETED)
    for future in done:
        yield running.pop(future), future.result()


class Remote:
    """Other processes, here or elsewhere, through an executor.

    Where a worker is lost, every task that was under way runs again, alone: the one that ends its
    worker a second time is handed back as `Lost`, and all others go on.
    """

    def __init__(self, executor: Any, workers: int) -> None:
        self.executor, self.workers = executor, workers

    def run(self, function: Callable[[S], T], tasks: Iterable[S]) -> Generator[tuple[S, T | Lost], None, None]:
        """Tasks with their results, as they come. Close it to stop, and its workers with it."""
        fresh, again = iter(tasks), deque[S]()
        running: dict[Future[T], S] = {}
        finished = False
        try:
            while True:
                alone = bool(again)
                self._send(function, iter([again.popleft()]) if alone else fresh, running)
                if not running:
                    finished = True
                    return
                broken = None
                for task, future in _settled(running):
                    error = future.exception()
                    if error is None:
                        yield task, future.result()
                    elif type(error).__name__ in _GAVE_UP:
                        yield task, Lost(f"its worker was lost ({type(error).__name__}: {error})")
                    elif not isinstance(error, BrokenExecutor):
                        raise error
                    else:
                        broken = error
                        if alone:
                            yield task, Lost("the process that computed it was killed, twice")
                        else:
                            again.append(task)
                if broken is not None:
                    self._restart(broken)
        finally:
            for future in running:
                future.cancel()
            if isinstance(self.executor, Processes):  # others end those they started
                self.executor.close(at_once=not finished)

    def _restart(self, error: BaseException) -> None:
        if not isinstance(self.executor, Processes):
            raise WorkerError(
                f"the executor given as engine lost a worker and takes no more work ({error}). Pass a "
                "new one, or engine='processes', which starts workers again; with a store, what was "
                "computed is kept."
            ) from error
        self.executor.restart(error)

    def _send(self, function: Callable[[S], T], tasks: Iterator[S], running: dict[Future[T], S]) -> None:
        """Have one task more under way than there are workers, so that none of them waits."""
        for task in islice(tasks, self.workers + 1 - len(running)):
            try:
                future = self.executor.submit(function, task)
            except BrokenExecutor as error:  # a worker was lost while it had nothing to do
                future = Future()
                future.set_exception(error)
            running[future] = task


def _settled(running: dict[Future[T], S]) -> list[tuple[S, Future[T]]]:
    """Wait for some of the running tasks, for all of them where a worker was lost."""
    done, _ = wait(running, return_when=FIRST_COMPLETED)
    if any(isinstance(future.exception(), BrokenExecutor) for future in done):
        done, _ = wait(running)
    return [(running.pop(future), future) for future in done]


Engine = Local | Remote


def engine_of(engine: Any) -> Engine:
    """None, "processes[:N]", "dask", "ray", a Dask client, or any executor."""
    if engine is None or isinstance(engine, (Local, Remote)):
        return engine or Local()
    if isinstance(engine, str):
        return _named(engine)
    if hasattr(engine, "get_executor"):  # a Dask client
        return Remote(engine.get_executor(), max(1, len(engine.nthreads())))
    if hasattr(engine, "submit"):
        return Remote(engine, int(getattr(engine, "_max_workers", 4)))
    raise InputError(f"{brief(engine)} is not an engine. Pass None, 'processes', 'dask', 'ray', or an executor.")


def _named(name: str) -> Engine:
    kind, colon, count = name.partition(":")
    if kind == "processes":
        if colon and not (count.isascii() and count.isdigit() and int(count)):
            raise InputError(
                f"engine={name!r} does not say how many processes, at least 1. Write it like "
                "'processes:2', or 'processes' for one per core."
            )
        workers = int(count or torch.get_num_threads())
        return Remote(Processes(workers), workers)
    if name == "dask":
        return engine_of(require("distributed", extra="distributed", to="run on Dask").Client())
    if name == "ray":
        return Remote(_Ray(require("ray", extra="distributed", to="run on Ray")), 8)
    raise InputError(f"no engine named {name!r}. There are processes, dask and ray.")


class _Ray:
    """Ray as an executor."""

    def __init__(self, ray: Any) -> None:
        self.ray = ray
        if not ray.is_initialized():
            ray.init(log_to_driver=False)

    def submit(self, function: Callable[..., Any], *given: Any) -> Future[Any]:
        future: Future[Any] = self.ray.remote(function).remote(*given).future()
        return future
