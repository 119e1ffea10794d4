"""Whether networks form families, by average linkage: how well families separate, what chance gives, inputs drawn anew.

A partition is good as far as being of one family correlates with the score of a pair (the point-biserial correlation),
on any scale and in either direction. Merges of average linkage join families at their mean score, so that heights and
sizes give this correlation for every number of families at once.

The null is a zoo without families: networks differ in how alike they are to all others, as much as these do but
normally distributed, and what is left of the scores stands in random places. Differences of rows that the noise of the
scores would make anyhow are left with the scores. So neither networks that are a little less alike to everyone nor a
skewed measure make families. Networks along a line or in a plane, such as epochs of a training, are cut into some.

Of five to seven networks that null is stricter than need be: one network apart from the others makes rows differ, and
ten scores can stand in few ways. So the less rows differ beyond what families explain, the more zoos of the null have
rows that do not, with scores in random places and a little noise; and `level` is larger. Both were set so that at least
90 % of unrelated zoos (normal, skewed or heavy-tailed noise, rows that differ; see perf/families.py) are one family.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from likewise._base.arrays import Array
from likewise.matrices.score import LEVEL
from likewise.matrices.similarity import SimilarityMatrix
from likewise.transfer.matrix import TransferMatrix
from likewise.transfer.scores import directed_rates, score_of

SHUFFLES, DRAWS = 499, 20  # of the null; of inputs drawn anew
LEAST = 5  # networks; the scores of fewer can stand in too few ways for any of them to be rare
FEW = {5: 0.08, 6: 0.07, 7: 0.06}  # networks, and the largest p at which so few are of several families
BLUR = 0.25  # of the spread of scores, as noise that makes up for the few places where they can stand; not of ties


def separation(alike: Array) -> tuple[Array, Array]:
    """The merges of average linkage, and how well 2, 3, ... m - 1 families separate: correlations, 1 is best."""
    from scipy.cluster.hierarchy import linkage

    m = len(alike)
    scores = alike[np.triu_indices(m, 1)]
    apart = scores.max() - scores
    merges = linkage(apart, "average")
    sizes = np.concatenate([np.ones(m), merges[:, 3]])
    joined = sizes[merges[:, 0].astype(int)] * sizes[merges[:, 1].astype(int)]  # pairs that become one family's
    pairs, within = np.cumsum(joined)[:-1], np.cumsum(joined * merges[:, 2])[:-1]
    spread = float(apart.std())
    if spread <= 1e-12 * max(1.0, float(np.abs(scores).max())):
        return merges, np.zeros(m - 2)
    share = pairs / len(apart)
    return merges, ((apart.mean() - within / pairs) * np.sqrt(share / (1 - share)) / spread)[::-1]


def cut(merges: Array, k: int) -> list[int]:
    """The families of the networks where k are left."""
    m = len(merges) + 1
    groups = {i: [i] for i in range(m)}
    for step, (one, other) in enumerate(merges[: m - k, :2].astype(int)):
        groups[m + step] = groups.pop(int(one)) + groups.pop(int(other))
    labels = [0] * m
    for label, members in enumerate(groups.values()):
        for member in members:
            labels[member] = label
    return labels


def level(m: int) -> float:
    """The largest p at which m networks are of several families."""
    return FEW.get(m, LEVEL)


def family_p(alike: Array, *, shuffles: int = SHUFFLES, seed: int = 0) -> float:
    """The share of zoos without families that separate as well; NaN for fewer than five networks."""
    m = len(alike)
    if m < LEAST:
        return math.nan
    observed, draw = float(separation(alike)[1].max()), np.random.default_rng(seed)
    rows, columns = np.triu_indices(m, 1)
    scores = alike[rows, columns]
    spread, rest, unexplained = _rows(alike)
    blur = BLUR * float(scores.std()) if len(np.unique(scores)) == len(scores) else 0.0
    equal_rows = round(shuffles * _equal_rows(scores, observed, unexplained, m)) if m in FEW else 0
    as_well = 1
    for shuffle in range(shuffles):
        zoo = np.zeros((m, m))
        if shuffle < equal_rows:
            zoo[rows, columns] = draw.permutation(scores) + draw.normal(scale=blur, size=len(scores))
        else:
            of_row = draw.normal(scale=spread, size=m)
            zoo[rows, columns] = of_row[rows] + of_row[columns] + draw.permutation(rest)
        as_well += float(separation(zoo)[1].max()) >= observed - 1e-12
    return as_well / (shuffles + 1)


def _equal_rows(scores: Array, observed: float, unexplained: float, m: int) -> float:
    """How far families explain what rows do: twice the p of an F test of rows beyond families, at most 1.

    `observed` is the correlation of scores with families, `unexplained` the sum of squares that rows leave.
    """
    from scipy.special import betainc

    total = float(((scores - scores.mean()) ** 2).sum())
    rounding = 1e-12 * total + 1e-300
    by_rows, by_families = unexplained + rounding, (1 - observed**2) * total + rounding
    return min(1.0, 2 * float(betainc((len(scores) - m) / 2, (m - 2) / 2, min(1.0, by_rows / by_families))))


def _rows(alike: Array) -> tuple[float, Array, float]:
    """How far networks differ in how alike they are to all others, scores less that, and what it leaves unexplained."""
    m = len(alike)
    rows, columns = np.triu_indices(m, 1)
    scores = alike[rows, columns]
    sums = np.where(np.eye(m, dtype=bool), 0.0, alike).sum(axis=1)
    of_row = (sums - (m - 1) * scores.mean()) / (m - 2)
    unexplained = float(((scores - scores.mean() - of_row[rows] - of_row[columns]) ** 2).sum())
    noise = unexplained / (len(scores) - m) / (m - 2)  # what differences of rows owe to it
    variance = float(of_row.var(ddof=1))
    true = max(variance - noise, 0.0)
    of_row = of_row * math.sqrt(true / variance) if variance > 0 else of_row
    return math.sqrt(true), scores - scores.mean() - of_row[rows] - of_row[columns], unexplained


def grouped(alike: Array, members: Array) -> bool:
    """Whether networks are more alike among themselves than to others; a network alone is."""
    inner, outer = pairs(alike[np.ix_(members, members)]), alike[np.ix_(members, ~members)]
    return not inner.size or not outer.size or float(inner.mean()) > float(outer.mean())


def drawn_again(matrix: SimilarityMatrix, seed: int) -> Iterator[Array]:
    """How alike networks are by inputs drawn anew: from what each input gave, or from intervals over inputs."""
    draw, sign = np.random.default_rng(seed), 1 if matrix.larger_is == "more alike" else -1
    if isinstance(matrix, TransferMatrix):
        fooled, n = matrix.predictions != matrix.labels, len(matrix.labels)
        for rows in draw.integers(n, size=(DRAWS, n)):
            rates = directed_rates(matrix.right[:, rows], fooled[:, :, rows])[0]
            yield score_of(50 * (rates + rates.T))
    elif {"low", "high"} <= set(matrix.extra):
        deviation = (np.asarray(matrix.extra["high"]) - np.asarray(matrix.extra["low"])) / 3.92
        for _ in range(DRAWS):
            change = np.triu(draw.normal(size=matrix.values.shape), 1)
            yield sign * (np.asarray(matrix.values) + deviation * (change + change.T))


def pairs(values: Array) -> Array:
    """The values above the diagonal, one per pair."""
    return values[np.triu_indices(len(values), 1)]


def rand_index(one: Array, other: Array) -> float:
    """The adjusted Rand index of two partitions: how many pairs both join, 1 if the same, 0 as many as by chance.

    >>> rand_index(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
    1.0
    """
    table = np.eye(one.max() + 1)[one].T @ np.eye(other.max() + 1)[other]
    both, first, second, every = (
        float((counts * (counts - 1)).sum()) for counts in (table, table.sum(axis=1), table.sum(axis=0), table.sum())
    )
    chance, most = first * second / every, (first + second) / 2
    return 1.0 if most == chance else (both - chance) / (most - chance)
