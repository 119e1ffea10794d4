"""Whether two matrices over the same networks agree. Networks are permuted, since pairs share networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from likewise._base.arrays import Array
from likewise.analysis.family_evidence import pairs
from likewise.errors import InputError, check_seed
from likewise.matrices.similarity import SimilarityMatrix


@dataclass(frozen=True)
class Agreement:
    """The correlation of two matrices over all pairs of networks, and how often chance gives as much.

    Attributes:
        correlation: 1 if the same pairs are alike.
        low: The lower end of the 95 % interval by drawing networks with replacement.
        high: The upper end.
        p: The share of permutations of the networks whose correlation is as far from 0 (Mantel's test), the observed
            one counted among them. The p of a plain correlation would take the pairs for independent, which they are
            not.
        permutations: How many permutations.
        networks: How many networks.
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
    """Correlate two matrices: do they agree on which pairs of networks are alike?

    Networks are matched by name. A distance is sign-flipped, so that 1 always means that the same pairs are alike.

    Args:
        matrix: A matrix of four networks or more.
        other: Another over the same networks.
        how: "pearson" or "spearman".
        permutations: How many permutations p is computed from.
        resamples: How many draws the interval is computed from.
        seed: Draws both.

    Example:
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
    if how not in ("pearson", "spearman"):
        raise InputError(f"no correlation named {how!r}. Choose 'pearson' or 'spearman'.")
    one, two = (_signed(m.reordered(matrix.names)) for m in (matrix, other))
    if how == "spearman":
        one, two = _ranked(one), _ranked(two)
    check_seed(seed)
    draw = np.random.default_rng(seed)
    observed, drawn = mantel(one, two, permutations=permutations, draw=draw)
    if np.isnan(observed):
        raise InputError("all pairs of one matrix are equally alike, so nothing can agree with it. Choose another.")
    low, high = _interval(one, two, resamples, draw)
    return Agreement(round(observed, 12), low, high, p_value(observed, drawn), permutations, len(one))


def mantel(
    one: Array,
    two: Array,
    *,
    draw: np.random.Generator,
    symmetric: bool = True,
    ranked: bool = False,
    permutations: int = 9999,
) -> tuple[float, Array]:
    """The correlation of two square arrays over pairs of networks, and those after permuting the networks of `two`.

    A symmetric array has one value per pair, else each order counts. Pairs undefined in either are left out. NaN
    where all pairs are equal.
    """
    size = len(one)
    rows, columns = pairs = np.triu_indices(size, 1) if symmetric else np.nonzero(~np.eye(size, dtype=bool))
    observed = correlations(one[pairs], two[pairs][None], ranked=ranked)
    complete = not np.isnan([one[pairs], two[pairs]]).any()
    if complete:  # ranks, mean and size stay the same whatever the order
        one, two = (_standard(side, pairs, ranked, symmetric) for side in (one, two))
    drawn = []
    for start in range(0, permutations, step := max(1, 2**20 // max(1, len(rows)))):
        orders = np.array([draw.permutation(size) for _ in range(min(step, permutations - start))])
        again = two[orders[:, rows], orders[:, columns]]
        drawn.append(again @ one[pairs] if complete else correlations(one[pairs], again, ranked=ranked))
    return float(observed[0]), np.concatenate(drawn)


def _standard(values: Array, pairs: tuple[Array, ...], ranked: bool, symmetric: bool) -> Array:
    """Values or ranks over pairs, centred and of size 1, so that a sum of products is a correlation."""
    centred = _centred(values[pairs], ranked)
    scaled = np.zeros(values.shape)
    scaled[pairs] = centred / (np.sqrt((centred**2).sum()) or np.nan)
    return scaled + scaled.T if symmetric else scaled


def correlations(one: Array, two: Array, *, ranked: bool) -> Array:
    """The correlation of values with each row of others, by value or by rank, without what is undefined in either."""
    undefined = np.isnan(one) | np.isnan(two)
    left, right = (_centred(np.where(undefined, np.nan, side), ranked) for side in (one, two))
    size = np.sqrt((left**2).sum(axis=-1) * (right**2).sum(axis=-1))
    return np.divide((left * right).sum(axis=-1), size, where=size > 0, out=np.full(size.shape, np.nan))


def _centred(values: Array, ranked: bool) -> Array:
    """Values or ranks of each row about their mean, 0 where undefined and where all are equal."""
    from scipy.stats import rankdata

    values = rankdata(values, axis=-1, nan_policy="omit") if ranked else values
    defined = ~np.isnan(values)
    high, low = (np.where(defined, values, end) for end in (-np.inf, np.inf))
    count = np.maximum(defined.sum(axis=-1, keepdims=True), 1)
    mean = np.where(defined, values, 0.0).sum(axis=-1, keepdims=True) / count
    varied = high.max(axis=-1, keepdims=True) > low.min(axis=-1, keepdims=True)
    return np.where(defined & varied, values - mean, 0.0)


def p_value(observed: float, drawn: Array) -> float:
    """The share of correlations as far from 0 as the observed one, itself counted among them."""
    return float(1 + (np.abs(drawn) >= abs(observed) - 1e-12).sum()) / (len(drawn) + 1)


def _interval(one: Array, two: Array, resamples: int, draw: np.random.Generator) -> tuple[float, float]:
    """The middle 95 % of correlations over networks drawn with replacement; a network is no pair with itself."""
    upper = np.triu_indices(len(one), 1)
    values = []
    for _ in range(resamples):
        networks = draw.integers(len(one), size=len(one))
        rows, columns = networks[upper[0]], networks[upper[1]]
        apart = rows != columns
        left, right = one[rows[apart], columns[apart]], two[rows[apart], columns[apart]]
        if apart.any() and np.ptp(left) and np.ptp(right):
            values.append(np.corrcoef(left, right)[0, 1])
    low, high = np.quantile(values, [0.025, 0.975]) if values else (np.nan, np.nan)
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
