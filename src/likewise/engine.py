"""Where work runs: this machine's cores, other processes, or a cluster.

Small matrices lose more to waking threads than they gain, so one comparison runs on one thread, and several
run beside each other. Bigger than one machine is the business of Dask and Ray: whatever looks like
`concurrent.futures.Executor` can be an engine. A task is a block of pairs; it reads its views from files and
sends back numbers.
"""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from threadpoolctl import threadpool_limits

from likewise._optional import require
from likewise.errors import InputError, brief

if TYPE_CHECKING:
    from likewise.measures.facts import Measure
    from likewise.store import Store
    from likewise.views import Activations

S = TypeVar("S")
T = TypeVar("T")
SMALL = 5e9  # multiplications; below, one thread is as fast as several


@contextmanager
def one_thread(*, for_inputs: tuple[Any, ...] = ()) -> Iterator[None]:
    """Keep torch to one thread inside; if inputs are named, only where they are small."""
    threads = torch.get_num_threads()
    if threads == 1 or any(_work(values) > SMALL for values in for_inputs):
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def calm() -> Iterator[None]:
    """Keep torch and every BLAS to one thread inside: work runs beside work, not threads in it."""
    with one_thread(), threadpool_limits(1, user_api="blas"):
        yield


def _work(values: Any) -> float:
    """Multiplications of an n x n matrix of inner products."""
    shape: tuple[int, ...] = getattr(getattr(values, "values", values), "shape", ())
    return float(shape[0]) * float(math.prod(shape)) if len(shape) > 1 else 0.0


class Engine:
    """This machine: pairs on threads that share what was computed."""

    remote = False

    def score_remotely(self, *work: Any) -> None:
        """Only engines elsewhere do."""
        raise InputError("this engine runs here.")

    def map(self, score: Callable[[S], T], items: Iterable[S], beside: bool) -> Iterator[T]:
        """Results as they come; one at a time, on all cores, where memory is short."""
        workers = torch.get_num_threads()
        if not beside or workers == 1:
            yield from map(score, items)
            return
        pool = ThreadPoolExecutor(workers, initializer=lambda: torch.set_num_threads(1))
        try:
            with threadpool_limits(1, user_api="blas"):
                for future in as_completed([pool.submit(score, item) for item in items]):
                    yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


class Remote(Engine):
    """Other processes, here or elsewhere, through an executor."""

    remote = True

    def __init__(self, executor: Any, *, tasks: int, close: bool = False) -> None:
        self.executor, self.tasks, self.close = executor, tasks, close

    def score_remotely(
        self,
        views: list[Activations],
        pending: Mapping[tuple[int, int], list[tuple[Measure, int, int]]],
        limit: int,
        record: Callable[[Measure, int, int, tuple[float, str]], None],
        store: Store | None,
    ) -> None:
        """Send blocks of pairs out and record scores as they come back."""
        from likewise.store import Store

        with TemporaryDirectory(prefix="likewise-", ignore_cleanup_errors=True) as folder:
            place = store if store is not None else Store(folder)
            paths = [str(place.save_view(view)) for view in views]
            names = [view.name for view in views]
            measures = {m.key: m for items in pending.values() for m, _, _ in items}
            recipes = {key: recipe(m) for key, m in measures.items()}
            futures: list[Future[Any]] = []
            for block in _blocks(list(pending), self.tasks):
                work = [(pair, [(m.key, i, j) for m, i, j in pending[pair]]) for pair in block]
                futures.append(
                    self.executor.submit(
                        score_block, paths, names, work, recipes, limit // self.tasks
                    )
                )
            try:
                for future in as_completed(futures):
                    for key, i, j, result in future.result():
                        record(measures[key], i, j, result)
            finally:
                if self.close:
                    self.executor.shutdown(cancel_futures=True)
                if place is not store:
                    place.close()


def recipe(measure: Measure) -> tuple[Any, str | None, dict[str, Any]]:
    """A measure as something that can be sent: its name, or the user's function itself."""
    from likewise.measures.registry import registry

    known = measure.name in registry and measure.info.family != "custom"
    what = measure.name if known else getattr(measure.function, "__wrapped__", measure.function)
    return what, measure.info.variant, dict(measure.options)


def score_block(
    paths: list[str], names: list[str], work: list[Any], recipes: Mapping[str, Any], limit: int
) -> list[tuple[str, int, int, tuple[float, str]]]:
    """Score some pairs in this process; the whole task of a worker."""
    from pathlib import Path

    from likewise.job import filled_tables, score_pair
    from likewise.measures.registry import chosen
    from likewise.measures.representation import Representation
    from likewise.measures.workspace import Workspace
    from likewise.store import read_view

    torch.set_num_threads(1)
    measures = {
        key: chosen(what)[0].bind(variant, **options)
        for key, (what, variant, options) in recipes.items()
    }
    pending = {tuple(pair): [(measures[key], i, j) for key, i, j in items] for pair, items in work}
    used = sorted({i for pair in pending for i in pair})
    workspace = Workspace(limit, networks=len(used))
    reps = {i: Representation(read_view(Path(paths[i])).named(names[i]), workspace) for i in used}
    tables = filled_tables(pending, reps, workspace)
    by_key = {id(measure): key for key, measure in measures.items()}
    return [
        (by_key[id(measure)], i, j, result)
        for pair, items in pending.items()
        for measure, i, j, result in score_pair(pair, items, reps, tables)
    ]


def _blocks(pairs: list[tuple[int, int]], tasks: int) -> list[list[tuple[int, int]]]:
    """Pairs in square blocks of networks, so that a task needs few networks."""
    networks = 1 + max(j for _, j in pairs)
    side = max(1, math.ceil(networks / max(1, math.isqrt(2 * tasks))))
    blocks: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for i, j in pairs:
        blocks.setdefault((i // side, j // side), []).append((i, j))
    return list(blocks.values())


def engine_of(engine: Any) -> Engine:
    """None, "processes[:N]", "dask", "ray", a Dask client, or any executor."""
    if engine is None or isinstance(engine, Engine):
        return engine or Engine()
    if isinstance(engine, str):
        return _named(engine)
    if hasattr(engine, "get_executor"):  # a Dask client
        return Remote(engine.get_executor(), tasks=2 * max(1, len(engine.nthreads())))
    if hasattr(engine, "submit"):
        return Remote(engine, tasks=2 * int(getattr(engine, "_max_workers", 4)))
    raise InputError(
        f"{brief(engine)} is not an engine. Pass None, 'processes', 'dask', 'ray', or an executor."
    )


def _named(name: str) -> Engine:
    kind, _, count = name.partition(":")
    if kind == "processes" and (not count or count.isdigit()):
        workers = int(count or torch.get_num_threads())
        context = multiprocessing.get_context("spawn")
        return Remote(
            ProcessPoolExecutor(workers, mp_context=context), tasks=2 * workers, close=True
        )
    if kind == "dask":
        return engine_of(require("distributed", extra="distributed", to="run on Dask").Client())
    if kind == "ray":
        return Remote(_Ray(require("ray", extra="distributed", to="run on Ray")), tasks=16)
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
