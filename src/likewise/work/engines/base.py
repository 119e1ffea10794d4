"""What an engine is, and how one is found by its name.

An engine runs a function over tasks and yields results as they come. `Local` runs them on threads of this
process; `Remote` sends them to an executor: worker processes, Dask, Ray, or whatever looks like
`concurrent.futures.Executor`. A module of this package adds an engine with the decorator `engine`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, TypeVar

import torch
from threadpoolctl import threadpool_limits

from likewise._base.registry import Registry
from likewise.errors import InputError, WorkerError, brief

S = TypeVar("S")
T = TypeVar("T")
_GAVE_UP = ("KilledWorker", "WorkerCrashedError")  # what Dask and Ray raise for a task that ended its workers


@dataclass(frozen=True)
class WorkerDied:
    """Stands for the result of a task that ended its worker, the second time while it ran alone."""

    reason: str


class Engine(Protocol):
    """Runs tasks, `workers` at a time."""

    workers: int

    def run(self, function: Callable[[S], T], tasks: Iterable[S]) -> Generator[tuple[S, T | WorkerDied], None, None]:
        """Tasks with their results, as they come. Close it to stop."""
        ...


Maker = Callable[[str | None], Engine]
ENGINES: Registry[Maker] = Registry("engine", group="likewise.engines", modules=("likewise.work.engines.*",))


def engine(name: str) -> Callable[[Maker], Maker]:
    """Name a function that makes an engine; it receives what follows the name and a colon, if anything does."""

    def register(make: Maker) -> Maker:
        return ENGINES.add(name, make, module=make.__module__)

    return register


def engine_of(engine: Any) -> Engine:
    """None, "processes[:N]", "dask[:ADDRESS]", "ray[:ADDRESS]", a Dask client, any executor, or an engine."""
    if engine is None:
        return Local()
    if isinstance(engine, str):
        name, colon, argument = engine.partition(":")
        if name not in ENGINES:
            *names, last = ENGINES.names()
            raise InputError(f"no engine named {engine!r}. There are {', '.join(names)} and {last}.")
        return ENGINES.get(name)(argument if colon else None)
    if isinstance(engine, (Local, Remote)):
        return engine
    if hasattr(engine, "get_executor"):  # a Dask client
        return Remote(engine.get_executor().submit, max(1, len(engine.nthreads())))
    if hasattr(engine, "submit"):
        return Remote(engine.submit, int(getattr(engine, "_max_workers", 4)))
    raise InputError(f"{brief(engine)} is not an engine. Pass None, 'processes', 'dask', 'ray', or an executor.")


class Local:
    """Threads of this process. A function may be a closure, and tasks any objects."""

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
    """Other processes, here or elsewhere: `submit` hands them a task, `close` ends those that were started for it.

    Where a worker is lost, every task that was under way runs again, alone: the one that ends its worker a second
    time yields `WorkerDied`, and all others go on. `submit` starts workers anew, or raises what says that it cannot.
    """

    def __init__(
        self, submit: Callable[..., Future[Any]], workers: int, close: Callable[[bool], None] = lambda finished: None
    ) -> None:
        self.workers = workers
        self._submit, self._close = submit, close

    def run(self, function: Callable[[S], T], tasks: Iterable[S]) -> Generator[tuple[S, T | WorkerDied], None, None]:
        """Tasks with their results, as they come. Close it to stop, and the workers started for it."""
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
                for task, future in _settled(running):
                    error = future.exception()
                    if error is None:
                        yield task, future.result()
                    elif type(error).__name__ in _GAVE_UP:
                        yield task, WorkerDied(f"its worker was lost ({type(error).__name__}: {error})")
                    elif not isinstance(error, BrokenExecutor):
                        raise error
                    elif alone:
                        yield task, WorkerDied("the process that computed it was killed, twice")
                    else:
                        again.append(task)
        finally:
            for future in running:
                future.cancel()
            self._close(finished)

    def _send(self, function: Callable[[S], T], tasks: Iterator[S], running: dict[Future[T], S]) -> None:
        """Have one task more under way than there are workers, so that none of them waits."""
        for task in islice(tasks, self.workers + 1 - len(running)):
            try:
                running[self._submit(function, task)] = task
            except BrokenExecutor as error:
                raise WorkerError(
                    f"the executor given as engine lost a worker and takes no more work ({error}). Pass a "
                    "new one, or engine='processes', which starts workers again; with a store, what was "
                    "computed is kept."
                ) from error


def _settled(running: dict[Future[T], S]) -> list[tuple[S, Future[T]]]:
    """Wait for some of the running tasks, for all of them where a worker was lost."""
    done, _ = wait(running, return_when=FIRST_COMPLETED)
    if any(isinstance(future.exception(), BrokenExecutor) for future in done):
        done, _ = wait(running)
    return [(running.pop(future), future) for future in done]
