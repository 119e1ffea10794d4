"""compare(): from views to scores.

Two arrays give a `Score`, a mapping gives matrices. Per-network work is shared by all pairs and measures
through one workspace; measures that are inner products of n x n matrices are filled for all pairs in one pass;
the rest goes pair by pair, several at a time, each on one thread.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from torch.nn import Module

from likewise import __version__
from likewise._progress import Progress
from likewise.engine import Engine, calm, engine_of, one_thread
from likewise.errors import InputError, LikewiseError, MissingDependencyError, UndefinedError
from likewise.matrix import Comparison, SimilarityMatrix
from likewise.measures.facts import Measure
from likewise.measures.kernels import Kernel, Linear, Table, fill
from likewise.measures.pair import Pair, check_same_probe
from likewise.measures.registry import FAMILIES, chosen
from likewise.measures.representation import Representation
from likewise.measures.workspace import Workspace, parse_memory
from likewise.score import Score
from likewise.showing import named_networks, shown
from likewise.store import Store, score_key
from likewise.views import Activations, Outputs, Reduction

DEFAULT = "cka-debiased"
Result = tuple[float, str]


@overload
def compare(views: Mapping[str, Any], measures: Any = ..., **options: Any) -> Any: ...
@overload
def compare(views: Any, other: Any, measures: Any = ..., **options: Any) -> Any: ...
def compare(  # type: ignore[misc]
    views: Any,
    other: Any = None,
    measures: Any = None,
    *,
    measure: Any = None,
    data: Any = None,
    layers: str = "penultimate",
    reduce: Reduction | None = None,
    store: Any = None,
    engine: Any = None,
    memory: str | int | None = None,
    seed: int = 0,
    progress: bool = True,
    calibrate: bool = False,
) -> Score | SimilarityMatrix | Comparison:
    """How alike two or many networks are.

    `compare(x, y)` of two arrays `(n, d)` gives a `Score`, a float that knows what it means.
    `compare({"a": x, "b": y, ...}, measures)` gives a `SimilarityMatrix` for one measure and a `Comparison`
    (a mapping of them) for several: names, aliases, measures, functions, a family, "resi" or "all".
    With `data`, networks stand for their views: `compare(["zoo:resnet20@a.safetensors", ...], "cka",
    data="cifar10:test[:1000]")`.

    data       what networks (addresses or modules) are shown: an address, data or batches
    layers     the layer to look at in each of them
    reduce     for tokens and maps: how they become rows
    store      a folder: every score is kept there at once, and a run that was stopped goes on
    engine     where pairs run: None for this machine's cores, or an executor (Dask, Ray, processes)
    memory     the most to hold at a time, like "4GB"; half of what is free if not said
    seed       for measures that draw at random
    calibrate  add null, calibrated score and p of every pair to the frame

    >>> import numpy as np, likewise
    >>> x = np.random.default_rng(0).normal(size=(100, 16))
    >>> f"{likewise.compare(x, 3 * x + 1):.2f}"
    '1.00'
    """
    if isinstance(views, (list, tuple)) and any(isinstance(v, (str, Module)) for v in views):
        views = named_networks(views)
    if isinstance(views, Mapping) and other is not None and measures is None:
        measures, other = other, None
    one = measure if measure is not None else measures
    one = DEFAULT if one is None else one
    wanted = chosen(one, on=("representation", "outputs"))  # known before any network has to run
    views, other = shown(views, other, data, layers, reduce, store)
    if isinstance(views, Mapping):
        return _compare_many(
            views, one, reduce=reduce, store=store, engine=engine,
            memory=memory, seed=seed, progress=progress, calibrate=calibrate,
        )  # fmt: skip
    if other is None:
        raise InputError("compare needs two arrays, or a mapping of names to arrays.")
    named = {"x": views, "y": other}
    if len(wanted) > 1:
        return _compare_many(
            named, wanted, asked=one, reduce=reduce, store=store, engine=engine, memory=memory, seed=seed,
            progress=progress, calibrate=calibrate,
        )  # fmt: skip
    return _compare_two(named, wanted[0], reduce, store, memory, seed)


def _compare_two(
    views: Mapping[str, Any], measure: Measure, reduce: Any, store: Any, memory: Any, seed: int
) -> Score:
    with one_thread(for_inputs=tuple(views.values())):
        a, b = as_views(views, reduce, [measure], keep_names=True).values()
        workspace = Workspace(None if memory is None else parse_memory(memory))
        pair = Pair(Representation(a, workspace), Representation(b, workspace))
        bound = seeded(measure, seed)
        return Score(_stored_score(pair, bound, store), measure=bound, pair=pair)


def _stored_score(pair: Pair, measure: Measure, store: Any) -> float:
    if store is None:
        return measure.score(pair)
    with opened(store) as place:
        key = score_key(pair.a.view, pair.b.view, measure)
        value, reason = place.find([key]).get(key, (None, ""))
        if value is None:
            value, reason = attempt(measure, pair)
            place.put(key, value, reason, measure.key, pair.a.view.digest, pair.b.view.digest)
    if reason:
        raise UndefinedError(reason)
    return value


def _compare_many(
    views: Mapping[str, Any],
    measures: Any,
    *,
    reduce: Reduction | None,
    store: Any,
    engine: Any,
    memory: str | int | None,
    seed: int,
    progress: bool,
    calibrate: bool,
    asked: Any = None,
) -> SimilarityMatrix | Comparison:
    if not views:
        raise InputError("there is no view to compare. Pass a mapping of names to arrays.")
    wanted = [seeded(m, seed) for m in chosen(measures, on=_looks_at(views))]
    ready = as_views(views, reduce, wanted)
    wanted = _installed(wanted, measures if asked is None else asked, ready)
    job = Job(list(ready), list(ready.values()), wanted)
    limit = parse_memory(memory)
    with Progress(job.total, "comparing", shown=progress) as bar:
        if store is None:
            run(job, engine_of(engine), limit, None, bar)
        else:
            with opened(store) as place:
                run(job, engine_of(engine), limit, place, bar)
    matrices = {m.key: job.matrix(m) for m in wanted}
    if calibrate:
        from likewise.trust import calibrated_matrices

        matrices = calibrated_matrices(matrices, job.views, wanted, seed=seed, limit=limit)
    single = len(wanted) == 1 and not _is_set(measures)
    return next(iter(matrices.values())) if single else Comparison(matrices)


def _is_set(measures: Any) -> bool:
    """Whether several measures were asked for, even if it came to one."""
    if isinstance(measures, str):
        return measures in ("all", "resi", *FAMILIES)
    return isinstance(measures, Sequence)


def _installed(
    wanted: list[Measure], asked: Any, views: Mapping[str, Activations]
) -> list[Measure]:
    """The measures of "all" whose libraries are here; what was asked for by name stays and says so."""
    if not (asked == "all" if isinstance(asked, str) else _is_set(asked) and "all" in asked):
        return wanted
    named = [] if isinstance(asked, str) else [item for item in asked if item != "all"]
    keep = {m.name for m in chosen(named, on=("representation", "outputs"))} if named else set()
    widths = (4, 4) if len({view.d for view in views.values()}) == 1 else (4, 3)
    chance = np.random.default_rng(0)
    a, b = (Representation(Activations(chance.normal(size=(40, d)), name="")) for d in widths)
    pair = Pair(a, b)
    missing = {}
    for measure in wanted:
        try:
            measure.score(pair)
        except MissingDependencyError as error:
            if measure.name not in keep:
                missing[measure.key] = str(error)
        except LikewiseError:
            pass  # it wants more than a trial: that is no library
    if missing:
        first = next(iter(missing.values()))
        warnings.warn(f"left out of 'all': {', '.join(missing)}, since {first}", stacklevel=4)
    return [measure for measure in wanted if measure.key not in missing]


def _looks_at(views: Mapping[str, Any]) -> list[str]:
    """Which kinds of measures "all" means: those on outputs too, if every view has some."""
    have = all(isinstance(v, Activations) and v.outputs is not None for v in views.values())
    return ["representation", "outputs"] if have else ["representation"]


def as_views(
    views: Mapping[str, Any],
    reduce: Reduction | None,
    measures: Iterable[Measure],
    keep_names: bool = False,
) -> dict[str, Activations]:
    """Views under their names, checked to be of one probe. Bare arrays serve as logits where asked."""
    functional = any(m.info.on == "outputs" for m in measures)
    ready: dict[str, Activations] = {}
    for name, view in views.items():
        if isinstance(view, Activations):
            ready[name] = view if keep_names and view.name else view.named(str(name))
        else:
            outputs = Outputs(view) if functional and np.ndim(view) == 2 else None
            ready[name] = Activations(view, name=str(name), reduce=reduce, outputs=outputs)
    first = next(iter(ready.values()))
    for view in ready.values():
        check_same_probe(first, view)
    return ready


def seeded(measure: Measure, seed: int) -> Measure:
    """A measure that draws at random, with the seed of the run unless it has its own."""
    takes = "seed" in measure.defaults and "seed" not in measure.options
    return measure.bind(seed=seed) if takes and seed else measure


def opened(store: Any) -> AbstractContextManager[Store]:
    """A store by its folder, closed after use; one that is open stays open."""
    return nullcontext(store) if isinstance(store, Store) else Store(store)


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
            names=self.names, values=values, measure=measure.key, larger_is=measure.info.larger_is,
            reasons=reasons, about={"likewise": __version__, "n": self.views[0].n},
        )  # fmt: skip


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
