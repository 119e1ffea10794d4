"""Every matrix of a report in one form: larger is more alike, over all networks, with chance, interval and rank.

Ranks are over pairs of networks: the share of pairs that are less alike, so that measures of any scale stand side by
side. Matrices belong to four views of a network: representations, answers, attacks and classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from likewise._base.arrays import Array
from likewise.errors import LikewiseError
from likewise.matrices.similarity import SimilarityMatrix
from likewise.measures.registry import get
from likewise.report.families import ReportNetworks
from likewise.report.runs import Runs
from likewise.transfer.matrix import TransferMatrix

VIEWS = ("representations", "answers", "attacks", "classes", "other measures")
_CLASSES = ("class-alignment",)


@dataclass(frozen=True, eq=False)
class ScoreGrid:
    """A matrix as the report shows it: grids over all networks of the report in their order, NaN where undefined."""

    label: str  # the measure, numbered where two runs have the same
    view: str  # one of `VIEWS`
    matrix: SimilarityMatrix  # as it was read
    values: Array
    null: Array  # what chance gives
    q: Array  # p-values, corrected for the number of pairs
    low: Array  # the ends of intervals over inputs
    high: Array

    @property
    def sign(self) -> int:
        """1 where larger is more alike, else -1."""
        return 1 if self.matrix.larger_is == "more alike" else -1

    @property
    def n(self) -> int:
        """The number of inputs, 0 if it was not recorded."""
        return int(self.matrix.about.get("n", 0) or 0)

    @cached_property
    def alike(self) -> Array:
        """Symmetric, larger is more alike; the diagonal is left out."""
        values = self.sign * (self.values + self.values.T) / 2
        return np.where(np.eye(len(values), dtype=bool), np.nan, values)

    @cached_property
    def ranks(self) -> Array:
        """The share of pairs that are less alike than each pair, ties counted half."""
        return ranked(self.alike)

    def ends(self, widen: float = 1.0) -> tuple[Array, Array]:
        """The interval of every pair, larger is more alike, `widen` times as far from the score."""
        low, high = ((grid + grid.T) / 2 for grid in (self.low, self.high))
        if self.sign < 0:
            low, high = -high, -low
        return self.alike - widen * (self.alike - low), self.alike + widen * (high - self.alike)

    @cached_property
    def has_intervals(self) -> bool:
        """Whether pairs have intervals."""
        return bool(np.isfinite(self.low).any())

    @cached_property
    def has_null(self) -> bool:
        """Whether pairs were compared with chance."""
        return bool(np.isfinite(self.q).any())


@dataclass(frozen=True, eq=False)
class ViewRanks:
    """One view of the networks: its measures, the rank of each pair over them, and the interval of that rank."""

    name: str
    measures: tuple[ScoreGrid, ...]
    ranks: Array
    low: Array
    high: Array

    @property
    def label(self) -> str:
        """The view by its measure, where it has only one."""
        count = len(self.measures)
        return self.measures[0].label if count == 1 else f"{self.name} ({count} measures)"


def ranked(alike: Array) -> Array:
    """The share of pairs of a symmetric grid that are less alike than each pair, ties counted half."""
    from scipy.stats import rankdata

    upper = np.triu_indices(len(alike), 1)
    values = alike[upper]
    finite = np.isfinite(values)
    ranks = np.full(values.shape, np.nan)
    if finite.any():
        ranks[finite] = (rankdata(values[finite]) - 0.5) / finite.sum()
    grid = np.full(alike.shape, np.nan)
    grid[upper] = ranks
    return np.where(np.isnan(grid), grid.T, grid)


def view_of(measure: str) -> str:
    """Which of the four views a measure looks at."""
    try:
        registered = get(measure)
    except LikewiseError:
        return VIEWS[4]
    if registered.name in _CLASSES:
        return VIEWS[3]
    return {"representation": VIEWS[0], "outputs": VIEWS[1], "networks": VIEWS[2]}[registered.info.on]


def comparable_scores(grid: Array, view: str, far: Array) -> Array:
    """The scores of networks that a view can compare: by attacks, none of one whose accuracy is `far` from others'."""
    return np.where(far[:, None] | far[None], np.nan, grid) if view == VIEWS[2] else grid


def score_grids(runs: Runs, networks: ReportNetworks) -> list[ScoreGrid]:
    """All matrices, by view, in the order of the runs; the one that families were found by leads its view."""
    matrices = [matrix for matrix in runs.matrices if len(matrix) > 1]
    grids = [_grid(matrix, label, networks) for matrix, label in zip(matrices, _labels(matrices), strict=True)]
    return sorted(grids, key=lambda grid: (VIEWS.index(grid.view), grid.matrix is not networks.main))


def _labels(matrices: Sequence[SimilarityMatrix]) -> list[str]:
    """The measures, numbered where several matrices are of the same one."""
    names = [matrix.measure or "matrix" for matrix in matrices]
    return [
        name if names.count(name) == 1 else f"{name} ({names[: i + 1].count(name)})" for i, name in enumerate(names)
    ]


def _grid(matrix: SimilarityMatrix, label: str, networks: ReportNetworks) -> ScoreGrid:
    extra = dict(matrix.extra)
    if isinstance(matrix, TransferMatrix) and "low" not in extra:
        intervals = matrix.intervals()
        extra |= {"low": intervals.low, "high": intervals.high}
    grids = {
        name: networks.align(matrix, np.asarray(extra.get(key, np.nan)))
        for name, key in (("null", "null_mean"), ("q", "q"), ("low", "low"), ("high", "high"))
    }
    return ScoreGrid(label, view_of(matrix.measure), matrix, networks.align(matrix), **grids)


def view_ranks(scores: Sequence[ScoreGrid]) -> list[ViewRanks]:
    """The ranks of pairs in every view that has a measure."""
    views = []
    for name in VIEWS:
        measures = tuple(score for score in scores if score.view == name)
        if measures:
            low, high = (_mean(ends) for ends in zip(*map(_rank_ends, measures), strict=True))
            views.append(ViewRanks(name, measures, ranked(_mean([score.ranks for score in measures])), low, high))
    return views


def _mean(grids: Sequence[Array]) -> Array:
    """The mean over grids, of those that are defined."""
    stack = np.stack(grids)
    counts = np.isfinite(stack).sum(axis=0)
    return np.where(counts > 0, np.nansum(stack, axis=0) / np.maximum(counts, 1), np.nan)


def _rank_ends(score: ScoreGrid) -> tuple[Array, Array]:
    """The interval of each pair's rank: pairs whose intervals lie apart from its own are certainly less or more alike.

    Intervals are widened for the number of pairs, since a pair is picked for its gap.
    """
    from scipy.stats import norm

    upper = np.triu_indices(len(score.alike), 1)
    count = int(np.isfinite(score.alike[upper]).sum())
    if not score.has_intervals or not count:
        undefined = np.full(score.alike.shape, np.nan)
        return undefined, undefined
    low, high = score.ends(float(norm.ppf(1 - 0.025 / count) / norm.ppf(0.975)))
    lows, highs = (np.sort(ends[upper][np.isfinite(ends[upper])]) for ends in (low, high))
    below = np.searchsorted(highs, low, side="left") / count
    above = 1 - np.searchsorted(lows, high, side="right") / max(len(lows), 1)
    defined = np.isfinite(low) & np.isfinite(high)
    return np.where(defined, below, np.nan), np.where(defined, 1 - above, np.nan)
