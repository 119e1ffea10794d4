"""How well the values of a measure follow what is known of the networks: correlation, AUPRC, conformity.

Every result is in a form where higher is better, and comes in two forms: "published" follows the paper's equations,
"resi" what the reference implementation computes, which made the paper's tables. They differ in ties, in the layer
test, in how a distance becomes a score, and in which orders count of a measure that is not symmetric. In both forms
undefined pairs are left out, never counted as conforming, and `coverage` is the share of pairs that are defined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from likewise._base.arrays import Array
from likewise.analysis.matrix_agreement import correlations, mantel, p_value
from likewise.errors import InputError, brief

Variant = Literal["published", "resi"]
Ties = Literal["conform", "half", "violate"]
TIES: dict[str, float] = {"conform": 1.0, "half": 0.5, "violate": 0.0}
DIRECTIONS = ("more alike", "less alike")
ROUNDING = 1e-12  # values that differ by less, as a share of the largest, are equal: a saturated measure says nothing


@dataclass(frozen=True, eq=False)
class Evidence:
    """The values of one measure on networks, and what is known of them.

    Attributes:
        measure: The name of the measure.
        larger_is: What a larger value means, "more alike" or "less alike".
        symmetric: Whether both orders of a pair have one value.
        values: `(m, m)` over networks, rows first, or `(m, L, L)` over the layers of m networks; NaN is undefined.
        groups: The group of each network.
        truths: How far networks are apart by their outputs, `(m, m)` by name: "accuracy", "jsd", "disagreement".
    """

    measure: str
    larger_is: Literal["more alike", "less alike"]
    symmetric: bool
    values: Array
    groups: tuple[str, ...] = ()
    truths: Mapping[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.larger_is not in DIRECTIONS:
            raise InputError(f"larger_is is {brief(self.larger_is)}. Choose 'more alike' or 'less alike'.")
        values = np.asarray(self.values, dtype=np.float64)
        if values.ndim not in (2, 3) or values.shape[-1] != values.shape[-2]:
            raise InputError(
                f"the values of {self.measure} are {brief(values)}. Give one row and column per network, or such a "
                "square of layers per network."
            )
        object.__setattr__(self, "values", values)
        for name, truth in self.truths.items():
            if np.shape(truth) != values.shape:
                raise InputError(
                    f"{name!r} is {brief(np.asarray(truth))}, and the values of {self.measure} are {brief(values)}. "
                    "Give both the same networks."
                )
        if self.groups and len(self.groups) != len(values):
            raise InputError(
                f"there are {len(self.groups)} groups for {len(values)} networks. Name the group of each network."
            )

    @property
    def apart(self) -> Array:
        """The values with larger as less alike; of a symmetric measure those above the diagonal on both sides."""
        apart = self.values if self.larger_is == "less alike" else -self.values
        upper = np.triu(np.ones(apart.shape[-2:], dtype=bool), 1)
        return np.where(upper, apart, np.swapaxes(apart, -1, -2)) if self.symmetric else apart

    @property
    def pairs(self) -> tuple[Array, Array]:
        """Rows and columns of each pair, in both orders if the measure is not symmetric."""
        size = self.values.shape[-1]
        rows, columns = np.triu_indices(size, 1) if self.symmetric else np.nonzero(~np.eye(size, dtype=bool))
        return rows, columns


@dataclass(frozen=True)
class Quality:
    """How good a measure is by one metric.

    Attributes:
        metric: spearman, spearman_jsd, spearman_disagreement, auprc or conformity; higher is better.
        value: The value of the metric.
        chance: What a measure that knows nothing gets.
        p: How often chance gives a correlation as far from 0.
        coverage: The share of pairs on which the measure is defined.
        variant: The form of the evaluation, "published" or "resi".
        ties: What equal values count as, where that matters.
        low: The lower end of the middle 95 % of what chance gives.
        high: Its upper end.
    """

    metric: str
    value: float
    chance: float | None = None
    p: float | None = None
    coverage: float = 1.0
    variant: Variant = "published"
    ties: Ties | None = None
    low: float | None = None
    high: float | None = None


def correlation_with(evidence: Evidence, truth: str) -> float:
    """The value of `spearman` alone, without its p.

    >>> apart = np.abs(np.subtract.outer([0, 1, 3], [0, 1, 3]))
    >>> correlation_with(Evidence("rsa", "more alike", True, -apart, truths={"accuracy": apart}), "accuracy")
    1.0
    """
    return _correlation(evidence.apart[evidence.pairs], np.asarray(evidence.truths[truth], float)[evidence.pairs])


def spearman(
    evidence: Evidence, truth: str, *, variant: Variant = "published", permutations: int = 9999, seed: int = 0
) -> Quality:
    """The rank correlation of how far networks are apart by the measure with how far they are apart by a truth.

    Over m (m - 1) / 2 pairs, or both orders of each if the measure is not symmetric. The p of the published form
    permutes networks, since pairs share networks; that of the reference permutes pairs as if they did not.

    >>> apart = np.abs(np.subtract.outer([0, 1, 3, 7, 12], [0, 1, 3, 7, 12]))
    >>> spearman(Evidence("rsa", "more alike", True, -apart, truths={"accuracy": apart}), "accuracy").value
    1.0
    """
    apart, truths = evidence.apart, np.asarray(evidence.truths[truth], dtype=np.float64)
    one, two = apart[evidence.pairs], truths[evidence.pairs]
    defined = ~np.isnan(one) & ~np.isnan(two)
    coverage, draw = _share(defined), np.random.default_rng(seed)
    value = _correlation(one, two)
    if np.isnan(value):
        return Quality("spearman", np.nan, 0.0, None, coverage, variant)
    if variant == "resi":
        shuffled = draw.permuted(np.tile(two[defined], (permutations, 1)), axis=1)
        drawn = correlations(one[defined], shuffled, ranked=True)
        tails = ((1 + beyond.sum()) / (1 + len(drawn)) for beyond in (drawn >= value - 1e-12, drawn <= value + 1e-12))
        p = float(min(1.0, 2 * min(tails)))
    else:
        _, drawn = mantel(
            apart, truths, symmetric=evidence.symmetric, ranked=True, permutations=permutations, draw=draw
        )
        p = p_value(value, drawn)
    low, high = np.nanquantile(drawn, [0.025, 0.975]).tolist()
    return Quality("spearman", value, 0.0, p, coverage, variant, None, low, high)


def auprc(evidence: Evidence, *, variant: Variant = "published") -> Quality:
    """How surely pairs of networks of one group are found by how alike the measure calls them, mean over groups.

    Per group, the average precision of finding its own pairs among these and its pairs with others. Chance is the
    share of its own. NaN where a group has no pair of either kind.

    >>> values = np.array([[1, 0.9, 0.1, 0.2], [0.9, 1, 0.3, 0.1], [0.1, 0.3, 1, 0.8], [0.2, 0.1, 0.8, 1]])
    >>> quality = auprc(Evidence("cka", "more alike", True, values, ("a", "a", "b", "b")))
    >>> quality.value, quality.chance
    (1.0, 0.2)
    """
    score = _of_largest if variant == "resi" and evidence.larger_is == "less alike" else np.negative
    sides, coverage = _by_group(evidence, variant)
    precisions, chances = [], []
    for inside, others in sides:
        scores = score(np.concatenate([inside, others]))
        usable = len(inside) and len(others) and (variant == "published" or np.isfinite(scores).all())
        precisions.append(average_precision(scores, np.arange(len(scores)) < len(inside)) if usable else np.nan)
        chances.append(len(inside) / max(1, len(scores)))
    return Quality("auprc", float(np.mean(precisions)), float(np.mean(chances)), None, coverage, variant)


def average_precision(scores: Array, positive: Array) -> float:
    """The sum of precision times the gain of recall at each distinct score, from the highest down."""
    order = np.argsort(-scores, kind="stable")
    scores, hits = scores[order], np.cumsum(positive[order])
    last = np.flatnonzero(np.append(scores[1:] != scores[:-1], True))  # equal scores are found together
    gained = np.diff(hits[last], prepend=0) / hits[-1]
    return float(gained @ (hits[last] / (last + 1)))


def _of_largest(distances: Array) -> Array:
    """Distances as the reference turns them: if all are negative their order changes, an infinite one gives NaN."""
    largest = distances.max(initial=-np.inf)
    with np.errstate(invalid="ignore", over="ignore"):
        return 1 - distances / (largest if largest != 0 else 5e-5)


def conformity(evidence: Evidence, *, variant: Variant = "published", ties: Ties | None = None) -> Quality:
    """How often a pair inside a group is at least as alike as one of the group with others (eq. 6), mean over groups.

    Every pair inside is compared with every pair with others. By the paper's inequality a tie conforms; the reference
    counts it as a violation.

    >>> equal = Evidence("cka", "more alike", True, np.ones((4, 4)), ("a", "a", "b", "b"))
    >>> conformity(equal).value, conformity(equal, variant="resi").value
    (1.0, 0.0)
    """
    ties = ties or ("violate" if variant == "resi" else "conform")
    (sides, coverage), rates = _by_group(evidence, variant), []
    for inside, others in sides:
        below, upto = (np.searchsorted(np.sort(others), inside, side).sum() for side in ("left", "right"))
        comparisons = len(inside) * len(others)
        conforming = comparisons - upto + TIES[ties] * (upto - below)
        rates.append(float(conforming / comparisons) if comparisons else np.nan)
    return Quality("conformity", float(np.mean(rates)), None, None, coverage, variant, ties)


def _by_group(evidence: Evidence, variant: Variant) -> tuple[list[tuple[Array, Array]], float]:
    """Per group how far its networks are apart and how far from other groups, and the share of all this defined.

    Published: each pair once, or in both orders if the measure is not symmetric. Reference: inside in one order, with
    others from the group outwards.
    """
    apart, labels = evidence.apart, np.asarray(evidence.groups)
    upper = np.triu(np.ones(apart.shape, dtype=bool), 1)
    sides = []
    for group in dict.fromkeys(evidence.groups):
        rows, columns = (labels == group)[:, None], (labels == group)[None]
        pairs = upper if evidence.symmetric or variant == "resi" else upper | upper.T
        others = rows & ~columns if variant == "resi" else pairs & (rows != columns)
        sides.append((apart[pairs & rows & columns], apart[others]))
    coverage = _share(~np.isnan(np.concatenate([side for both in sides for side in both])))
    return [(_defined(inside), _defined(outside)) for inside, outside in sides], coverage


def layer_spearman(evidence: Evidence, *, variant: Variant = "published") -> Quality:
    """The rank correlation of how far layers are apart by the measure with how many lie between, mean over networks.

    Published: one correlation over all pairs of layers i < j. Reference: one per layer and direction, to the layers
    after it and to those before it, and the mean of those that are defined.
    """
    value, coverage = _over_networks(evidence, variant, _all_chains if variant == "resi" else _all_pairs)
    return Quality("spearman", value, 0.0, None, coverage, variant)


def layer_conformity(evidence: Evidence, *, variant: Variant = "published", ties: Ties | None = None) -> Quality:
    """How often layers further apart are no more alike, mean over networks.

    Published: layers i and l against j and k, for all i <= j < k <= l (eq. 7), where a pair conforms with itself.
    Reference: from one layer, a nearer against a farther one in the same direction. A tie conforms in both.
    """
    ties = ties or "conform"
    count = _triples if variant == "resi" else _quadruples

    def rate(apart: Array) -> float:
        conforming, tied, total = np.sum([(0, 0, 0), *count(apart)], axis=0).tolist()
        return (conforming + TIES[ties] * tied) / total if total else np.nan

    value, coverage = _over_networks(evidence, variant, rate)
    return Quality("conformity", value, None, None, coverage, variant, ties)


def _over_networks(evidence: Evidence, variant: Variant, rate: Callable[[Array], float]) -> tuple[float, float]:
    """The mean over networks that have a value, and the share of pairs of layers that are defined."""
    rows, columns = evidence.pairs if variant == "resi" else np.triu_indices(evidence.values.shape[-1], 1)
    coverage = _share(~np.isnan(evidence.apart[:, rows, columns]))
    return _mean(rate(network) for network in evidence.apart), coverage


def _all_pairs(apart: Array) -> float:
    first, second = np.triu_indices(len(apart), 1)
    return _correlation(apart[first, second], second - first)


def _all_chains(apart: Array) -> float:
    whole = (chain for chain in _chains(apart) if not np.isnan(chain).any())
    return _mean(_correlation(chain, np.arange(len(chain))) for chain in whole)


def _chains(apart: Array) -> Iterable[Array]:
    """From each layer to those after it and to those before it, the nearest first."""
    for source in range(len(apart)):
        yield apart[source, source + 1 :]
        yield apart[source, :source][::-1]


def _quadruples(apart: Array) -> Iterable[tuple[int, int, int]]:
    """Comparisons that conform, tie and are defined, of all layers around each two layers j < k."""
    for j, k in zip(*np.triu_indices(len(apart), 1), strict=True):
        inner, around = apart[j, k], apart[: j + 1, k:]
        if inner == inner:  # a tie with itself is none
            yield 1 + _count(around > inner), _count(around == inner) - 1, _count(~np.isnan(around))


def _triples(apart: Array) -> Iterable[tuple[int, int, int]]:
    """Comparisons that conform, tie and are defined, of a nearer and a farther layer in each chain."""
    for chain in _chains(apart):
        nearer, farther = (chain[side] for side in np.triu_indices(len(chain), 1))
        defined = ~np.isnan(nearer) & ~np.isnan(farther)
        yield _count(farther > nearer), _count(farther == nearer), _count(defined)


def _correlation(one: Array, two: Array) -> float:
    """The rank correlation over what is defined in both, NaN where either does not vary beyond rounding."""
    largest, least = _defined(one).max(initial=-np.inf), _defined(one).min(initial=np.inf)
    if len(one) < 2 or largest - least <= ROUNDING * max(abs(largest), abs(least)) < np.inf:
        return np.nan
    return round(float(correlations(one, two[None].astype(float), ranked=True)[0]), 12)


def _count(true: Array) -> int:
    return int(true.sum())


def _defined(values: Array) -> Array:
    return values[~np.isnan(values)]


def _share(true: Array) -> float:
    return float(true.mean()) if true.size else 0.0


def _mean(values: Iterable[float]) -> float:
    defined = [value for value in values if value == value]
    return float(np.mean(defined)) if defined else np.nan
