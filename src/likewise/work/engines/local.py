"""This machine: tasks on threads of this process, which share what was computed."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

import torch
from threadpoolctl import threadpool_limits

S = TypeVar("S")
T = TypeVar("T")


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
