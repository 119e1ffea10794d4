"""The one loop over pairs: what is to be scored, in which order and from which shared work, and what has been.

Per-network work is shared by all pairs and measures through one workspace; measures that are inner products
of n x n matrices are filled for all pairs in one pass; the rest goes pair by pair, several at a time, each on
one thread. Scores stand in arrays: with many networks, an object per pair would outweigh the views.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from likewise import __version__
from likewise._base.machine import is_out_of_memory, single_threaded
from likewise._base.progress import Progress
from likewise._base.warnings import warn
from likewise.comparison.keys import measure_key, pair_key, score_key, view_key
from likewise.errors import (
    FailedMeasureWarning,
    InputError,
    LikewiseError,
    MeasureError,
    UndefinedError,
)
from likewise.matrices.similarity import SimilarityMatrix
from likewise.measures.facts import Measure
from likewise.measures.kernels import (
    Distance,
    InnerProducts,
    Kernel,
    Linear,
    can_prepare,
    groups_in_memory,
    inner_products,
)
from likewise.measures.pair import Pair
from likewise.measures.representation import Representation
from likewise.measures.saturation import saturated
from likewise.measures.workspace import Workspace
from likewise.views import Activations
from likewise.views.cache import VIEWS, put_view
from likewise.work.engines import Engine, Local
from likewise.work.store import Store

Networks = Mapping[int, Representation] | Sequence[Representation]
Item = tuple[int, int, int]  # which measure, of which network, to which
MANY = 1000  # inputs from which what follows from one network is worth the start of threads


class Outcome(NamedTuple):
    """A score, or NaN and the reason why there is none.

    `final` says that the inputs are the reason. A function that failed may be mended, or what it
    calls, and a worker may be killed by anything: such pairs are not stored, and tried again.
    """

    value: float
    reason: str = ""
    final: bool = True


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
        if is_out_of_memory(error):
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


class Job:
    """What is to be scored, and what has been: `values[k, i, j]` is measure k of networks i and j."""

    def __init__(self, names: list[str], views: list[Activations], measures: list[Measure]) -> None:
        self.names, self.views, self.measures = names, views, measures
        m = len(views)
        self.values = np.full((len(measures), m, m), np.nan)
        for measure, grid in zip(measures, self.values, strict=True):
            if measure.info.identity is not None:
                np.fill_diagonal(grid, measure.info.identity)
        self.reasons: dict[Item, str] = {}
        self.failed: dict[Item, str] = {}
        self.files: list[tuple[Path, ...]] = []  # of the views, once they are in a store
        self.wanted = np.stack([self._wanted(measure) for measure in measures])

    def _wanted(self, measure: Measure) -> np.ndarray:
        """Ordered pairs to compute; the diagonal too where it is not known beforehand."""
        m = len(self.views)
        pairs = np.triu(np.ones((m, m), dtype=bool), 1)
        if not measure.info.symmetric:
            pairs |= pairs.T
        if measure.info.identity is None or m == 1:
            np.fill_diagonal(pairs, True)
        return pairs

    @property
    def total(self) -> int:
        """How many scores are wanted."""
        return int(self.wanted.sum())

    def record(self, item: Item, result: Outcome) -> None:
        """Write a score, or why it is undefined, into the matrix of its measure."""
        k, i, j = item
        self.values[item] = result.value
        if self.measures[k].info.symmetric:
            self.values[k, j, i] = result.value
        if result.reason:
            self.reasons[item] = result.reason
        if not result.final:
            self.failed[item] = result.reason

    def matrix(self, measure: Measure, about: Mapping[str, Any]) -> SimilarityMatrix:
        """The finished matrix of a measure, with what is known of the networks."""
        k = self.measures.index(measure)
        reasons = {}
        for (which, i, j), reason in self.reasons.items():
            if which == k:
                reasons[self.names[i], self.names[j]] = reason
                if measure.info.symmetric:
                    reasons[self.names[j], self.names[i]] = reason
        return SimilarityMatrix(
            names=self.names,
            values=self.values[k],
            measure=measure.key,
            larger_is=measure.info.larger_is,
            bounds=measure.info.bounds,
            aliases=measure.info.aliases,
            reasons=reasons,
            about={"likewise": __version__, "n": self.views[0].n, **about},
            saturated=self._saturated(measure, k),
        )

    def _saturated(self, measure: Measure, k: int) -> dict[tuple[str, str], str]:
        """Pairs whose score any network of their widths would get, with the reason."""
        found = {}
        for i, j in np.argwhere(~np.isnan(self.values[k])) if measure.saturation else ():
            a, b = self.views[i], self.views[j]
            reason = saturated(measure, float(self.values[k, i, j]), (a.n, a.d, b.d))
            if i != j and reason:
                found[self.names[i], self.names[j]] = reason
        return found

    def undefined_alone(self) -> np.ndarray:
        """Diagonals to look at: a network undefined with every other may be so with itself."""
        m = len(self.views)
        undefined = np.zeros_like(self.wanted)
        for k, measure in enumerate(self.measures):
            if measure.info.identity is not None and m > 1:
                missing = np.isnan(self.values[k]) | np.eye(m, dtype=bool)
                np.fill_diagonal(undefined[k], missing.all(axis=0) & missing.all(axis=1))
        return undefined

    def warn_of_failures(self) -> None:
        """Say once per measure that it failed, and how first."""
        for k, measure in enumerate(self.measures):
            mine = [reason for (which, _, _), reason in self.failed.items() if which == k]
            if mine:
                warn(
                    f"{measure.key} gave no score for {len(mine)} of {int(self.wanted[k].sum())} "
                    f"pairs, and the run went on. The first reason: {mine[0]}",
                    FailedMeasureWarning,
                )


class Ledger:
    """Writes down every score as it comes: in the job, in the store, on the bar."""

    def __init__(self, job: Job, store: Store | None, bar: Progress | None) -> None:
        self.job, self.store, self.bar = job, store, bar
        if store is not None:
            self._keys = [measure_key(measure) for measure in job.measures]

    def _key(self, item: Item) -> str:
        k, i, j = item
        measure = self.job.measures[k]
        a, b = (view_key(self.job.views[at], measure) for at in (i, j))
        return pair_key(a, b, self._keys[k], measure.info.symmetric)

    def take_stored(self, todo: np.ndarray) -> None:
        """Scores that are in the store already; they are no longer to do."""
        if self.store is None:
            return
        open_items = np.argwhere(todo)
        for start in range(0, len(open_items), 5000):
            items = [(int(k), int(i), int(j)) for k, i, j in open_items[start : start + 5000]]
            keys = [self._key(item) for item in items]
            known = self.store.find(keys)
            for item, key in zip(items, keys, strict=True):
                if key in known:
                    self.job.record(item, Outcome(*known[key]))
                    todo[item] = False
                    self._advance()

    def record(self, item: Item, result: Outcome) -> None:
        """Record a score in the job and in the store, and move the bar on."""
        self.job.record(item, result)
        if self.store is not None and result.final:
            k, i, j = item
            key, name = self._key(item), self.job.measures[k].key
            a, b = self.job.views[i].digest, self.job.views[j].digest
            self.store.put(key, result.value, result.reason, name, a, b)
        self._advance()

    def _advance(self) -> None:
        if self.bar is not None:
            self.bar.advance()


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
    measures = [m for k, m in enumerate(job.measures) if todo[k].any()]
    workspace = Workspace(limit, networks=len(used), distances=want_distances(measures))
    reps = {i: Representation(job.views[i], workspace) for i in used}
    side_by_side = workspace.keeps_squares(reps[used[0]].n)
    place = engine if side_by_side else Local(1)  # where memory is short, one at a time on all cores
    networks = list(reps.values())
    kernels = kernels_of(measures, len(pairs), networks)
    if side_by_side and networks[0].n >= MANY:
        prepare(kernels, networks, place)
    with single_threaded() if side_by_side else nullcontext():
        tables = inner_products(kernels, networks)

    def score(pair: tuple[int, int]) -> list[tuple[Item, Outcome]]:
        return list(score_items(items_of(todo, *pair), job.measures, reps, tables=tables))

    with closing(place.run(score, _tiled(pairs, reps))) as results:
        for _, scores in results:
            for item, result in scores:
                ledger.record(item, result)


def prepare(kernels: Iterable[Kernel], networks: Iterable[Representation], place: Local) -> None:
    """Compute what each network's kernels are made from, several networks at a time."""
    with closing(place.run(lambda rep: [can_prepare(kernel, rep) for kernel in kernels], networks)) as done:
        deque(done, maxlen=0)


def unordered_pairs(todo: np.ndarray) -> np.ndarray:
    """The pairs of networks with something to do, (pairs, 2), the smaller number first."""
    some = todo.any(axis=0)
    return np.argwhere(np.triu(some | some.T))


def items_of(todo: np.ndarray, i: int, j: int) -> list[Item]:
    """What is to do for two networks, in both directions."""
    items = [(int(k), i, j) for k in np.flatnonzero(todo[:, i, j])]
    return items + [(int(k), j, i) for k in np.flatnonzero(todo[:, j, i]) if i != j]


def want_distances(measures: Iterable[Measure]) -> bool:
    """Whether some measure reads the distances of every network."""
    return any(Distance() in m.kernels for m in measures)


def kernels_of(measures: Sequence[Measure], pairs: int, views: Sequence[Activations | Representation]) -> set[Kernel]:
    """Kernels whose inner products are best taken for many pairs at once."""
    kernels = {kernel for m in measures for kernel in m.kernels}
    if Linear() in kernels and _cross_is_cheaper(measures, pairs, views):
        kernels.discard(Linear())
    return kernels


def _cross_is_cheaper(measures: Sequence[Measure], pairs: int, views: Sequence[Activations | Representation]) -> bool:
    """Whether linear inner products should come from the pairs' cross-covariances."""
    some = views[0]
    if any(view.d > view.n for view in views):
        return False
    if any(m.info.cross and Linear() not in m.kernels for m in measures):
        return True  # they are computed anyway
    return pairs * some.d < len(views) * some.n


def _tiled(pairs: np.ndarray, reps: Mapping[int, Representation]) -> Iterator[tuple[int, int]]:
    """Pairs by blocks of networks, so that what was moved to disk comes back seldom."""
    block = max(1, len(groups_in_memory(list(reps.values()))[0]) // 2)
    return ((int(i), int(j)) for i, j in tile_order(pairs, block))


def tile_order(pairs: np.ndarray, side: int) -> np.ndarray:
    """Pairs of networks in the order of tiles that many networks wide."""
    i, j = pairs.T
    return pairs[np.lexsort((j, i, j // side, i // side))]


def representations(views: list[Activations], limit: int) -> list[Representation]:
    """The networks in one workspace that keeps what shuffles and draws take by index."""
    workspace = Workspace(limit, networks=len(views), resampled=True)
    return [Representation(view, workspace) for view in views]


def score_table(
    measure: Measure,
    left: Sequence[Representation],
    right: Sequence[Representation],
    tables: dict[Kernel, InnerProducts],
) -> np.ndarray:
    """Scores of all pairs of different networks; the diagonal is the network with itself."""
    m, both = len(left), not measure.info.symmetric
    values = np.full((m, m), np.nan)
    items = [(0, i, j) for i in range(m) for j in range(m) if i < j or (both and i > j)]
    for (_, i, j), result in score_items(items, [measure], left, right, tables):
        values[i, j] = result.value
        if not both:
            values[j, i] = result.value
    if measure.info.identity is not None:
        np.fill_diagonal(values, measure.info.identity)
    return values
