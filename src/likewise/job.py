"""What is to be scored: in which order, from which shared work, kept where.

Per-network work is shared by all pairs and measures through one workspace; measures that are inner products
of n x n matrices are filled for all pairs in one pass; the rest goes pair by pair, several at a time, each on
one thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise import __version__
from likewise._progress import Progress
from likewise.engine import Engine, calm
from likewise.errors import InputError, LikewiseError, UndefinedError
from likewise.matrix import SimilarityMatrix
from likewise.measures.facts import Measure
from likewise.measures.kernels import Kernel, Linear, Table, fill
from likewise.measures.pair import Pair
from likewise.measures.representation import Representation
from likewise.measures.saturation import saturated
from likewise.measures.workspace import Workspace
from likewise.store import Store, score_key
from likewise.views import Activations

Result = tuple[float, str]


def attempt(measure: Measure, pair: Pair) -> Result:
    """A score, or NaN and the reason why there is none."""
    try:
        return measure.score(pair), ""
    except (UndefinedError, InputError) as error:
        return float("nan"), str(error)


@dataclass
class Job:
    """What is to be scored, and what has been."""

    names: list[str]
    views: list[Activations]
    measures: list[Measure]

    def __post_init__(self) -> None:
        self.results: dict[tuple[str, int, int], Result] = {}

    def wanted(self, measure: Measure) -> list[tuple[int, int]]:
        """Ordered pairs to compute; the diagonal too where it is not known beforehand."""
        m = len(self.views)
        pairs = [(i, j) for i in range(m) for j in range(i + 1, m)]
        if not measure.info.symmetric:
            pairs += [(j, i) for i, j in pairs]
        if measure.info.identity is None or m == 1:
            pairs += [(i, i) for i in range(m)]
        return pairs

    @property
    def total(self) -> int:
        return sum(len(self.wanted(measure)) for measure in self.measures)

    def matrix(self, measure: Measure) -> SimilarityMatrix:
        m = len(self.views)
        values, reasons = np.full((m, m), np.nan), {}
        if measure.info.identity is not None:
            np.fill_diagonal(values, measure.info.identity)
        for (key, i, j), (value, reason) in self.results.items():
            if key == measure.key:
                places = [(i, j), (j, i)] if measure.info.symmetric else [(i, j)]
                for p, q in places:
                    values[p, q] = value
                    if reason:
                        reasons[self.names[p], self.names[q]] = reason
        return SimilarityMatrix(
            names=self.names,
            values=values,
            measure=measure.key,
            larger_is=measure.info.larger_is,
            reasons=reasons,
            about={"likewise": __version__, "n": self.views[0].n},
            saturated=self._saturated(measure, values),
        )

    def _saturated(self, measure: Measure, values: np.ndarray) -> dict[tuple[str, str], str]:
        """Pairs whose score any network of their widths would get, with the reason."""
        if measure.saturation is None:
            return {}
        found = {
            (a.name, b.name): saturated(measure, float(values[i, j]), (a.n, a.d, b.d))
            for i, a in enumerate(self.views)
            for j, b in enumerate(self.views)
            if i != j
        }
        return {pair: reason for pair, reason in found.items() if reason}


def run(job: Job, engine: Engine, limit: int, store: Store | None, bar: Progress) -> None:
    """Score what is not in the store, pair by pair, and keep each score as it comes."""
    keys: dict[tuple[str, int, int], str] = {}
    if store is not None:
        for view in job.views:
            if "fingerprint" not in view.about:  # extraction has put its views there
                store.save_view(view)
        keys = {
            (m.key, i, j): score_key(job.views[i], job.views[j], m)
            for m in job.measures
            for i, j in job.wanted(m)
        }
    pending = _pending(job, keys, store, bar)
    _work_off(job, pending, engine, limit, _recorder(job, keys, store, bar), store)
    hollow = _undefined_alone(job)
    if hollow:  # a network undefined with every other may be undefined with itself
        record = _recorder(job, {}, None, None)
        _work_off(job, hollow, engine, limit, record, None)


def _pending(
    job: Job, keys: Mapping[tuple[str, int, int], str], store: Store | None, bar: Progress
) -> dict[tuple[int, int], list[tuple[Measure, int, int]]]:
    """What is left to do, by unordered pair."""
    known = store.find(keys.values()) if store is not None else {}
    pending: dict[tuple[int, int], list[tuple[Measure, int, int]]] = {}
    for measure in job.measures:
        for i, j in job.wanted(measure):
            found = known.get(keys.get((measure.key, i, j), ""))
            if found is not None:
                job.results[measure.key, i, j] = found
                bar.advance()
            else:
                pending.setdefault((min(i, j), max(i, j)), []).append((measure, i, j))
    return pending


def _recorder(job: Job, keys: Mapping[Any, str], store: Store | None, bar: Progress | None) -> Any:
    def record(measure: Measure, i: int, j: int, result: Result) -> None:
        job.results[measure.key, i, j] = result
        if store is not None:
            a, b = job.views[i].digest, job.views[j].digest
            store.put(keys[measure.key, i, j], *result, measure.key, a, b)
        if bar is not None:
            bar.advance()

    return record


def _undefined_alone(job: Job) -> dict[tuple[int, int], list[tuple[Measure, int, int]]]:
    hollow: dict[tuple[int, int], list[tuple[Measure, int, int]]] = {}
    m = len(job.views)
    for measure in job.measures:
        if measure.info.identity is None or m < 2:
            continue
        undefined = {
            (i, j)
            for (key, i, j), (_, reason) in job.results.items()
            if key == measure.key and reason
        }
        for i in range(m):
            pairs = [pair for pair in job.wanted(measure) if i in pair]
            if all(pair in undefined for pair in pairs):
                hollow.setdefault((i, i), []).append((measure, i, i))
    return hollow


def _work_off(
    job: Job, pending: Any, engine: Engine, limit: int, record: Any, store: Store | None
) -> None:
    if not pending:
        return
    if engine.remote:
        engine.score_remotely(job.views, pending, limit, record, store)
        return
    used = sorted({i for pair in pending for i in pair})
    workspace = Workspace(limit, networks=len(used))
    reps = {i: Representation(job.views[i], workspace) for i in used}
    beside = workspace.keeps_squares(reps[used[0]].n)
    with calm() if beside else nullcontext():
        tables = filled_tables(pending, reps, workspace)
    order = _tiled(pending, reps, limit)

    def score(pair: tuple[int, int]) -> list[tuple[Measure, int, int, Result]]:
        return score_pair(pair, pending[pair], reps, tables)

    for results in engine.map(score, order, beside):
        for measure, i, j, result in results:
            record(measure, i, j, result)


def score_pair(
    pair: tuple[int, int],
    items: list[tuple[Measure, int, int]],
    reps: Mapping[int, Representation],
    tables: dict[Kernel, Table],
) -> list[tuple[Measure, int, int, Result]]:
    """All measures asked of one pair, in both directions, from one `Pair`."""
    forward = Pair(reps[pair[0]], reps[pair[1]], tables)
    results = [(m, i, j, attempt(m, forward)) for m, i, j in items if (i, j) == pair]
    backward = [(m, i, j) for m, i, j in items if (i, j) != pair]
    if backward:
        swapped = forward.swapped
        results += [(m, i, j, attempt(m, swapped)) for m, i, j in backward]
    return results


def filled_tables(
    pending: Mapping[tuple[int, int], list[tuple[Measure, int, int]]],
    reps: Mapping[int, Representation],
    workspace: Workspace,
) -> dict[Kernel, Table]:
    """Inner products of all pairs for the kernels asked for, a group of networks at a time."""
    measures = {m.key: m for items in pending.values() for m, _, _ in items}.values()
    kernels = {kernel for m in measures for kernel in m.kernels}
    if Linear() in kernels and _cross_is_cheaper(measures, pending, reps):
        kernels.discard(Linear())
    tables: dict[Kernel, Table] = {}
    for kernel in kernels:
        sound = [rep for rep in reps.values() if _prepared(kernel, rep)]
        table = tables[kernel] = Table()
        groups = _groups(sound, workspace.limit)
        for p, left in enumerate(groups):
            fill(table, kernel, left)
            for right in groups[p + 1 :]:
                fill(table, kernel, left, right)
    return tables


def _prepared(kernel: Kernel, rep: Representation) -> bool:
    """Whether a network has this kernel; one that has not will say so when its pairs are scored."""
    try:
        kernel.prepare(rep)
    except LikewiseError:
        return False
    return True


def _cross_is_cheaper(measures: Iterable[Measure], pending: Any, reps: Any) -> bool:
    """Whether linear inner products should come from the pairs' cross-covariances."""
    some = next(iter(reps.values()))
    if any(rep.wide for rep in reps.values()):
        return False
    if any(m.info.cross and Linear() not in m.kernels for m in measures):
        return True  # they are computed anyway
    return bool(len(pending) * some.d < len(reps) * some.n)


def _groups(reps: list[Representation], limit: int) -> list[list[Representation]]:
    """Networks that fit into memory together, two groups at a time."""
    if not reps:
        return []
    size = 8 * reps[0].n * max(min(rep.d, 2 * rep.n) for rep in reps) * 3
    count = max(1, limit // 4 // size)
    return [reps[i : i + count] for i in range(0, len(reps), count)]


def _tiled(pending: Any, reps: Mapping[int, Representation], limit: int) -> list[tuple[int, int]]:
    """Pairs ordered by blocks of networks, so that what was moved to disk comes back seldom."""
    block = max(1, len(_groups(list(reps.values()), limit)[0]) // 2)
    return sorted(pending, key=lambda pair: (pair[0] // block, pair[1] // block, pair))
