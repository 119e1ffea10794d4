"""Whether a score is more than chance: its null, a calibrated score, p, and a verdict in words.

A null is made by shuffling the inputs of one side: whatever remains is owed to n, d and the measure. It works on what
was computed for the score itself: Gram and distance matrices, decompositions and neighbour lists are taken
by index, never computed again. A verdict shuffles within classes where both views carry labels, since networks
trained on the same labels are always more alike than noise.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likewise._base.machine import one_thread
from likewise.comparison.arguments import Call, as_views, prepare
from likewise.comparison.null import Shuffles, null_draws
from likewise.comparison.pairs import Base, attempt, representations
from likewise.comparison.schedule import Resources, draw_scores
from likewise.comparison.units import Units, units_of
from likewise.errors import InputError, LikewiseError, UndefinedError, check_count
from likewise.matrices.score import Score, verdict_sentence
from likewise.matrices.similarity import SimilarityMatrix
from likewise.matrices.uncertainty import ENOUGH, SEVERAL, Calibration, pooled_note
from likewise.measures.facts import SCALE, Info
from likewise.measures.function import Measure
from likewise.measures.pair import Pair
from likewise.measures.registry import get
from likewise.measures.representation import Representation
from likewise.measures.workspace import Workspace, parse_memory
from likewise.views import Activations

PERMUTATIONS = 99  # of a verdict
SHUFFLING = "shuffling"
WORK = 2e7  # multiplications of a score, by the cost its measure declares, up to which showing it shuffles


def calibrate(
    views: Any,
    other: Any = None,
    measure: Any = None,
    *,
    data: Any = None,
    layers: str | Mapping[str, str] | None = None,
    permutations: int = 200,
    seed: int = 0,
    within: Any = None,
    clusters: Any = None,
    series: bool = False,
    memory: str | int | None = None,
    **options: Any,
) -> Calibration:
    """How far a score is from what unrelated networks of these sizes get.

    A measure that does not look at single inputs has no null, and NaN for every number but its value. With a measure
    that takes a `confounder` off, chance is two networks that share what functions of it explain: only the rest is
    shuffled.

    Args:
        views: An array `(n, d)`, a view, a module or an address; or a list or mapping of many, for all pairs.
        other: The second of two.
        measure: A name such as "cka", a key such as "jaccard[k=5]", a measure or a function. By default "cka-debiased".
        data: What networks are shown, such as "cifar10:test[:1000]".
        layers: The layer to look at in each of them; see `Show`.
        permutations: How many times inputs are shuffled.
        seed: Draws the shuffles.
        within: Ask for more than classes explain: one label per input, or "labels" for those the views carry. Inputs
            are then shuffled among those of the same label only.
        clusters: One label per input: inputs of one clip, text or image change places as a whole. By default those
            that views remember, which have one row per token or position.
        series: Whether inputs are one time series: they are then shifted in a circle.
        memory: The most to hold at a time, such as "4GB".
        **options: The measure's own options, and how networks are shown (see `Show`).

    Returns:
        The score with its null, calibrated value and p; tables of them for many.

    Raises:
        UndefinedError: The measure is undefined for the two.

    Example:
        >>> import numpy as np, likewise
        >>> x, y = np.random.default_rng(0).normal(size=(2, 50, 200))
        >>> result = likewise.calibrate(x, y, "cka", permutations=50)
        >>> bool(result.value > 0.7 and result.calibrated < 0.05)
        True
    """
    check_count("permutations", permutations)
    call = Call.read(calibrate, views, other, measure, options, data=data, layers=layers)
    views, bound = prepare(call, seed)
    units = units_of(views, bound, within=within, clusters=clusters, series=series)
    count = permutations if bound.info.paired else 0
    run = Resources(parse_memory(memory), progress=call.show.progress)
    base = Base(representations(views, run.limit), bound)
    with one_thread(for_inputs=tuple(views)):
        values = base.values
    nulls = draw_scores(base, Shuffles(units, count, seed), run, SHUFFLING)
    grids: dict[str, Any] = calibration_grids(values, nulls, bound)
    facts: dict[str, Any] = {"measure": bound.key, **null_facts(len(nulls) or count, units, grids["p"], bound)}
    if call.two:
        if np.isnan(values[0, 1]):
            raise UndefinedError(attempt(bound, Pair(base.reps[0], base.reps[1]))[1])
        grids = {name: float(grid[0, 1]) for name, grid in grids.items()}
        return Calibration(value=float(values[0, 1]), **grids, **facts)
    return Calibration(value=values, names=tuple(v.name for v in views), **grids, **facts)


def calibration_grids(values: np.ndarray, nulls: np.ndarray, measure: Measure) -> dict[str, np.ndarray]:
    """Null mean, quantile, calibrated score and p from scores and their nulls (permutations first)."""
    if not measure.info.paired or not len(nulls):
        return {name: np.full_like(values, np.nan) for name in Calibration.FIELDS[1:]}
    sign, symmetric = 1.0 if measure.info.similarity else -1.0, measure.info.symmetric
    slack = rounding(values, nulls, measure)
    grids = {
        **null_levels(values, nulls, measure),
        "p": share_beyond(sign * values, sign * nulls, slack, symmetric=symmetric),
        "p_less": share_beyond(-sign * values, -sign * nulls, slack, symmetric=symmetric),
    }
    for grid in grids.values():
        np.fill_diagonal(grid, np.nan)  # a network against itself has no null
    return grids | {"q": false_discovery(grids["p"], symmetric=symmetric)}


def rounding(values: np.ndarray, nulls: np.ndarray, measure: Measure) -> np.ndarray:
    """How far a shuffle that changes nothing may be from a score."""
    scale = np.fmax(np.abs(values), np.fmax.reduce(np.abs(nulls), axis=0))
    return 1e-9 * (np.fmax(scale, 1.0) if SCALE in measure.info.invariant_to else scale)


def null_levels(values: np.ndarray, nulls: np.ndarray, measure: Measure) -> dict[str, np.ndarray]:
    """Null mean, quantile and calibrated score, from scores of any shape and their nulls (permutations first)."""
    sign, best = 1.0 if measure.info.similarity else -1.0, measure.info.identity
    if best is None:
        best = measure.info.bounds[1 if measure.info.similarity else 0]
    with warnings.catch_warnings():  # a pair without any null has NaN for one
        warnings.simplefilter("ignore", RuntimeWarning)
        threshold = sign * np.nanquantile(sign * nulls, 0.95, axis=0)
        average = np.nanmean(nulls, axis=0)
    if best is None:
        score = np.full_like(values, np.nan)
    else:
        room, slack = sign * (best - threshold), rounding(values, nulls, measure)
        gain = np.maximum(0.0, sign * (values - threshold))
        score = np.where(room > slack, gain / np.where(room > slack, room, 1.0), 0.0)
        score = np.where(np.isnan(values + threshold), np.nan, np.minimum(score, 1.0))
    return {"null_mean": average, "null_quantile": threshold, "calibrated": score}


def calibrate_layers(
    values: np.ndarray, nulls: np.ndarray | None, measure: Measure, names: Sequence[Sequence[str]]
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Grids of scores over layers of two networks compared with chance, and the same of the most alike pair.

    `nulls` (permutations first) have one order of the inputs for all layers, so that the most alike pair of every
    shuffle is what a search over all of them finds by chance (Groeger et al. 2026, arXiv:2602.14486). `p_search` is the
    share of shuffles whose most alike pair is at least as alike as this one.
    """
    if nulls is None:
        return {}, {}
    sign, slack = 1.0 if measure.info.similarity else -1.0, rounding(values, nulls, measure)
    defined = ~np.isnan(values)
    most = sign * np.fmax.reduce((sign * nulls).reshape(len(nulls), -1), axis=1)
    p, p_search = (
        np.where(
            defined,
            (1 + (sign * draws >= sign * values - slack).sum(axis=0)) / (1 + (~np.isnan(draws)).sum(axis=0)),
            np.nan,
        )
        for draws in (nulls, most[:, None, None])
    )
    grids = {**null_levels(values, nulls, measure), "p": p, "p_search": p_search}
    if not defined.any():
        return grids, {}
    row, column = (int(i) for i in np.unravel_index(np.nanargmax(sign * values), values.shape))
    levels = null_levels(values[row, column][None], most[:, None], measure)
    numbers = {"value": float(values[row, column]), **{name: float(level[0]) for name, level in levels.items()}}
    numbers |= {"p": float(p_search[row, column]), "permutations": len(nulls)}
    return grids, {"row": names[0][row], "column": names[-1][column], **numbers}


def null_facts(permutations: int, units: Units, p: np.ndarray, measure: Measure) -> dict[str, Any]:
    """What a result says of its null; a symmetric pair counts once."""
    pairs = int((~np.isnan(p)).sum()) // (2 if measure.info.symmetric else 1)
    facts = {"permutations": permutations, "groups": units.groups, "units": units.words}
    return facts | {"null": pooled_note(permutations, pairs)}


def share_beyond(values: np.ndarray, nulls: np.ndarray, slack: np.ndarray, *, symmetric: bool) -> np.ndarray:
    """p of scores (m, m): the share of shuffles (first) at least as large, the score itself counted among them.

    Where those are fewer than `ENOUGH`, they do not tell how small p is, and the shuffles of all pairs do: scores in
    standard deviations from the mean of their pair's shuffles, a shuffle's from that of the others of its pair. Pairs
    whose nulls differ in shape are then given too large or too small a p, but over all pairs as many unrelated ones
    as p says lie beyond, and the false discovery rate rests on that alone.
    """
    defined = (~np.isnan(nulls)).sum(axis=0)
    beyond = (nulls >= values - slack).sum(axis=0)
    scored = ~np.isnan(values) & (defined > 0)
    p = np.where(scored, (1 + beyond) / (1 + defined), np.nan)
    pairs = np.triu(scored, 1) if symmetric else scored & ~np.eye(len(values), dtype=bool)
    pairs &= defined >= ENOUGH
    pairs[pairs] = np.nanmax(nulls[:, pairs], axis=0) - np.nanmin(nulls[:, pairs], axis=0) > slack[pairs]
    if pairs.sum() < SEVERAL:
        return p
    count, draws = defined[pairs], nulls[:, pairs]
    centre = np.nanmean(draws, axis=0)
    draws = draws - centre
    squares = np.nansum(draws**2, axis=0)
    spread = np.sqrt(squares / (count - 1))
    with np.errstate(divide="ignore", invalid="ignore"):  # all other shuffles may be equal
        draws *= count / (count - 1)
        draws /= np.sqrt(np.maximum(squares - draws**2 * (count - 1) / count, 0) / (count - 2))
    pooled = np.sort(draws[~np.isnan(draws)])
    standardised = (values[pairs] - centre - slack[pairs]) / spread
    common = (1 + pooled.size - np.searchsorted(pooled, standardised)) / (1 + pooled.size)
    p[pairs] = np.where(beyond[pairs] < ENOUGH, np.minimum(common, (1 + ENOUGH) / (1 + count)), p[pairs])
    return np.where(np.tri(len(p), k=-1, dtype=bool), p.T, p) if symmetric else p


def false_discovery(p: np.ndarray, *, symmetric: bool) -> np.ndarray:
    """p of all pairs, corrected for their number (Benjamini and Hochberg); a symmetric pair counts once."""
    from scipy.stats import false_discovery_control

    q = np.full_like(p, np.nan)
    counted = ~np.isnan(p) & (np.triu(np.ones_like(p), 1) > 0 if symmetric else True)
    if counted.any():
        q[counted] = false_discovery_control(p[counted])
    return np.fmin(q, q.T) if symmetric else q


def calibrate_matrices(
    matrices: Mapping[str, SimilarityMatrix],
    views: list[Activations],
    measures: list[Measure],
    run: Resources,
    *,
    seed: int,
    permutations: int = 200,
    **together: Any,
) -> dict[str, SimilarityMatrix]:
    """Matrices with null, calibrated score and p of every pair beside their values.

    `together` says which inputs belong together: `within`, `clusters` and `series` of `calibrate`.
    """
    calibrated = {}
    for measure in measures:
        units = units_of(views, measure, **together)
        matrix = matrices[measure.key]
        count = permutations if measure.info.paired else 0
        try:
            base = Base(representations(views, run.limit), measure)
            nulls = draw_scores(base, Shuffles(units, count, seed), run, SHUFFLING)
        except UndefinedError:  # a confounder that explains everything
            nulls = np.empty(0)
        grids = calibration_grids(matrix.values, nulls, measure)
        about = {**matrix.about, **null_facts(len(nulls) or count, units, grids["p"], measure)}
        calibrated[measure.key] = replace(matrix, extra=grids, about=about)
    return calibrated


@dataclass(frozen=True, slots=True)
class Judge:
    """Finds the verdict of a score while its inputs are there, without keeping them alive."""

    inputs: tuple[Any, Any]  # weak references
    measure: Measure
    reduce: Any

    @classmethod
    def of(cls, inputs: tuple[Any, Any], measure: Measure, reduce: Any) -> Judge:
        """A judge that holds its inputs weakly."""
        return cls((_weak(inputs[0]), _weak(inputs[1])), measure, reduce)

    def __call__(self, score: Score) -> str:
        """The verdict in a sentence; nothing where it would take long, or the inputs are gone or have changed.

        What takes long is decided by sizes, never by the clock, so that a score says the same on every machine.
        """
        pair = self._pair() if self._quick(score) else None
        if pair is None:
            return ""
        within = _labels_of(pair)
        try:
            null = self._null(pair, within, float(score))
        except InputError:  # clusters of which too few can change places; calibrate=True says so
            return ""
        if null is None:
            return ""
        null = null[~np.isnan(null)]
        if not null.size:
            return f"Shuffled inputs give no score at {score.sizes}, so there is nothing to compare it with."
        more, less = two_sided(float(score), null, self.measure.info)
        classes = 0 if within is None else len(np.unique(within))
        units = units_of([pair.a.view, pair.b.view]).words
        return verdict_sentence(score, more, less, float(null.mean()), int(null.size), classes, units)

    def _pair(self) -> Pair | None:
        """The pair, if both inputs are still there."""
        x, y = (reference() for reference in self.inputs)
        if x is None or y is None:
            return None
        views = as_views({"x": x, "y": y}, self.reduce, [self.measure], keep_names=True)
        workspace = Workspace()
        a, b = (Representation(view, workspace) for view in views.values())
        return Pair(a, b)

    def _quick(self, score: Score) -> bool:
        """Whether shuffling takes a moment; of a measure that is not ours, nobody knows."""
        needed = self.measure.info.operations(score.n, max(score.widths), self.measure.resolved)
        return self.measure.built_in and needed <= WORK

    def _null(self, pair: Pair, within: Any, value: float) -> np.ndarray | None:
        """Scores of shuffled inputs; None where the inputs were changed meanwhile."""
        with one_thread(for_inputs=(pair.a.view, pair.b.view)):
            again = attempt(self.measure, pair)[0]
            if not abs(again - value) <= 1e-9 * max(1.0, abs(value)):
                return None
            return np.array(list(null_draws(pair, self.measure, PERMUTATIONS, 0, within)))


def _weak(values: Any) -> Any:
    try:
        return weakref.ref(values)
    except TypeError:  # lists and tuples cannot be watched
        return _nothing


def _nothing() -> None:
    return None


def two_sided(value: float, null: np.ndarray, info: Info) -> tuple[float, float]:
    """Shares of a null at least as alike and at least as unlike, the score itself counted among them."""
    sign = 1.0 if info.similarity else -1.0
    slack = 1e-9 * max(abs(value), float(np.abs(null).max()))  # rounding is not a difference
    more = 1 + int((sign * null >= sign * value - slack).sum())
    less = 1 + int((sign * null <= sign * value + slack).sum())
    return more / (1 + null.size), less / (1 + null.size)


def call_of(measure: Measure) -> str:
    """What to call for a null; a measure that has no name to look up is the caller's."""
    try:
        registered = get(measure.key).name == measure.name
    except LikewiseError:
        registered = False
    return (
        f"likewise.compare(x, y, {measure.key!r}, calibrate=True)"
        if registered
        else "The same call with calibrate=True"
    )


def _labels_of(pair: Pair) -> np.ndarray | None:
    """The labels both views carry, if they do."""
    answers = [rep.view.outputs for rep in (pair.a, pair.b)]
    labels = [outputs.labels.cpu().numpy() for outputs in answers if outputs and outputs.labels is not None]
    if len(labels) < 2:
        return None
    first, second = labels
    useful = 1 < len(np.unique(first)) < len(first)
    return first if useful and np.array_equal(first, second) else None
