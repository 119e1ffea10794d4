"""Shares of inputs, such as accuracies and rates, with 95 % intervals: of one share, and of the difference of two."""

from __future__ import annotations

from typing import Any

import numpy as np

_Z = 1.959964  # of 95 %


def wilson(rate: Any, count: Any) -> tuple[Any, Any]:
    """The ends of a 95 % interval of a share among `count` inputs, for a number or for an array of them.

    >>> [round(end, 4) for end in wilson(0.5, 100)]
    [0.4038, 0.5962]
    """
    rate, extra = np.asarray(rate, dtype=np.float64), _Z**2 / np.asarray(count, dtype=np.float64)
    middle = (rate + extra / 2) / (1 + extra)
    half = np.sqrt(extra * (rate * (1 - rate) + extra / 4)) / (1 + extra)
    return _numbers(np.maximum(0.0, middle - half), np.minimum(1.0, middle + half))


def difference(one: Any, other: Any, count: Any) -> tuple[Any, Any]:
    """The ends of a 95 % interval of `one - other`, two shares among `count` inputs (Newcombe, from Wilson's).

    It is made for two separate sets of inputs; of the same inputs it is too wide rather than too narrow.

    >>> [round(end, 3) for end in difference(0.9, 0.7, 100)]
    [0.09, 0.306]
    """
    gap = np.asarray(one, dtype=np.float64) - other
    (low, high), (other_low, other_high) = wilson(one, count), wilson(other, count)
    return _numbers(gap - np.hypot(one - low, other_high - other), gap + np.hypot(high - one, other - other_low))


def _numbers(low: Any, high: Any) -> tuple[Any, Any]:
    """Arrays as they are, numbers as floats."""
    return (low, high) if np.ndim(low) else (float(low), float(high))
