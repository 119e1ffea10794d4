"""How far a score would move with other inputs of the same kind.

The inputs are split into random groups and each group is left out once, then each with the next one. The
target of the interval is the mean score of as many other inputs, so only the spread of a score matters, not its bias.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np
import torch

from likewise._base.machine import one_thread
from likewise.comparison.arguments import Call, prepare
from likewise.comparison.pairs import Base, attempt, representations, score_table
from likewise.comparison.schedule import Resources, draw_scores
from likewise.comparison.units import STRETCHES, Units, units_of
from likewise.errors import InputError, UndefinedError, brief, check_count
from likewise.matrices.labelled import NO_INTERVALS
from likewise.matrices.similarity import SimilarityMatrix
from likewise.matrices.uncertainty import Interval
from likewise.measures.facts import SCALE, Info
from likewise.measures.function import Measure
from likewise.measures.pair import Pair
from likewise.measures.representation import Representation
from likewise.measures.resampling import Subset, measure_of_subset
from likewise.measures.workspace import parse_memory
from likewise.views import Activations

GROUPS = 25
LEAST = 8
BLOCK = 2.0  # length of the stretches of a series, by how long it takes to forget
EVEN = 0.25  # as many equal inputs as would weigh the same, by their number: with fewer, intervals are too narrow
ENOUGH = 8  # inputs that a score rests on: with fewer, 95 % intervals held the truth in 84 or 91 % of trials


@dataclass(frozen=True)
class Groups:
    """Units in groups of one size, at random or, of a series, one after another; what is left over is in no group."""

    units: Units
    members: np.ndarray  # (groups, size)

    @staticmethod
    def of(units: Units, count: int, seed: int) -> Groups:
        """`count` groups of equal size or fewer: those of a series are long enough to forget."""
        rng, n = np.random.default_rng(seed), units.count
        size = max(-(-n // count), math.ceil(BLOCK * units.memory))
        units.check_length("an interval", STRETCHES)
        if n // size < LEAST and units.clustered:
            raise InputError(
                f"there are {n} clusters of inputs, and an interval needs {LEAST}. Show the networks more."
            )
        sizes = np.bincount(units.of_input)
        if units.n**2 < EVEN * n * (sizes**2).sum():
            raise InputError(
                f"the largest of the {n} clusters holds {sizes.max()} of the {units.n} inputs, so that an interval "
                "would rest on few of them. Keep about equally many inputs of every cluster."
            )
        order = np.arange(n) if units.memory else rng.permutation(n)
        members = order[: n // size * size].reshape(-1, size)
        return Groups(units, rng.permutation(members) if units.memory else members)

    @property
    def n(self) -> int:
        """How many inputs there are."""
        return self.units.n

    @property
    def count(self) -> int:
        """How many groups there are."""
        return len(self.members)

    def remaining(self) -> list[np.ndarray]:
        """The inputs that stay where each group is left out, then where it is with the next one."""
        pairs = np.concatenate([self.members, np.roll(self.members, -1, axis=0)], axis=1)
        rests = []
        for out in (*self.members, *pairs):
            stays = np.ones(self.n, dtype=bool)
            stays[self.units.rows(out)] = False
            rests.append(np.flatnonzero(stays))
        return rests


def bootstrap(
    views: Any,
    other: Any = None,
    measure: Any = None,
    *,
    data: Any = None,
    layers: str | Mapping[str, str] | None = None,
    groups: int = GROUPS,
    level: float = 0.95,
    seed: int = 0,
    clusters: Any = None,
    series: bool = False,
    memory: str | int | None = None,
    **options: Any,
) -> Interval:
    """How far a score would move with other inputs of the same kind.

    Splits the inputs into random groups and scores what remains where each is left out (the delete-group
    jackknife): nothing is drawn twice, which would make an input its own nearest neighbour, and nearly all inputs
    stay, so that the score of what remains is of the same kind. The interval is symmetric on a scale without
    ends (log-odds between two bounds, logarithm above one) and so stays inside the range of the measure.

    Args:
        views: An array `(n, d)`, a view, a module or an address; or a list or mapping of many, for all pairs.
        other: The second of two.
        measure: A name such as "cka", a key such as "jaccard[k=5]", a measure or a function. By default "cka-debiased".
        data: What networks are shown, such as "cifar10:test[:1000]".
        layers: The layer to look at in each of them; see `Show`.
        groups: How many groups inputs are split into.
        level: How often such intervals hold the truth.
        seed: Draws the groups.
        clusters: One label per input: inputs of one clip, text or image are left out as a whole. By default those
            that views remember, which have one row per token or position.
        series: Whether inputs are one time series: stretches of it are then left out.
        memory: The most to hold at a time, such as "4GB".
        **options: The measure's own options, and how networks are shown (see `Show`).

    Returns:
        The score and both ends of its interval; tables of them for many, NaN with a reason where there is none.

    Raises:
        UndefinedError: The two have no interval.

    Example:
        >>> import numpy as np, likewise
        >>> hidden, *noise = np.random.default_rng(0).normal(size=(3, 100, 8))
        >>> result = likewise.bootstrap(hidden + noise[0], hidden + noise[1], "cka")
        >>> bool(result.low < result.value < result.high)
        True
    """
    check_count("groups", groups)
    if groups < LEAST:
        raise InputError(f"groups must be at least {LEAST}, got {groups}. The default is {GROUPS}.")
    if not isinstance(level, (int, float)) or not 0 < level < 1:
        raise InputError(f"level must be between 0 and 1, got {brief(level)}.")
    call = Call.read(bootstrap, views, other, measure, options, data=data, layers=layers)
    views, bound = prepare(call, seed)
    split = Groups.of(units_of(views, clusters=clusters, series=series), groups, seed)
    run = Resources(parse_memory(memory), progress=call.show.progress)
    base = Base(representations(views, run.limit), bound)
    with one_thread(for_inputs=tuple(views)):
        values = base.values
    lows, highs, reasons = _interval_grids(base, values, split, level, run)
    if call.two and reasons:
        raise UndefinedError(next(iter(reasons.values())))
    facts: dict[str, Any] = {"measure": bound.key, "level": level, "groups": split.count}
    facts |= {"method": f"jackknife over groups of {split.units.words}"}
    if call.two:
        low, high = float(lows[0, 1]), float(highs[0, 1])
        return Interval(value=float(values[0, 1]), low=low, high=high, **facts)
    names = tuple(view.name for view in views)
    why = {(names[i], names[j]): reason for (i, j), reason in reasons.items()}
    return Interval(value=values, low=lows, high=highs, names=names, reasons=why, **facts)


def interval_matrices(
    matrices: Mapping[str, SimilarityMatrix],
    views: list[Activations],
    measures: list[Measure],
    run: Resources,
    *,
    seed: int,
    **together: Any,
) -> dict[str, SimilarityMatrix]:
    """Matrices with the interval of every pair beside their values; measures of networks have none.

    `together` says which inputs belong together: `clusters` and `series` of `bootstrap`.
    """
    widened = dict(matrices)
    split = Groups.of(units_of(views, **together), GROUPS, seed)
    for measure in measures:
        if measure.info.on == "networks":
            continue
        matrix, base = matrices[measure.key], Base(representations(views, run.limit), measure)
        low, high, reasons = _interval_grids(base, matrix.values, split, 0.95, run)
        about = {**matrix.about, NO_INTERVALS: _note(reasons, matrix.names)} if reasons else matrix.about
        widened[measure.key] = replace(matrix, extra={**matrix.extra, "low": low, "high": high}, about=about)
    return widened


def _note(reasons: Mapping[tuple[int, int], str], names: Sequence[str]) -> str:
    """How many pairs have no interval, and why the first has none."""
    pairs = len({frozenset(pair) for pair in reasons})
    (first, second), reason = next(iter(reasons.items()))
    pair = f"{names[first]}, {names[second]}"
    return f"No interval for {pairs} of {math.comb(len(names), 2)} pairs, such as {pair}: {reason}"


def _interval_grids(
    base: Base, values: np.ndarray, split: Groups, level: float, run: Resources
) -> tuple[np.ndarray, np.ndarray, dict[tuple[int, int], str]]:
    """Both ends of all intervals, NaN where there is none, and why."""
    draws = draw_scores(base, LeftOut(split), run, "leaving out")
    lows, highs = interval_of(base.measure.info, values, draws, split, level)
    reasons = _reasons(base.reps, base.measure, values, draws, split)
    for i, j in reasons:
        lows[i, j] = highs[i, j] = np.nan
    return lows, highs, reasons


def _reasons(
    reps: Sequence[Representation], measure: Measure, values: np.ndarray, draws: np.ndarray, split: Groups
) -> dict[tuple[int, int], str]:
    """Which pairs have no interval, and why."""
    reasons = {}
    pairs = [(0, 1)] if len(reps) == 2 else permutations(range(len(reps)), 2)
    for i, j in pairs:
        pair = Pair(reps[i], reps[j])
        if why := no_interval(pair, measure, values[i, j], draws[:, i, j], split):
            reasons[i, j] = why
    return reasons


def interval_of(
    info: Info, values: np.ndarray, draws: np.ndarray, split: Groups, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of intervals from scores and those where groups are left out (2 groups first); NaN for none."""
    from scipy.special import stdtrit  # slow to import, and most comparisons ask for no interval

    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        centre, moved = _scaled(info, values), _scaled(info, draws)
        linear = centre + (draws - values) * _slope(info, values)
        moved = np.where(np.isfinite(moved), moved, linear)  # some draws may be at an end
        spread = _spread(centre, moved, split, info.shared_variance)
        reach = stdtrit(split.count - 1, (1 + level) / 2) * spread
        return _unscaled(info, centre - reach), _unscaled(info, centre + reach)


def _spread(values: np.ndarray, moved: np.ndarray, split: Groups, share: float) -> np.ndarray:
    """The standard deviation of a score over inputs, from what leaving groups out changes.

    The jackknife variance J counts a part of the score that depends on k inputs together k times. How much of it
    does is seen where two groups are left out at once: I, the variance of what that changes beyond the sum of
    both. The truth lies between J² / (J + 2 I) and J. Which of J² / (J + share I) it is depends on how smooth
    a measure is, and `shared_variance` declares the share, as simulations gave it (docs/significance.md).
    """
    singles, pairs = moved[: split.count], moved[split.count :]
    n, size = split.units.count, split.members.shape[1]
    cut = size / (size - split.units.memory / 2)  # where stretches end, steps that go together are parted
    jackknife = cut * (n - size) ** 2 / (n * size) * singles.var(axis=0, ddof=1)
    together = pairs - singles - np.roll(singles, -1, axis=0) + values
    count = n / size
    joint = count * (count - 1) / 2 * together.var(axis=0, ddof=1)
    return np.asarray(jackknife / np.sqrt(jackknife + share * joint))


def _scaled(info: Info, values: np.ndarray) -> np.ndarray:
    """Scores on a scale without ends."""
    low, high = info.bounds
    below = np.log(values - low) if low is not None else 0.0
    above = np.log(high - values) if high is not None else 0.0
    return np.asarray(values if low is high is None else below - above)


def _slope(info: Info, values: np.ndarray) -> np.ndarray:
    """How fast that scale runs at some scores."""
    low, high = info.bounds
    below = 1 / (values - low) if low is not None else 0.0
    above = 1 / (high - values) if high is not None else 0.0
    return np.asarray(np.ones_like(values) if low is high is None else below + above)


def _unscaled(info: Info, scaled: np.ndarray) -> np.ndarray:
    low, high = info.bounds
    if low is not None and high is not None:
        return low + (high - low) / (1 + np.exp(-scaled))
    if low is not None:
        return low + np.exp(scaled)
    return scaled if high is None else high - np.exp(-scaled)


@dataclass(frozen=True)
class LeftOut:
    """Each group left out once, then each with the next one."""

    split: Groups

    @property
    def count(self) -> int:
        """How many draws there are."""
        return 2 * self.split.count

    @property
    def facts(self) -> tuple[Any, ...]:
        """All that a draw depends on beside its number."""
        return "left out", self.split

    def tables(self, base: Base, numbers: Sequence[int]) -> Iterator[np.ndarray]:
        """Scores of all pairs on what remains in some of the draws."""
        _ = base.tables  # what subsets take by index
        rests = self.split.remaining()
        for number in numbers:
            index = torch.from_numpy(rests[number]).to(base.reps[0].values.device)
            some: list[Representation] = [Subset(rep, index) for rep in base.reps]
            yield score_table(measure_of_subset(base.measure, index), some, some, {})


def no_interval(pair: Pair, measure: Measure, value: float, draws: np.ndarray, split: Groups) -> str:
    """Why a pair has no interval, or nothing."""
    if np.isnan(value):
        return attempt(measure, pair)[1]
    if measure.info.support is not None:
        count, which = measure.info.support(pair, measure.resolved)
        if count < ENOUGH:
            return (
                f"{measure.key} has no interval: it rests on {count} of the {split.n} inputs, {which}. An interval "
                f"needs {ENOUGH}. Show the networks more inputs."
            )
    if why := heavy_tails(pair, measure, value, split.units):
        return why
    for rest, score in zip(split.remaining(), draws, strict=True):
        index = torch.from_numpy(rest).to(pair.a.values.device)
        if np.isnan(score):
            some = Pair(Subset(pair.a, index), Subset(pair.b, index))
            why = attempt(measure_of_subset(measure, index), some)[1]
            return f"{measure.key} has no interval: of {len(rest)} of the {split.n} inputs, {why}"
        if why := measure.saturated(float(score), (len(rest), pair.a.d, pair.b.d)):
            return (
                f"{measure.key} has no interval: leaving out {split.n - len(rest)} of the {split.n} inputs "
                f"tells how far it would move, and then {why}"
            )
    rounding = 1e-12 * max(1.0, abs(value)) if SCALE in measure.info.invariant_to else 0.0
    if np.ptp(draws) <= rounding:
        return (
            f"{measure.key} has no interval: it is {round(value, 12):.4g} whichever inputs are left out, so they do "
            "not tell how far it would move. Show the networks more inputs."
        )
    if any(end is not None and abs(value - end) <= rounding for end in measure.info.bounds):
        return (
            f"{measure.key} has no interval: it is {round(value, 12):.4g}, the end of its range. Show the networks "
            "more inputs."
        )
    return ""


def heavy_tails(pair: Pair, measure: Measure, value: float, units: Units) -> str:
    """Why a few inputs weigh too much for an interval, or nothing.

    What large inputs would do that are not among these does not show in leaving out those that are. A measure that
    looks at the directions of rows alone does not mind: its score stays where all have one length.
    """
    if measure.info.on != "representation":
        return ""
    for rep in (pair.a, pair.b):
        squares = rep.centred.square().sum(dim=1).cpu().double().numpy()
        weights = np.bincount(units.of_input, squares) / squares.sum()
        count = 1 / float((weights**2).sum())
        if count < EVEN * units.count:
            break
    else:
        return ""
    rows = [torch.nn.functional.normalize(side.values, dim=1) for side in (pair.a, pair.b)]
    x, y = (Representation(Activations(values)) for values in rows)
    score = attempt(measure, Pair(x, y))[0]
    if abs(score - value) <= 1e-5 * max(1.0, abs(value)):
        return ""
    what, owned = "clusters" if units.clustered else "inputs", f"{weights.max():.0%} of the squared activations"
    return (
        f"{measure.key} has no interval: the largest of the {units.count} {what} owns {owned} of {rep.view.label}, and "
        f"all weigh as much as {count:.0f} equal ones. Scale every row to length 1, or choose a measure of directions "
        "alone, such as 'rsa' or 'mutual-knn'."
    )
