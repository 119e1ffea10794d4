"""The one loop over pairs: in which order they are scored, and from which shared work.

Per-network work is shared by all pairs and measures through one workspace; measures that are inner products
of n x n matrices are filled for all pairs in one pass; the rest goes pair by pair, several at a time, each on
one thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext

import numpy as np

from likewise._base.machine import single_threaded
from likewise._base.progress import Progress
from likewise.comparison.scores import Item, Job, Ledger, Outcome, score_key
from likewise.errors import (
    InputError,
    LikewiseError,
    MeasureError,
    UndefinedError,
)
from likewise.measures.facts import Measure, out_of_memory
from likewise.measures.kernels import InnerProducts, Kernel, Linear, fill
from likewise.measures.pair import Pair
from likewise.measures.representation import Representation
from likewise.measures.workspace import Workspace
from likewise.views import Activations
from likewise.views.cache import VIEWS, put_view
from likewise.work.engines import Engine, Local
from likewise.work.store import Store

Networks = Mapping[int, Representation] | Sequence[Representation]


def outcome(measure: Measure, pair: Pair) -> Outcome:
    """Score a pair; only a lack of memory, an interrupt or a missing part ends the run."""
    try:
        return Outcome(measure.score(pair))
    except (UndefinedError, InputError) as error:
        return Outcome(float("nan"), str(error))
    except MeasureError as error:
        return Outcome(float("nan"), str(error), final=False)
    except LikewiseError:
        raise
    except Exception as error:
        if out_of_memory(error):
            raise
        reason = f"{measure.key} failed on {pair}: {type(error).__name__}: {error}"
        return Outcome(float("nan"), reason, final=False)


def attempt(measure: Measure, pair: Pair) -> tuple[float, str]:
    """A score, or NaN and the reason why there is none."""
    return outcome(measure, pair)[:2]


def measure_pair(pair: Pair, measure: Measure, store: Store | None) -> float:
    """One score, from the store where it is there, else kept there."""
    if store is None:
        return measure.score(pair)
    key = score_key(pair.a.view, pair.b.view, measure)
    value, reason = store.find([key]).get(key, (None, ""))
    if value is None:
        try:
            value = measure.score(pair)
        except (UndefinedError, InputError) as error:
            value, reason = float("nan"), str(error)
        store.put(key, value, reason, measure.key, pair.a.view.digest, pair.b.view.digest)
    if reason:
        raise UndefinedError(reason)
    return value


def score_all(job: Job, engine: Engine, limit: int, store: Store | None, bar: Progress | None) -> None:
    """Score what is not in the store, pair by pair, and keep each score as it comes."""
    if store is not None:
        job.files = [put_view(store.artifacts(VIEWS), view) for view in job.views]
    todo = job.wanted.copy()
    ledger = Ledger(job, store, bar)
    ledger.take_stored(todo)
    _score(todo, engine, limit, ledger)
    _score(job.undefined_alone(), engine, limit, Ledger(job, None, None))
    job.warn_of_failures()


def _score(todo: np.ndarray, engine: Engine, limit: int, ledger: Ledger) -> None:
    if not todo.any():
        return
    if isinstance(engine, Local):
        _score_here(todo, engine, limit, ledger)
        return
    from likewise.comparison.blocks import score_remotely

    score_remotely(todo, engine, limit, ledger)


def _score_here(todo: np.ndarray, engine: Local, limit: int, ledger: Ledger) -> None:
    job, pairs = ledger.job, unordered_pairs(todo)
    used = [int(i) for i in np.unique(pairs)]
    workspace = Workspace(limit, networks=len(used))
    reps = {i: Representation(job.views[i], workspace) for i in used}
    side_by_side = workspace.keeps_squares(reps[used[0]].n)
    measures = [m for k, m in enumerate(job.measures) if todo[k].any()]
    with single_threaded() if side_by_side else nullcontext():
        tables = inner_products(measures, len(pairs), reps, workspace)

    def score(pair: tuple[int, int]) -> list[tuple[Item, Outcome]]:
        return list(score_items(items_of(todo, *pair), job.measures, reps, tables=tables))

    place = engine if side_by_side else Local(1)  # where memory is short, one at a time on all cores
    with closing(place.run(score, _tiled(pairs, reps, limit))) as results:
        for _, scores in results:
            for item, result in scores:
                ledger.record(item, result)


def unordered_pairs(todo: np.ndarray) -> np.ndarray:
    """The pairs of networks with something to do, (pairs, 2), the smaller number first."""
    some = todo.any(axis=0)
    return np.argwhere(np.triu(some | some.T))


def items_of(todo: np.ndarray, i: int, j: int) -> list[Item]:
    """What is to do for two networks, in both directions."""
    items = [(int(k), i, j) for k in np.flatnonzero(todo[:, i, j])]
    return items + [(int(k), j, i) for k in np.flatnonzero(todo[:, j, i]) if i != j]


def score_items(
    items: Iterable[Item],
    measures: Sequence[Measure],
    left: Networks,
    right: Networks | None = None,
    tables: dict[Kernel, InnerProducts] | None = None,
) -> Iterator[tuple[Item, Outcome]]:
    """The one loop over pairs: measure k of network i on the left and network j on the right, for every (k, i, j).

    Items of one pair, in both directions, belong next to each other: what they share is computed once. Without
    `right`, both networks are on the left.
    """
    place, pair = (-1, -1), None
    for k, i, j in items:
        if pair is None or place != (i, j):
            back = right is None and place == (j, i)
            pair = pair.swapped if pair is not None and back else Pair(left[i], (right or left)[j], tables)
            place = (i, j)
        yield (k, i, j), outcome(measures[k], pair)


def inner_products(
    measures: Sequence[Measure],
    pairs: int,
    reps: Mapping[int, Representation],
    workspace: Workspace,
) -> dict[Kernel, InnerProducts]:
    """Inner products of all pairs for the kernels asked for, a group of networks at a time."""
    tables: dict[Kernel, InnerProducts] = {}
    for kernel in kernels_of(measures, pairs, list(reps.values())):
        usable = [rep for rep in reps.values() if can_prepare(kernel, rep)]
        table = tables[kernel] = InnerProducts()
        groups = _groups(usable, workspace.limit)
        for p, left in enumerate(groups):
            fill(table, kernel, left)
            for right in groups[p + 1 :]:
                fill(table, kernel, left, right)
    return tables


def kernels_of(measures: Sequence[Measure], pairs: int, views: Sequence[Activations | Representation]) -> set[Kernel]:
    """Kernels whose inner products are best taken for many pairs at once."""
    kernels = {kernel for m in measures for kernel in m.kernels}
    if Linear() in kernels and _cross_is_cheaper(measures, pairs, views):
        kernels.discard(Linear())
    return kernels


def can_prepare(kernel: Kernel, rep: Representation) -> bool:
    """Whether a network has this kernel; one that has not will say so when its pairs are scored."""
    try:
        kernel.prepare(rep)
    except LikewiseError:
        return False
    return True


def _cross_is_cheaper(measures: Sequence[Measure], pairs: int, views: Sequence[Activations | Representation]) -> bool:
    """Whether linear inner products should come from the pairs' cross-covariances."""
    some = views[0]
    if any(view.d > view.n for view in views):
        return False
    if any(m.info.cross and Linear() not in m.kernels for m in measures):
        return True  # they are computed anyway
    return pairs * some.d < len(views) * some.n


def _groups(reps: list[Representation], limit: int) -> list[list[Representation]]:
    """Networks that fit into memory together, two groups at a time."""
    if not reps:
        return []
    size = 8 * reps[0].n * max(min(rep.d, 2 * rep.n) for rep in reps) * 3
    count = max(1, limit // 4 // size)
    return [reps[i : i + count] for i in range(0, len(reps), count)]


def _tiled(pairs: np.ndarray, reps: Mapping[int, Representation], limit: int) -> Iterator[tuple[int, int]]:
    """Pairs by blocks of networks, so that what was moved to disk comes back seldom."""
    block = max(1, len(_groups(list(reps.values()), limit)[0]) // 2)
    return ((int(i), int(j)) for i, j in tile_order(pairs, block))


def tile_order(pairs: np.ndarray, side: int) -> np.ndarray:
    """Pairs of networks in the order of tiles that many networks wide."""
    i, j = pairs.T
    return pairs[np.lexsort((j, i, j // side, i // side))]
