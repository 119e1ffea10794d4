"""compare(): from views to scores.

Two arrays give a `Score`, a mapping gives matrices, networks are first shown the data.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, overload

from likewise._base.machine import one_thread
from likewise._base.progress import Progress
from likewise._base.warnings import warn
from likewise.comparison.arguments import as_views, is_set, seeded, sorted_out
from likewise.comparison.networks import shown
from likewise.comparison.schedule import Job, run, score_key
from likewise.comparison.significance import Judge, calibrate_matrices, call_of
from likewise.comparison.significance import calibrate as calibrate_pair
from likewise.errors import InputError, UndefinedError, brief
from likewise.matrices.score import Score
from likewise.matrices.similarity import Comparison, SimilarityMatrix
from likewise.measures.facts import Measure
from likewise.measures.pair import Pair
from likewise.measures.registry import select
from likewise.measures.representation import Representation
from likewise.measures.saturation import saturated
from likewise.measures.workspace import Workspace, parse_memory
from likewise.views import Activations, Reduction
from likewise.work.engines import engine_of
from likewise.work.store import open_store

PERMUTATIONS = 200


Many = Mapping[str, Any] | list[Any] | tuple[Any, ...]
One = str | Measure | Callable[..., float] | None
Set = list[Any] | tuple[Any, ...]
SetName = Literal["all", "resi", "rsm", "cca", "alignment", "neighbors", "topology", "statistics", "functional"]


@overload
def compare(views: Many, measure: Set | SetName, **options: Any) -> Comparison: ...
@overload
def compare(views: Many, measure: One = ..., **options: Any) -> SimilarityMatrix: ...
@overload
def compare(views: Any, other: Any, measure: Set | SetName, **options: Any) -> Comparison: ...
@overload
def compare(views: Any, other: Any, measure: One = ..., **options: Any) -> Score: ...
def compare(  # type: ignore[misc]
    views: Any,
    other: Any = None,
    measure: Any = None,
    *,
    data: Any = None,
    layers: str = "penultimate",
    head: str | Mapping[str, str] | None = None,
    reduce: Reduction | None = None,
    batch_size: int = 256,
    device: Any = None,
    store: Any = None,
    engine: Any = None,
    memory: str | int | None = None,
    seed: int = 0,
    progress: bool = True,
    calibrate: bool | int = False,
    within: Any = None,
    **options: Any,
) -> Score | SimilarityMatrix | Comparison:
    """How alike two or many networks are.

    `compare(x, y)` of two arrays `(n, d)` gives a `Score`, a float that knows what it means.
    `compare({"a": x, "b": y, ...}, measure)` or `compare([x, y, ...], measure)` gives a `SimilarityMatrix` for one
    measure and a `Comparison` (a mapping of them) for several: names, aliases, measures, functions, a
    family, "resi" or "all". Options of a single measure are named, as in `compare(x, y, "jaccard", k=5)`.
    With `data`, networks stand for their views: `compare(["zoo:lenet", ...], "cka", data="cifar10")`.

    data       what networks (addresses or modules) are shown, `batch_size` at a time on `device`
    layers     the layer to look at in each of them, `reduce` how its tokens and maps become rows
    head       the classifier, for `penultimate`, where it cannot be found: for all, or by network
    store      a folder: every score is kept there at once; rerun with the same folder to resume
    engine     where pairs run: None for this machine's cores, or an executor (Dask, Ray, processes)
    memory     the most to hold at a time, like "4GB"; two thirds of what is free if not said
    seed       for measures that draw at random
    calibrate  hold scores against shuffled inputs: null, calibrated score, p, and q over all pairs; a number
               asks for that many shuffles instead of 200
    within     shuffle within classes only: one label per input, or "labels" for those the views carry

    >>> import numpy as np, likewise
    >>> x = np.random.default_rng(0).normal(size=(100, 16))
    >>> f"{likewise.compare(x, 3 * x + 1):.2f}"
    '1.00'
    """
    views, other, measure = sorted_out(views, other, measure, options)
    wanted = select(measure, on=("representation", "outputs", "networks"))  # known before any network has to run
    null = Null(permutations_of(calibrate, within), within)
    look = [m.key for m in wanted if m.info.on == "networks"]
    if look and null.permutations:
        raise InputError(f"calibrate shuffles inputs of activations, and {look[0]} looks at networks. Leave it out.")
    how = {"batch_size": batch_size, "device": device, "head": head, "keep_networks": bool(look)}
    views, other = shown(views, other, data, layers, reduce, store, **how)
    several = isinstance(views, Mapping)
    if several or is_set(measure):
        return _compare_many(
            views if several else {"x": views, "y": other},
            measure if several else wanted,
            asked=measure,
            reduce=reduce,
            store=store,
            engine=engine,
            memory=memory,
            seed=seed,
            progress=progress,
            null=null,
        )
    return _compare_two((views, other), wanted[0], reduce, store, memory, seed, progress, null)


class Null(NamedTuple):
    """How scores are held against chance: by how many shuffles (0: not at all), within which labels."""

    permutations: int
    within: Any


def permutations_of(calibrate: bool | int, within: Any) -> int:
    """How many shuffles were asked for."""
    if within is not None and not calibrate:
        raise InputError("within says how inputs are shuffled. Pass calibrate=True too.")
    if calibrate is True:
        return PERMUTATIONS
    if not isinstance(calibrate, int) or calibrate < 0:
        raise InputError(f"calibrate must be True, False or a number of shuffles, got {brief(calibrate)}.")
    return int(calibrate)


def _compare_two(
    given: tuple[Any, Any],
    measure: Measure,
    reduce: Any,
    store: Any,
    memory: Any,
    seed: int,
    progress: bool,
    null: Null,
) -> Score:
    bound, started = seeded(measure, seed), time.perf_counter()
    with one_thread(for_inputs=given):
        a, b = as_views({"x": given[0], "y": given[1]}, reduce, [measure], keep_names=True).values()
        workspace = Workspace(None if memory is None else parse_memory(memory))
        pair = Pair(Representation(a, workspace), Representation(b, workspace))
        value = _stored_score(pair, bound, store)
    seconds = time.perf_counter() - started
    calibration = None
    if null.permutations:
        how: dict[str, Any] = {"within": null.within, "memory": memory, "progress": progress}
        calibration = calibrate_pair(a, b, bound, null.permutations, seed, **how)
    return Score(
        value,
        measure=bound.key,
        larger_is=bound.info.larger_is,
        bounds=bound.info.bounds,
        identity=bound.info.identity,
        paired=bound.info.paired and bound.info.on != "networks",
        names=(a.name, b.name),
        n=a.n,
        widths=(a.d, b.d),
        saturated=saturated(bound, value, (a.n, a.d, b.d)),
        calibration=calibration,
        call=call_of(bound),
        judge=Judge.of(given, bound, reduce, seconds),
    )


def _stored_score(pair: Pair, measure: Measure, store: Any) -> float:
    if store is None:
        return measure.score(pair)
    with open_store(store) as place:
        key = score_key(pair.a.view, pair.b.view, measure)
        value, reason = place.find([key]).get(key, (None, ""))
        if value is None:
            try:
                value = measure.score(pair)
            except (UndefinedError, InputError) as error:
                value, reason = float("nan"), str(error)
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
    null: Null,
    asked: Any,
) -> SimilarityMatrix | Comparison:
    if not views:
        raise InputError("there is no view to compare. Pass a mapping of names to arrays.")
    wanted = [seeded(m, seed) for m in select(measures, on=_looks_at(views))]
    ready = as_views(views, reduce, wanted)
    wanted = _installed(wanted, asked, ready)
    for m in wanted:
        m.check_subjects(ready.values())
        if m.info.on == "networks" and engine is not None:
            raise InputError(f"{m.key} looks at networks, which stay in this process. Leave the engine out.")
    job = Job(list(ready), list(ready.values()), wanted)
    limit = parse_memory(memory)
    with Progress(job.total, "comparing", shown=progress) as bar:
        if store is None:
            run(job, engine_of(engine), limit, None, bar)
        else:
            with open_store(store) as place:
                run(job, engine_of(engine), limit, place, bar)
    matrices = {m.key: job.matrix(m) for m in wanted}
    if null.permutations:
        matrices = calibrate_matrices(
            matrices,
            job.views,
            wanted,
            seed=seed,
            limit=limit,
            permutations=null.permutations,
            within=null.within,
        )
    return Comparison(matrices) if is_set(asked) else next(iter(matrices.values()))


def _installed(wanted: list[Measure], asked: Any, views: Mapping[str, Activations]) -> list[Measure]:
    """The measures of "all" whose libraries are here; what was asked for by name stays and says so."""
    if not (asked == "all" if isinstance(asked, str) else is_set(asked) and "all" in asked):
        return wanted
    named = [] if isinstance(asked, str) else [item for item in asked if item != "all"]
    keep = {m.name for m in select(named, on=("representation", "outputs"))} if named else set()
    n, widths = next(iter(views.values())).n, {view.d for view in views.values()}
    sizes = [(n, a, b) for a in widths for b in widths]
    missing = {}
    for measure in wanted:
        library = next(filter(None, map(measure.missing, sizes)), None)
        if library is not None and measure.name not in keep:
            missing[measure.key] = library.remedy
    if missing:
        first = next(iter(missing.values()))
        warn(f"left out of 'all': {', '.join(missing)}, since {first}")
    return [measure for measure in wanted if measure.key not in missing]


def _looks_at(views: Mapping[str, Any]) -> list[str]:
    """Which kinds of measures "all" means: those on outputs too, if every view has some."""
    have = all(isinstance(v, Activations) and v.outputs is not None for v in views.values())
    return ["representation", "outputs"] if have else ["representation"]
