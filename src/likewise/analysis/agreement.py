"""Do two matrices over the same networks say the same? Networks are permuted, since pairs share networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from likewise.analysis.affinity import Array, pairs
from likewise.errors import InputError
from likewise.matrices.similarity import SimilarityMatrix


@dataclass(frozen=True)
class Agreement:
    """The correlation of two matrices over all pairs of networks, and how often chance gives as much.

    `p` is the share of permutations of the networks whose correlation is as far from 0 (Mantel's test), the one
    given counted among them. The p of a plain correlation would take the pairs for independent, which they are not.
    `low` and `high` are the 95 % interval by drawing networks with replacement.
    """

    correlation: float
    low: float
    high: float
    p: float
    permutations: int
    networks: int

    def __float__(self) -> float:
        return self.correlation

    def __str__(self) -> str:
        return f"{self.correlation:.2f} [{self.low:.2f}, {self.high:.2f}], p {self.p:.4g}"


def agreement(
    matrix: SimilarityMatrix,
    other: SimilarityMatrix,
    *,
    how: Literal["pearson", "spearman"] = "pearson",
    permutations: int = 9999,
    resamples: int = 1000,
    seed: int = 0,
) -> Agreement:
    """How far two matrices agree on which pairs of networks are alike.

    The networks of both are matched by name. A distance is turned round, so that 1 always means: the same pairs
    are alike. `permutations` are those of p, `resamples` those of the interval.

    >>> a = SimilarityMatrix(["a", "b", "c", "d"], [[9, 3, 2, 1], [3, 9, 2, 1], [2, 2, 9, 1], [1, 1, 1, 9]])
    >>> agreement(a, a).correlation
    1.0
    """
    if set(matrix.names) != set(other.names):
        odd = sorted(set(matrix.names) ^ set(other.names))[0]
        raise InputError(f"the matrices are of other networks: {odd!r} is in one only. Give both the same networks.")
    if len(matrix.names) < 4:
        raise InputError(f"{len(matrix.names)} networks have too few permutations to tell. Give four or more.")
    for name, count in (("permutations", permutations), ("resamples", resamples)):
        if count < 1:
            raise InputError(f"{name} is {count}. Give at least 1.")
    one, two = (_signed(m.reordered(matrix.names)) for m in (matrix, other))
    if how == "spearman":
        one, two = _ranked(one), _ranked(two)
    elif how != "pearson":
        raise InputError(f"no correlation named {how!r}. Choose 'pearson' or 'spearman'.")
    left, right = _standard(one), _standard(two)
    found = float((left * right).sum() / 2)
    draw = np.random.default_rng(seed)
    beyond = 1
    for _ in range(permutations):
        order = draw.permutation(len(left))
        beyond += int(abs(np.vdot(left, right[order][:, order]) / 2) >= abs(found) - 1e-12)
    low, high = _interval(left, right, resamples, draw)
    return Agreement(round(found, 12), low, high, beyond / (permutations + 1), permutations, len(left))


def _interval(one: Array, two: Array, resamples: int, draw: np.random.Generator) -> tuple[float, float]:
    """The middle 95 % of correlations over networks drawn with replacement; a network is no pair with itself."""
    upper = np.triu_indices(len(one), 1)
    found = []
    for _ in range(resamples):
        chosen = draw.integers(len(one), size=len(one))
        rows, columns = chosen[upper[0]], chosen[upper[1]]
        apart = rows != columns
        left, right = one[rows[apart], columns[apart]], two[rows[apart], columns[apart]]
        if np.ptp(left) and np.ptp(right):
            found.append(np.corrcoef(left, right)[0, 1])
    low, high = np.quantile(found, [0.025, 0.975]) if found else (np.nan, np.nan)
    return float(low), float(high)


def _signed(matrix: SimilarityMatrix) -> Array:
    values = np.asarray(matrix.values, dtype=np.float64)
    values = (values + values.T) / 2
    if np.isnan(pairs(values)).any():
        raise InputError(f"{matrix!r} has pairs without a score. Leave out networks: matrix.reordered([...]).")
    return values if matrix.larger_is == "more alike" else -values


def _ranked(values: Array) -> Array:
    from scipy.stats import rankdata

    ranks = np.zeros_like(values)
    upper = np.triu_indices(len(values), 1)
    ranks[upper] = rankdata(values[upper])
    return ranks + ranks.T


def _standard(values: Array) -> Array:
    """Centred and scaled over pairs, so that the sum of products over pairs is the correlation; 0 on the diagonal."""
    over = pairs(values)
    size = np.sqrt(((over - over.mean()) ** 2).sum())
    if size == 0:
        raise InputError("all pairs of one matrix are equally alike, so nothing can agree with it. Choose another.")
    scaled = (values - over.mean()) / size
    np.fill_diagonal(scaled, 0.0)
    return scaled
