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
from likewise.report.families import Zoo
from likewise.report.runs import Runs
from likewise.transfer.matrix import TransferMatrix

VIEWS = ("representations", "answers", "attacks", "classes", "other measures")
_CLASSES = ("class-alignment",)
TIMES = 400  # draws of inputs for intervals of attack transfer


@dataclass(frozen=True, eq=False)
class Scored:
    """A matrix as the report shows it: grids over all networks of the report in their order, NaN where undefined.

    label  what it is called here: the measure, and where it comes from if two runs have the same
    null   what chance gives, `q` whether the score is beyond it; low and high: its interval over inputs
    """

    label: str
    view: str
    matrix: SimilarityMatrix
    values: Array
    null: Array
    q: Array
    low: Array
    high: Array

    @property
    def sign(self) -> int:
        """1 where larger is more alike, else -1."""
        return 1 if self.matrix.larger_is == "more alike" else -1

    @property
    def n(self) -> int:
        """How many inputs it was found on, 0 if nobody wrote it down."""
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
        """Whether pairs were held against chance."""
        return bool(np.isfinite(self.q).any())


def ranked(alike: Array) -> Array:
    """The share of pairs of a symmetric grid that are less alike than each pair, ties counted half."""
    from scipy.stats import rankdata

    upper = np.triu_indices(len(alike), 1)
    values = alike[upper]
    known = np.isfinite(values)
    ranks = np.full(values.shape, np.nan)
    if known.any():
        ranks[known] = (rankdata(values[known]) - 0.5) / known.sum()
    grid = np.full(alike.shape, np.nan)
    grid[upper] = ranks
    return np.where(np.isnan(grid), grid.T, grid)


def view_of(measure: str) -> str:
    """Which of the four views a measure looks at."""
    try:
        found = get(measure)
    except LikewiseError:
        return VIEWS[4]
    if found.name in _CLASSES:
        return VIEWS[3]
    return {"representation": VIEWS[0], "outputs": VIEWS[1], "networks": VIEWS[2]}[found.info.on]


def scored(runs: Runs, zoo: Zoo) -> list[Scored]:
    """All matrices, by view, in the order they were given; the one that families were found by leads its view."""
    known = [matrix for matrix in runs.matrices if len(matrix) > 1]
    labels = _labels(known)
    found = [_scored(matrix, label, zoo) for matrix, label in zip(known, labels, strict=True)]
    return sorted(found, key=lambda one: (VIEWS.index(one.view), one.matrix is not zoo.main))


def _labels(matrices: Sequence[SimilarityMatrix]) -> list[str]:
    """The measures; numbered where several matrices are of the same."""
    names = [matrix.measure or "matrix" for matrix in matrices]
    counts: dict[str, int] = {}
    labels = []
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        labels.append(name if names.count(name) == 1 else f"{name} ({counts[name]})")
    return labels


def _scored(matrix: SimilarityMatrix, label: str, zoo: Zoo) -> Scored:
    empty = np.full((len(zoo.names), len(zoo.names)), np.nan)
    extra = matrix.extra
    grids = {
        name: zoo.spread_out(matrix, np.asarray(extra[key])) if key in extra else empty
        for name, key in (("null", "null_mean"), ("q", "q"), ("low", "low"), ("high", "high"))
    }
    if isinstance(matrix, TransferMatrix) and "low" not in extra:
        found = matrix.intervals(times=TIMES)
        grids |= {"low": zoo.spread_out(matrix, found.low), "high": zoo.spread_out(matrix, found.high)}
    return Scored(label, view_of(matrix.measure), matrix, zoo.spread_out(matrix), **grids)
