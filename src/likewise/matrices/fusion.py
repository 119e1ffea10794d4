"""Several measures of the same networks as one: by the ranks that they give to pairs, or by similarity network fusion.

What is fused are rankings of pairs, so the scale of a measure does not matter, and a fused value says how alike a pair
is among the pairs of these networks, not more: with other networks beside it the same pair gets another value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real

import numpy as np

from likewise._base.arrays import Array
from likewise.errors import InputError, UnknownNameError, did_you_mean
from likewise.matrices.similarity import SimilarityMatrix

MEASURED = 0.5  # the least share of the weights by which a pair must be defined
NEIGHBOURS, ROUNDS, SCALE = 5, 10, 0.5  # of similarity network fusion; Wang et al. use 20, 10 to 20 and 0.3 to 0.8
Matrices = Mapping[str, SimilarityMatrix] | Sequence[SimilarityMatrix]


def fuse(matrices: Matrices, how: str = "ranks", *, weights: Mapping[str, float] | None = None) -> SimilarityMatrix:
    """Fuse what several measures say of the same networks into one matrix.

    By "ranks", each measure ranks all pairs, 0 for the least alike and 1 for the most, and the ranks are averaged. By
    "snf", ranks become affinities, and each measure's is diffused through the nearest neighbours that the others see
    (Wang et al. 2014); the result is ranked again. A measure that is not symmetric counts with the mean of both orders.

    Args:
        matrices: What `compare` gives of several measures, or a list of matrices over the same networks.
        how: "ranks" or "snf".
        weights: A weight per measure, for ranks; by default all count alike, with weights those it names.

    Returns:
        A matrix in [0, 1], 1 for the pair that all measures call most alike. NaN where most measures are undefined.

    Raises:
        InputError: There are fewer than two measures or three networks, names differ, or weights do not fit.

    Example:
        >>> names = ["a", "b", "c"]
        >>> near = SimilarityMatrix(names, [[1, 0.9, 0.2], [0.9, 1, 0.1], [0.2, 0.1, 1]], "one", "more alike")
        >>> far = SimilarityMatrix(names, [[0, 1, 5], [1, 0, 3], [5, 3, 0]], "two", "less alike")
        >>> fused = fuse([near, far])
        >>> fused["a", "b"], fused["a", "c"], fused["b", "c"]
        (1.0, 0.25, 0.25)
    """
    several = list(matrices.values() if isinstance(matrices, Mapping) else matrices)
    if len(several) < 2:
        raise InputError(f"{len(several)} measures are given, and several are fused. Give two or more.")
    names = list(several[0].names)
    if len(names) < 3:
        raise InputError(f"pairs are ranked, and {len(names)} networks have one. Give three or more.")
    for matrix in several[1:]:
        if sorted(matrix.names) != sorted(names):
            raise InputError(
                f"{several[0].measure!r} and {matrix.measure!r} are of different networks. Compare the same ones."
            )
    shares = _weights([matrix.measure for matrix in several], weights, how)
    apart = []
    for matrix in several:
        values = matrix.reordered(names).values
        apart.append(values if matrix.larger_is == "less alike" else -values)
    fused = fuse_values(apart, how, shares)
    np.fill_diagonal(fused, 1.0)
    about = {"fused": [matrix.measure for matrix, share in zip(several, shares, strict=True) if share > 0]}
    return SimilarityMatrix(names, fused, f"fused-{how}", "more alike", bounds=(0.0, 1.0), about=about)


def fuse_values(apart: Sequence[Array], how: str = "ranks", weights: Sequence[float] | None = None) -> Array:
    """The fusion of square arrays, larger as less alike; NaN on the diagonal.

    Args:
        apart: One array (m, m) per measure, NaN where undefined.
        how: "ranks" or "snf".
        weights: One per measure.
    """
    if how not in _FUSIONS:
        raise UnknownNameError(f"no fusion named {how!r}.{did_you_mean(how, _FUSIONS)} Choose 'ranks' or 'snf'.")
    size = len(apart[0])
    rows, columns = np.triu_indices(size, 1)
    ranked = np.array([_ranked(((values + values.T) / 2)[rows, columns]) for values in apart])
    shares = np.ones(len(apart)) if weights is None else np.asarray(weights, dtype=np.float64)
    fused = np.full((size, size), np.nan)
    fused[rows, columns] = fused[columns, rows] = _FUSIONS[how](ranked, shares, size)
    return fused


def _weights(measures: Sequence[str], weights: Mapping[str, float] | None, how: str) -> list[float]:
    """One weight per measure; those that are not named count nothing."""
    if weights is None:
        return [1.0] * len(measures)
    if how != "ranks":
        raise InputError(f"weights are of ranks, and this is a fusion by {how!r}. Leave them out.")
    unknown = [name for name in weights if name not in measures]
    if unknown:
        raise InputError(f"no matrix is of {unknown[0]!r}.{did_you_mean(unknown[0], measures)} Weigh those given.")
    shares = [weights.get(name, 0.0) for name in measures]
    numbers = all(isinstance(share, Real) for share in shares)
    if not numbers or not np.isfinite(shares).all() or min(shares) < 0 or sum(share > 0 for share in shares) < 1:
        raise InputError("weights are numbers of at least 0, one of them above. Give such numbers.")
    return list(map(float, shares))


def _ranked(apart: Array) -> Array:
    """Pairs by how alike they are, from 0 to 1; equal ones share the mean, NaN stays."""
    from scipy.stats import rankdata

    defined = ~np.isnan(apart)
    ranks = np.full(len(apart), np.nan)
    if defined.sum() > 1:
        ranks[defined] = 1 - (rankdata(apart[defined]) - 1) / (defined.sum() - 1)
    return ranks


def _mean_of_ranks(ranked: Array, weights: Array, size: int) -> Array:
    shares = np.where(np.isnan(ranked), 0.0, weights[:, None])
    total = shares.sum(axis=0)
    enough = total > MEASURED * weights.sum()
    return np.divide((shares * np.nan_to_num(ranked)).sum(axis=0), total, where=enough, out=np.full_like(total, np.nan))


def _network_fusion(ranked: Array, weights: Array, size: int) -> Array:
    """Similarity network fusion of the measures that are defined everywhere."""
    whole = ranked[~np.isnan(ranked).any(axis=1)]
    if len(whole) < 2:
        return np.full(ranked.shape[1], np.nan)
    rows, columns = np.triu_indices(size, 1)
    near = min(NEIGHBOURS, size - 1)
    full, local = [], []
    for alike in whole:
        apart = np.zeros((size, size))
        apart[rows, columns] = apart[columns, rows] = 1 - alike
        affinity = _affinity(apart, near)
        full.append(_half(affinity))
        local.append(_nearest(affinity, near))
    for _ in range(ROUNDS):
        total = np.sum(full, axis=0)
        spread = [s @ ((total - p) / (len(full) - 1)) @ s.T for s, p in zip(local, full, strict=True)]
        full = [_half((p + p.T) / 2) for p in spread]
    fused = np.mean(full, axis=0)
    return _ranked(-((fused + fused.T) / 2)[rows, columns])


def _affinity(apart: Array, near: int) -> Array:
    """exp(-d² / (μ ε)), ε the mean of d and of the distances of both to their neighbours."""
    others = np.sort(apart + np.diag(np.full(len(apart), np.inf)), axis=1)[:, :near].mean(axis=1)
    width = SCALE * np.maximum((others[:, None] + others + apart) / 3, np.finfo(float).eps)
    return np.asarray(np.exp(-(apart**2) / width))


def _half(affinity: Array) -> Array:
    """Each row's others sum to one half, and itself is the other half, so that nothing drowns in the diagonal."""
    others = affinity * (1 - np.eye(len(affinity)))
    return np.asarray(others / (2 * others.sum(axis=1, keepdims=True)) + np.eye(len(affinity)) / 2)


def _nearest(affinity: Array, near: int) -> Array:
    """The affinities of each row to its nearest neighbours, which sum to one."""
    others = affinity * (1 - np.eye(len(affinity)))
    least = np.sort(others, axis=1)[:, -near][:, None]
    nearest = np.where(others >= least, others, 0.0)
    return np.asarray(nearest / nearest.sum(axis=1, keepdims=True))


_FUSIONS: dict[str, Callable[[Array, Array, int], Array]] = {"ranks": _mean_of_ranks, "snf": _network_fusion}
