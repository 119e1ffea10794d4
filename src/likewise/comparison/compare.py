"""compare(): from views to scores.

Two arrays give a `Score`, a mapping gives matrices, networks are first shown the data.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal, overload

from torch.nn import Module

from likewise._base.machine import one_thread
from likewise._base.progress import Progress
from likewise._base.warnings import warn
from likewise.comparison.arguments import (
    Extraction,
    Request,
    as_views,
    check_networks,
    extract_all,
    read_arguments,
    seeded,
)
from likewise.comparison.intervals import interval_matrices
from likewise.comparison.schedule import Job, measure_pair, score_all
from likewise.comparison.significance import Judge, calibrate_matrices, call_of
from likewise.comparison.significance import calibrate as calibrate_pair
from likewise.errors import InputError, brief
from likewise.matrices.labelled import COMMITS, UNTRAINED
from likewise.matrices.score import Score
from likewise.matrices.similarity import Comparison, SimilarityMatrix
from likewise.measures.function import Measure
from likewise.measures.pair import Pair
from likewise.measures.representation import Representation
from likewise.measures.saturation import saturated
from likewise.measures.workspace import Workspace, parse_memory
from likewise.views import Activations, Reduction
from likewise.work.engines import engine_of
from likewise.work.store import Store, open_store

PERMUTATIONS = 200


Many = Mapping[str, Any] | list[Any] | tuple[Any, ...]
One = str | Measure | Callable[..., float] | None
Set = list[Any] | tuple[Any, ...]
SetName = Literal[
    "all", "resi", "rsm", "cca", "alignment", "neighbors", "topology", "statistics", "functional", "transfer"
]


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
    layers: str | Mapping[str, str] | None = None,
    head: str | Mapping[str, str] | None = None,
    reduce: Reduction | None = None,
    transform: Any = None,
    batch_size: int | None = None,
    device: Any = None,
    dtype: str | None = None,
    store: Any = None,
    engine: Any = None,
    memory: str | int | None = None,
    seed: int = 0,
    progress: bool = True,
    calibrate: bool | int = False,
    within: Any = None,
    intervals: bool = False,
    **options: Any,
) -> Score | SimilarityMatrix | Comparison:
    """How alike two or many networks are.

    `compare(x, y)` of two arrays `(n, d)` gives a `Score`, a float that knows what it means.
    `compare({"a": x, "b": y, ...}, measure)` or `compare([x, y, ...], measure)` gives a `SimilarityMatrix` for one
    measure and a `Comparison` (a mapping of them) for several: names, aliases, measures, functions, a
    family, "resi" or "all". Options of a single measure are named, as in `compare(x, y, "jaccard", k=5)`.
    With `data`, networks stand for their views: `compare(["zoo:lenet", ...], "cka", data="cifar10")`.

    data       what networks (addresses or modules) are shown, `batch_size` at a time (as many as fit) on `device`
    dtype      the precision networks run in, if not that of their weights: float32, float16 or bfloat16 (autocast)
    layers     the layer to look at in each of them, or `{network: layer}` by their names in the matrix; without
               it `penultimate` where there is a classifier, else `embedding`
    reduce     how its tokens and maps become rows
    head       the classifier, for `penultimate`, where it cannot be found: for all, or by network
    transform  a function from a PIL image to what the network takes, for all or by network; else images are shown
               by the transform of each network's makers, where it has one
    store      a folder: every score is kept there at once; rerun with the same folder to resume
    engine     where pairs run: None for this machine's cores, or an executor (Dask, Ray, processes)
    memory     the most to hold at a time, like "4GB"; two thirds of what is free if not said
    seed       for measures that draw at random
    calibrate  hold scores against shuffled inputs: null, calibrated score, p, and q over all pairs; a number
               asks for that many shuffles instead of 200
    within     shuffle within classes only: one label per input, or "labels" for those the views carry
    intervals  of a matrix: `extra["low"]`, `extra["high"]`, how far scores would move with other inputs (`bootstrap`)

    >>> import numpy as np, likewise
    >>> x = np.random.default_rng(0).normal(size=(100, 16))
    >>> f"{likewise.compare(x, 3 * x + 1):.2f}"
    '1.00'
    """
    views, other, measure = read_arguments(views, other, measure, options)
    request = Request.of(measure)  # before any network has to run
    run = Run(reduce, engine, memory, seed, progress, permutations_of(calibrate, within), within, intervals=intervals)
    look = [m.key for m in request.measures if m.info.on == "networks"]
    if look and run.permutations:
        raise InputError(f"calibrate shuffles inputs of activations, and {look[0]} looks at networks. Leave it out.")
    two = not isinstance(views, Mapping)
    given = {"x": views, "y": other} if two else views
    networks = any(isinstance(each, (str, Module)) for each in given.values())
    if networks:
        from likewise.networks.names import named_networks, untrained_networks

        names = named_networks(given.values()) if two else given
        check_networks(names, data, head, layers, transform)
    with nullcontext() if store is None else open_store(store) as place:
        if networks:
            show = (batch_size, device, dtype, transform)
            outputs = two or run.permutations > 0 or place is not None or request.reads_outputs
            how = Extraction(data, layers, reduce, head, *show, place, progress, bool(look), outputs)
            run = replace(run, untrained=untrained_networks(given, own_names=two))
            given = extract_all(given, how, own_names=two)
        if two and not request.several:
            return _compare_two(given, request.measures[0], run, place)
        return _compare_many(given, request, run, place, any_outputs=two)


@dataclass(frozen=True)
class Run:
    """How a comparison runs, and by how many shuffles (0: none) within which labels it is held against chance.

    `untrained` names those of the networks that have random weights.
    """

    reduce: Reduction | None
    engine: Any
    memory: str | int | None
    seed: int
    progress: bool
    permutations: int
    within: Any
    untrained: tuple[str, ...] = ()
    intervals: bool = False


def permutations_of(calibrate: bool | int, within: Any) -> int:
    """How many shuffles were asked for."""
    if within is not None and not calibrate:
        raise InputError("within says how inputs are shuffled. Pass calibrate=True too.")
    if calibrate is True:
        return PERMUTATIONS
    if not isinstance(calibrate, int) or calibrate < 0:
        raise InputError(f"calibrate must be True, False or a number of shuffles, got {brief(calibrate)}.")
    return int(calibrate)


def _compare_two(given: Mapping[str, Any], measure: Measure, run: Run, store: Store | None) -> Score:
    bound, started, inputs = seeded(measure, run.seed), time.perf_counter(), (given["x"], given["y"])
    with nullcontext() if measure.info.on == "networks" else one_thread(for_inputs=inputs):
        a, b = as_views(given, run.reduce, [measure], keep_names=True).values()
        workspace = Workspace(None if run.memory is None else parse_memory(run.memory))
        pair = Pair(Representation(a, workspace), Representation(b, workspace))
        value = measure_pair(pair, bound, store)
    seconds = time.perf_counter() - started
    calibration = None
    if run.permutations:
        how: dict[str, Any] = {"within": run.within, "memory": run.memory, "progress": run.progress}
        calibration = calibrate_pair(a, b, bound, run.permutations, run.seed, **how)
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
        saturated=saturated(bound.saturation, value, (a.n, a.d, b.d)),
        calibration=calibration,
        call=call_of(bound),
        untrained=run.untrained,
        judge=Judge.of(inputs, bound, run.reduce, seconds),
    )


def _compare_many(
    given: Mapping[str, Any], request: Request, run: Run, store: Store | None, *, any_outputs: bool
) -> SimilarityMatrix | Comparison:
    if not given:
        raise InputError("there is no view to compare. Pass a mapping of names to arrays.")
    wanted = [seeded(m, run.seed) for m in request.measures]
    if not any_outputs and not all(isinstance(v, Activations) and v.outputs is not None for v in given.values()):
        wanted = [m for m in wanted if m.info.on != "outputs" or m.name not in request.optional]
    views = as_views(given, run.reduce, wanted)
    wanted = _installed(wanted, request, views)
    for m in wanted:
        m.check_subjects(views.values())
        if m.info.on == "networks" and run.engine is not None:
            raise InputError(f"{m.key} looks at networks, which stay in this process. Leave the engine out.")
    job, limit = Job(list(views), list(views.values()), wanted), parse_memory(run.memory)
    with Progress(job.total, "comparing") if run.progress else nullcontext() as bar:
        score_all(job, engine_of(run.engine), limit, store, bar)
    commits = {name: view.about["commit"] for name, view in views.items() if "commit" in view.about}
    about: dict[str, Any] = {UNTRAINED: ", ".join(run.untrained)} if run.untrained else {}
    about |= {COMMITS: commits} if commits else {}
    about |= {"seed": run.seed, "probe": job.views[0].probe or ""}
    matrices = {m.key: job.matrix(m, about) for m in wanted}
    if run.permutations:
        matrices = calibrate_matrices(
            matrices,
            job.views,
            wanted,
            seed=run.seed,
            limit=limit,
            permutations=run.permutations,
            within=run.within,
        )
    if run.intervals:
        matrices = interval_matrices(matrices, job.views, wanted, run.seed, run.progress)
    return Comparison(matrices) if request.several else next(iter(matrices.values()))


def _installed(wanted: list[Measure], request: Request, views: Mapping[str, Activations]) -> list[Measure]:
    """The measures whose libraries are here; what was asked for by name stays and says what is missing."""
    n, widths = next(iter(views.values())).n, {view.d for view in views.values()}
    sizes = [(n, a, b) for a in widths for b in widths]
    missing: dict[str, str] = {}
    for measure in wanted:
        if measure.name in request.optional:
            library = next(filter(None, map(measure.missing, sizes)), None)
            missing |= {} if library is None else {measure.key: library.remedy}
    if missing:
        warn(f"left out of 'all': {', '.join(missing)}, since {next(iter(missing.values()))}")
    return [measure for measure in wanted if measure.key not in missing]
