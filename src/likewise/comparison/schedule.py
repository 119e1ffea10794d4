"""What is to be scored for a set of networks, what has been, and where: in this process or in workers.

Measures that are inner products of n x n matrices are filled for all pairs in one pass; the rest goes pair by pair,
several at a time, each on one thread. Scores are in arrays: with many networks, an object per pair would outweigh
the views. In a store, the key of a score is a hash of all that it depends on.

Scores on shuffled inputs, or where some are left out, run and are kept in the same places. One order of the inputs
serves all pairs, so a block is a few draws of all of them: an array in a store, from which a killed run resumes.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from likewise import __version__
from likewise._base.arrays import Array
from likewise._base.hashing import digest, value_digest
from likewise._base.machine import one_thread
from likewise._base.progress import Progress, warn
from likewise.comparison.blocks import MOST, Files, draw_in_workers, score_in_workers
from likewise.comparison.pairs import (
    Base,
    Draws,
    Item,
    Outcome,
    can_multiply,
    items_of,
    kernels_of,
    score_items,
    score_tables,
    single_pass,
    tile_order,
    unordered_pairs,
    want_distances,
)
from likewise.errors import FailedMeasureWarning, InputError, UndefinedError
from likewise.matrices.similarity import SimilarityMatrix
from likewise.measures.function import Measure
from likewise.measures.numerics.kernels import Kernel, group_size
from likewise.measures.pair import Pair
from likewise.measures.representation import Representation
from likewise.measures.workspace import Workspace
from likewise.views import Activations
from likewise.views.cache import VIEWS, put_view
from likewise.work.engines import Engine, Local, WorkerDied
from likewise.work.store import Store

DRAWS = "draws"  # the artifacts of a store
SCORES = 500  # about as many in a block
VERSION = "1"  # of how inputs are drawn
BATCH = 5000  # scores that are stored together
MOMENT = 0.02  # seconds that pairs scored together may take
MANY = 1000  # inputs from which what follows from one network is worth the start of threads


def measure_pair(pair: Pair, measure: Measure, store: Store) -> float:
    """One score, from the store where it is there, else kept there."""
    a, b = (view_key(rep.view, measure) for rep in (pair.a, pair.b))
    key = pair_key(a, b, measure_key(measure), measure.info.symmetric)
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


def view_key(view: Activations, measure: Measure) -> str:
    """A hash of what a measure looks at."""
    return view.digest_with_network if measure.info.on == "networks" else view.digest


def pair_key(a: str, b: str, measure: str, symmetric: bool) -> str:
    """The key of a score from the digests of both views and the measure's key."""
    first, second = (b, a) if symmetric and b < a else (a, b)
    return digest([f"{first} {second} {measure}"])


def measure_key(measure: Measure) -> str:
    """A hash of everything about a measure that its scores depend on: name or code, variant, options, version."""
    options = {name: _plain(value) for name, value in sorted(measure.resolved.items())}
    # a function of the user's goes by what it computes, for want of a version; its name says nothing
    name, code = (measure.name, "") if measure.built_in else ("", value_digest(measure.original))
    facts = [name, measure.info.variant, measure.info.version, options, code]
    return digest([json.dumps(facts, sort_keys=True)])


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return value_digest(value)


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
        self.todo = np.stack([self._todo(measure) for measure in measures])

    def _todo(self, measure: Measure) -> Array:
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
        """How many scores there will be."""
        return int(self.todo.sum())

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
        reasons, n, widths = {}, self.views[0].n, {view.d for view in self.views}
        where = measure.saturation.holds if measure.saturation else lambda sizes: False
        anywhere = any(where((n, a, b)) for a in widths for b in widths)
        for i, j in np.argwhere(~np.isnan(self.values[k])) if anywhere else ():
            a, b = self.views[i], self.views[j]
            reason = measure.saturated(float(self.values[k, i, j]), (a.n, a.d, b.d))
            if i != j and reason:
                reasons[self.names[i], self.names[j]] = reason
        return reasons

    def undefined_diagonals(self) -> Array:
        """Diagonals to compute: a network undefined with every other may be so with itself."""
        m = len(self.views)
        undefined = np.zeros_like(self.todo)
        for k, measure in enumerate(self.measures):
            if measure.info.identity is not None and m > 1:
                missing = np.isnan(self.values[k]) | np.eye(m, dtype=bool)
                np.fill_diagonal(undefined[k], missing.all(axis=0) & missing.all(axis=1))
        return undefined

    def warn_of_failures(self) -> None:
        """Say once per measure that it failed, and how first."""
        for k, measure in enumerate(self.measures):
            mine = [reason for (which, i, j), reason in self.failed.items() if which == k and self.todo[k, i, j]]
            if mine:
                warn(
                    f"{measure.key} gave no score for {len(mine)} of {int(self.todo[k].sum())} "
                    f"pairs, and the run went on. The first reason: {mine[0]}",
                    FailedMeasureWarning,
                )


class ScoreWriter:
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

    def take_stored(self, todo: Array) -> None:
        """Scores that are in the store already; they are no longer to do."""
        if self.store is None:
            return
        open_items = np.argwhere(todo)
        for start in range(0, len(open_items), 5000):
            items = [(int(k), int(i), int(j)) for k, i, j in open_items[start : start + 5000]]
            keys = [self._key(item) for item in items]
            stored = self.store.find(keys)
            for item, key in zip(items, keys, strict=True):
                if key in stored:
                    self.job.record(item, Outcome(*stored[key]))
                    todo[item] = False
            self._advance(len(stored))

    def record(self, results: Collection[tuple[Item, Outcome]]) -> None:
        """Record scores in the job and in the store, and move the bar on."""
        for item, result in results:
            self.job.record(item, result)
        self._keep((item, result.value, result.reason) for item, result in results if result.final)
        self._advance(len(results))

    def record_table(self, k: int, i: Array, j: Array, values: Array) -> None:
        """Record scores of many pairs by one measure, which is symmetric."""
        self.job.values[k, i, j] = self.job.values[k, j, i] = values
        for rows in (slice(start, start + BATCH) for start in range(0, len(values), BATCH)):
            pairs = zip(*(column[rows].tolist() for column in (i, j, values)), strict=True)
            self._keep(((k, i, j), value, "") for i, j, value in pairs)
        self._advance(len(values))

    def _keep(self, scores: Iterable[tuple[Item, float, str]]) -> None:
        if self.store is not None:
            rows = ((self._key(item), value, reason, *self._facts(item)) for item, value, reason in scores)
            self.store.put_many(rows)

    def _facts(self, item: Item) -> tuple[str, str, str]:
        """The measure and the views of a score, for readers of the store."""
        k, i, j = item
        return self.job.measures[k].key, self.job.views[i].digest, self.job.views[j].digest

    def _advance(self, steps: int = 1) -> None:
        if self.bar is not None:
            self.bar.advance(steps)


def score_all(job: Job, engine: Engine, limit: int, store: Store | None, bar: Progress | None) -> None:
    """Score what is not in the store, pair by pair, and keep each score as it comes."""
    if store is not None:
        job.files = [put_view(store.artifacts(VIEWS), view) for view in job.views]
    todo = job.todo.copy()
    scores = ScoreWriter(job, store, bar)
    scores.take_stored(todo)
    _score(todo, engine, limit, scores)
    _score(job.undefined_diagonals(), engine, limit, ScoreWriter(job, None, None))
    job.warn_of_failures()


def _score(todo: Array, engine: Engine, limit: int, scores: ScoreWriter) -> None:
    if not todo.any():
        return
    job = scores.job
    if isinstance(engine, Local):
        _score_here(todo, engine, limit, scores)
    else:
        score_in_workers(todo, job.views, job.measures, engine, limit=limit, files=job.files, record=scores.record)


def _score_here(todo: Array, engine: Local, limit: int, scores: ScoreWriter) -> None:
    job = scores.job
    some: Array = np.asarray(todo.any(axis=0))
    used = np.flatnonzero(some.any(axis=0) | some.any(axis=1))
    measures = [measure for k, measure in enumerate(job.measures) if todo[k].any()]
    distances, once = want_distances(measures), single_pass(measures)
    workspace = Workspace(limit, networks=len(used), distances=distances, once=once)
    networks = [Representation(job.views[i], workspace) for i in used]
    side_by_side = workspace.keeps_squares(networks[0].n)
    if not side_by_side:
        engine = Local(1)  # where memory is short, one at a time on all cores
    if side_by_side and networks[0].n >= MANY:
        prepare(kernels_of(measures, int(np.triu(some).sum()), networks), networks, engine)
    with one_thread(for_inputs=(networks[0].view,)):
        for k, a, b, values in score_tables(todo[:, used[:, None], used], job.measures, networks):
            i, j = used[a], used[b]
            scores.record_table(k, i, j, values)
            todo[k, i, j] = False
    reps = dict(zip(used.tolist(), networks, strict=True))
    side = group_size(networks[0].n, max(rep.d for rep in networks), limit)
    # by tiles of networks, so that what was moved to disk comes back seldom
    chunks = _Chunks(tile_order(unordered_pairs(todo), max(1, side // 2)))

    def score(pairs: Array) -> tuple[list[tuple[Item, Outcome]], float]:
        start = time.thread_time()
        return list(score_items(items_of(todo, pairs), job.measures, reps)), time.thread_time() - start

    with closing(engine.run(score, chunks)) as results:
        for pairs, (outcomes, seconds) in results:
            scores.record(outcomes)
            chunks.pair_seconds = (chunks.pair_seconds + seconds / len(pairs)) / 2


class _Chunks:
    """Pairs in an order, as many at a time as take a moment."""

    def __init__(self, pairs: Array) -> None:
        self._pairs = pairs
        self.pair_seconds = MOMENT  # corrected as results come

    def __iter__(self) -> Iterator[Array]:
        start = 0
        while start < len(self._pairs):
            count = max(1, min(MOST, int(MOMENT / self.pair_seconds)))
            yield self._pairs[start : start + count]
            start += count


def prepare(kernels: Iterable[Kernel], networks: Iterable[Representation], engine: Local) -> None:
    """Compute what each network's kernels need, several networks at a time."""
    with closing(engine.run(lambda rep: [can_multiply(kernel, rep) for kernel in kernels], networks)) as done:
        deque(done, maxlen=0)


# --- shuffled inputs, and some left out --------------------------------------------------------------


@dataclass(frozen=True)
class Resources:
    """Where work runs, what it may hold in memory, where results and the files of views are, whether progress shows."""

    limit: int
    engine: Engine | None = None
    store: Store | None = None
    files: Sequence[Files] = ()
    progress: bool = True


def draw_scores(base: Base, draws: Draws, run: Resources, label: str) -> Array:
    """Scores of all pairs in every draw, (draws, m, m); NaN where a score is undefined."""
    m, kept = len(base.reps), _Kept(base, draws, run.store)
    step = max(1, 2 * SCORES // (m * m))
    blocks = [range(start, min(start + step, draws.count)) for start in range(0, draws.count, step)]
    scores, missing = np.full((draws.count, m, m), np.nan), []
    with Progress(draws.count, label, show=run.progress) as bar:
        for numbers in blocks:
            tables = kept.find(numbers)
            if tables is None:
                missing.append(numbers)
            else:
                scores[numbers.start : numbers.stop] = tables
                bar.advance(len(numbers))
        for numbers, result in _results(base, draws, missing, run):
            if isinstance(result, WorkerDied):
                warn(f"{base.measure.key} gave no score in {label}: {result.reason}", FailedMeasureWarning)
            else:
                scores[numbers.start : numbers.stop] = result
                kept.put(numbers, result)
            bar.advance(len(numbers))
    return scores


def _results(
    base: Base, draws: Draws, blocks: Sequence[range], run: Resources
) -> Iterator[tuple[range, Array | WorkerDied]]:
    if not blocks:
        return
    if run.engine is not None and not isinstance(run.engine, Local):
        yield from draw_in_workers(base, draws, blocks, run.engine, limit=run.limit, files=run.files)
        return
    with one_thread(for_inputs=tuple(rep.view for rep in base.reps)):
        tables = draws.tables(base, [number for numbers in blocks for number in numbers])
        for numbers in blocks:
            yield numbers, np.array(list(islice(tables, len(numbers))))


class _Kept:
    """The blocks of draws in a store, where there is one."""

    def __init__(self, base: Base, draws: Draws, store: Store | None) -> None:
        self._artifacts = None if store is None else store.artifacts(DRAWS)
        self._base = base
        if store is not None:
            views = [view_key(rep.view, base.measure) for rep in base.reps]
            self._facts = [*views, measure_key(base.measure), value_digest(draws.facts), VERSION]

    def _key(self, numbers: range) -> str:
        return digest([" ".join([*self._facts, str(numbers)])])

    def find(self, numbers: range) -> Array | None:
        tensors = None if self._artifacts is None else self._artifacts.find(self._key(numbers))
        return None if tensors is None else tensors["scores"].numpy()

    def put(self, numbers: range, scores: Array) -> None:
        """Keep a block; one where a score failed that the networks themselves have is drawn again."""
        if self._artifacts is None:
            return
        missing = np.isnan(scores).any(axis=0) & ~np.eye(len(self._base.reps), dtype=bool)
        if missing.any() and not np.isnan(self._base.values[missing]).all():
            return
        facts = {"measure": self._base.measure.key, "draws": str(numbers)}
        self._artifacts.put(self._key(numbers), {"scores": torch.from_numpy(scores)}, facts)
