"""Shares of inputs, such as accuracies and rates, with intervals: of one, of the difference and of the mean of two."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np


def wilson(rate: Any, count: Any, level: float = 0.95) -> tuple[Any, Any]:
    """The ends of an interval of a share among `count` inputs, for a number or for an array of them.

    >>> [round(end, 4) for end in wilson(0.5, 100)]
    [0.4038, 0.5962]
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    rate, extra = np.asarray(rate, dtype=np.float64), z**2 / np.asarray(count, dtype=np.float64)
    middle = (rate + extra / 2) / (1 + extra)
    half = np.sqrt(extra * (rate * (1 - rate) + extra / 4)) / (1 + extra)
    return _numbers(np.maximum(0.0, middle - half), np.minimum(1.0, middle + half))


def difference(one: Any, other: Any, count: Any, level: float = 0.95) -> tuple[Any, Any]:
    """The ends of an interval of `one - other`, two shares among `count` inputs (Newcombe, from Wilson's).

    It is made for two separate sets of inputs; of the same inputs it is too wide rather than too narrow.

    >>> [round(end, 3) for end in difference(0.9, 0.7, 100)]
    [0.09, 0.306]
    """
    gap = np.asarray(one, dtype=np.float64) - other
    (low, high), (other_low, other_high) = wilson(one, count, level), wilson(other, count, level)
    return _numbers(gap - np.hypot(one - low, other_high - other), gap + np.hypot(high - one, other - other_low))


def mean_of_two(one: Any, other: Any, both: Any, count: Any, level: float = 0.95) -> tuple[Any, Any]:
    """The ends of an interval of the mean of two shares of the same inputs, given how many inputs each holds.

    Each share has the interval of Jeffreys, which holds 0 where no input counts and 1 where all do. They are put
    together by their correlation over inputs (Zou and Donner 2008), from the table of `one`, `other` and `both` with
    half an input more in each of its cells; where both hold the same inputs, none or all for example, it is 1.

    >>> [round(end, 4) for end in mean_of_two(0, 0, 0, 55)]
    [0.0, 0.0444]
    """
    one, other, both, count = (np.asarray(number, dtype=np.float64) for number in (one, other, both, count))
    cells = [both + 0.5, one - both + 0.5, other - both + 0.5, count - one - other + both + 0.5]
    margins = (cells[0] + cells[1]) * (cells[2] + cells[3]) * (cells[0] + cells[2]) * (cells[1] + cells[3])
    alike = np.clip((cells[0] * cells[3] - cells[1] * cells[2]) / np.sqrt(margins), 0, 1)
    alike = np.where((one == both) & (other == both), 1.0, alike)
    with np.errstate(invalid="ignore"):  # of no input, NaN
        shares = np.stack([one, other]) / count
    ends = np.stack([_jeffreys(hits, count, level) for hits in (one, other)])
    below, above = shares - ends[:, 0], ends[:, 1] - shares
    low, high = (np.sqrt((gap**2).sum(axis=0) + 2 * alike * gap[0] * gap[1]) / 2 for gap in (below, above))
    return _numbers(np.maximum(0.0, shares.mean(axis=0) - low), np.minimum(1.0, shares.mean(axis=0) + high))


def _jeffreys(hits: Any, count: Any, level: float) -> Any:
    from scipy.special import betaincinv

    low, high = (betaincinv(hits + 0.5, count - hits + 0.5, end) for end in ((1 - level) / 2, (1 + level) / 2))
    return np.stack([np.where(hits == 0, 0.0, low), np.where(hits == count, 1.0, high)])


def far_below(top: float, shares: Any, count: Any, within: float) -> Any:
    """Which of several shares are surely more than `within` below `top`, one of them: held over all pairs of them."""
    shares = np.asarray(shares, dtype=np.float64)
    level = 1 - 0.05 / max(1, len(shares) * (len(shares) - 1) // 2)
    return difference(top, shares, count, level)[0] > within


def comparable(shares: Any, count: Any, within: float) -> Any:
    """Which shares are like each other: the largest group without one that is surely further below its largest.

    >>> comparable([0.98, 0.97, 0.1], 100, 0.04).tolist()
    [True, True, False]
    """
    shares = np.asarray(shares, dtype=np.float64)
    groups = [(shares <= top) & ~far_below(top, shares, count, within) for top in shares]
    if not groups:
        return np.zeros(0, dtype=bool)
    return groups[max(range(len(groups)), key=lambda i: (groups[i].sum(), shares[i]))]


def _numbers(low: Any, high: Any) -> tuple[Any, Any]:
    """Arrays as they are, numbers as floats."""
    return (low, high) if np.ndim(low) else (float(low), float(high))
