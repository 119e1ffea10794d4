"""compare(): from views to scores.

Two arrays give a `Score`, a mapping gives matrices, networks are first shown the data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal, overload

from likewise._base.machine import one_thread
from likewise._base.progress import Progress, warn
from likewise.comparison.arguments import Call, Selection, as_views, permutations_of, seeded
from likewise.comparison.intervals import bootstrap, interval_matrices
from likewise.comparison.recordings.recording import any_recording
from likewise.comparison.resuming.unfinished import begin, end
from likewise.comparison.schedule import Job, Resources, measure_pair, score_all
from likewise.comparison.significance import Judge, calibrate_matrices, call_of
from likewise.comparison.significance import calibrate as calibrate_pair
from likewise.errors import InputError, UndefinedError
from likewise.matrices.labelled import ACCURACIES, COMMITS, UNTRAINED
from likewise.matrices.score import Score
from likewise.matrices.similarity import Comparison, SimilarityMatrix
from likewise.matrices.uncertainty import Interval
from likewise.measures.function import Measure
from likewise.measures.pair import Pair
from likewise.measures.representation import Representation
from likewise.measures.workspace import Workspace, parse_memory
from likewise.views import Activations, Reduction
from likewise.views.activations import ARITHMETIC, accuracies
from likewise.work.engines import Local, engine_of
from likewise.work.store import Store, open_store

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
    engine: Any = None,
    memory: str | int | None = None,
    seed: int = 0,
    calibrate: bool | int = False,
    within: Any = None,
    intervals: bool = False,
    clusters: Any = None,
    series: bool = False,
    **options: Any,
) -> Score | SimilarityMatrix | Comparison:
    """How alike two or many networks are.

    Args:
        views: An array `(n, d)`, a view, a module or an address; or a list or mapping of many.
        other: The second of two.
        measure: A name such as "cka", a key such as "jaccard[k=5]", a measure or a function of two arrays; for several
            a list of them, a family, "resi" or "all". By default "cka-debiased".
        data: What networks are shown, such as "cifar10:test[:1000]".
        layers: The layer to look at in each of them, or `{network: layer}`; see `Show`.
        engine: Where pairs run, and addresses are looked at where there is a store: this machine's cores by default,
            "processes", "dask", "ray", "slurm" or an executor; see `Show`, also for `workers` and `engine_options`.
        memory: The most to hold at a time, such as "4GB". By default two thirds of what is free.
        seed: For measures that draw at random.
        calibrate: Compare scores with those of shuffled inputs: null, calibrated score, p, and q over all pairs. A
            number asks for that many shuffles instead of 200.
        within: Shuffle within classes only: one label per input, or "labels" for those the views carry.
        intervals: Add how far scores would move with other inputs: the `interval` of a score, `extra["low"]` and
            `extra["high"]` of a matrix.
        clusters: One label per input: inputs of one clip, text or image are shuffled and left out as a whole. By
            default those that views remember, which have one row per token or position.
        series: Whether inputs are one time series, of which chance and intervals are then taken.
        **options: The measure's own options, such as `k=5`, and how networks are shown (see `Show`).

    Returns:
        A `Score` of two things, a float that knows what it means; a `SimilarityMatrix` of many; a `Comparison`, a
        mapping of matrices, for several measures.

    Raises:
        InputError: The views are not of the same inputs, or cannot be compared.
        UndefinedError: The measure is undefined for the two.

    Example:
        >>> import numpy as np, likewise
        >>> x = np.random.default_rng(0).normal(size=(100, 16))
        >>> f"{likewise.compare(x, 3 * x + 1):.2f}"
        '1.00'
    """
    if any_recording(views, other):
        from likewise.comparison.recordings.comparing import compare_recorded  # arrays do without

        unused = {"calibrate": calibrate, "within": within, "intervals": intervals, "clusters": clusters}
        unused |= {"series": series, "engine": engine}
        return compare_recorded(views, other, measure, options, unused, memory, data=data, layers=layers)
    call = Call.read(compare, views, other, measure, options, data=data, layers=layers, engine=engine)
    show, selection = call.show, call.selection
    shuffles = permutations_of(calibrate, within)
    if (clusters is not None or series) and not (calibrate or intervals):
        raise InputError("clusters and series are for chance and intervals. Pass calibrate=True or intervals=True too.")
    together = {"clusters": clusters, "series": series}
    if engine is not None and not (call.two and not call.has_networks):
        show = show.with_engine()
        call = replace(call, show=show)
    run = Run(show.reduce, show.engine, memory, seed, show.progress, shuffles, within, together, intervals=intervals)
    of_networks = [m.key for m in selection.measures if m.info.on == "networks"]
    if of_networks and run.permutations:
        raise InputError(
            f"calibrate shuffles inputs of activations, and {of_networks[0]} looks at networks. Leave it out."
        )
    with nullcontext() if show.store is None else open_store(show.store) as store:
        if call.has_networks:
            from likewise.networks.names import untrained_networks

            run = replace(run, untrained=untrained_networks(call.things, own_names=call.two))
        outputs = call.two or run.permutations > 0 or store is not None or selection.reads_outputs
        things = call.extract(store, outputs=outputs, keep_networks=bool(of_networks))
        if call.two and not selection.several:
            return _compare_two(things, selection.measures[0], run, store)
        return _compare_many(things, selection, run, store, any_outputs=call.two)


@dataclass(frozen=True)
class Run:
    """How a comparison runs, and by how many shuffles (0: none) within which labels it is compared with chance.

    `untrained` names those of the networks that have random weights.
    """

    reduce: Reduction | None
    engine: Any
    memory: str | int | None
    seed: int
    progress: bool
    permutations: int
    within: Any
    together: Mapping[str, Any]  # clusters and series: which inputs belong together
    untrained: tuple[str, ...] = ()
    intervals: bool = False


def _compare_two(things: Mapping[str, Any], measure: Measure, run: Run, store: Store | None) -> Score:
    bound, inputs = seeded(measure, run.seed), (things["x"], things["y"])
    with nullcontext() if measure.info.on == "networks" else one_thread(for_inputs=inputs):
        a, b = as_views(things, run.reduce, [measure], keep_names=True).values()
        workspace = Workspace(None if run.memory is None else parse_memory(run.memory), once=True)
        pair = Pair(Representation(a, workspace), Representation(b, workspace))
        value = bound.score(pair) if store is None else measure_pair(pair, bound, store)
    calibration = None
    if run.permutations:
        calibration = calibrate_pair(
            a,
            b,
            bound,
            permutations=run.permutations,
            seed=run.seed,
            within=run.within,
            memory=run.memory,
            progress=run.progress,
            **run.together,
        )
    return Score(
        value,
        interval=_interval(a, b, bound, run) if run.intervals and bound.info.on != "networks" else None,
        measure=bound.key,
        larger_is=bound.info.larger_is,
        bounds=bound.info.bounds,
        identity=bound.info.identity,
        paired=bound.info.paired and bound.info.on != "networks",
        names=(a.name, b.name),
        n=a.n,
        widths=(a.d, b.d),
        saturated=bound.saturated(value, (a.n, a.d, b.d)),
        calibration=calibration,
        call=call_of(bound),
        untrained=run.untrained,
        precision=bound.precision(a),
        judge=Judge.of(inputs, bound, run.reduce),
    )


def _interval(a: Activations, b: Activations, measure: Measure, run: Run) -> Interval | str:
    """The interval of a pair, or why there is none."""
    try:
        return bootstrap(a, b, measure, seed=run.seed, memory=run.memory, progress=run.progress, **run.together)
    except UndefinedError as error:
        return str(error)


def _compare_many(
    things: Mapping[str, Any], selection: Selection, run: Run, store: Store | None, *, any_outputs: bool
) -> SimilarityMatrix | Comparison:
    measures = [seeded(m, run.seed) for m in selection.measures]
    if not any_outputs and not all(isinstance(v, Activations) and v.outputs is not None for v in things.values()):
        measures = [m for m in measures if m.info.on != "outputs" or m.name not in selection.optional]
    views = as_views(things, run.reduce, measures)
    measures = _installed(measures, selection, views)
    for m in measures:
        m.check_subjects(views.values())
        if m.info.on == "networks" and run.engine is not None:
            raise InputError(f"{m.key} looks at networks, which stay in this process. Leave the engine out.")
    job, limit = Job(list(views), list(views.values()), measures), parse_memory(run.memory)
    engine = engine_of(run.engine)
    if not getattr(engine, "quick", True):  # pairs take a moment each
        engine = Local()
    commits = {name: view.about["commit"] for name, view in views.items() if "commit" in view.about}
    about: dict[str, Any] = {UNTRAINED: ", ".join(run.untrained)} if run.untrained else {}
    about |= {COMMITS: commits} if commits else {}
    about |= {ACCURACIES: right} if (right := accuracies(views)) else {}
    about |= {"seed": run.seed, "probe": job.views[0].probe or ""}
    wanted = {"chance": run.permutations > 0, "intervals": run.intervals}
    notes = [] if store is None else begin(store, job, about, [name for name, asked in wanted.items() if asked])
    with Progress(job.total, "comparing") if run.progress else nullcontext() as bar:
        score_all(job, engine, limit, store, bar)
    matrices = {m.key: job.matrix(m, about | _arithmetic(m, job.views[0])) for m in measures}
    resources = Resources(limit, engine, store, job.files, run.progress)
    if run.permutations:
        null = {"permutations": run.permutations, "within": run.within, **run.together}
        matrices = calibrate_matrices(matrices, job.views, measures, resources, seed=run.seed, **null)
    if run.intervals:
        matrices = interval_matrices(matrices, job.views, measures, resources, seed=run.seed, **run.together)
    end(notes)
    return Comparison(matrices) if selection.several else next(iter(matrices.values()))


def _arithmetic(measure: Measure, view: Activations) -> dict[str, str]:
    """What a matrix records of the precision of its scores: nothing where it is double."""
    precision = measure.precision(view)
    return {} if precision == "double" else {ARITHMETIC: precision}


def _installed(measures: list[Measure], selection: Selection, views: Mapping[str, Activations]) -> list[Measure]:
    """The measures whose libraries are here; what was asked for by name stays and says what is missing."""
    n, widths = next(iter(views.values())).n, {view.d for view in views.values()}
    sizes = [(n, a, b) for a in widths for b in widths]
    missing: dict[str, str] = {}
    for measure in measures:
        if measure.name in selection.optional:
            library = next(filter(None, map(measure.missing, sizes)), None)
            missing |= {} if library is None else {measure.key: library.remedy}
    if missing:
        warn(f"left out of 'all': {', '.join(missing)}, since {next(iter(missing.values()))}")
    return [measure for measure in measures if measure.key not in missing]
