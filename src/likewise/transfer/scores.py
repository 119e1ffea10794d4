"""The formulas of attack transfer, on plain arrays: what each network answers before and after an attack.

Only inputs that both networks classify correctly count, since nothing can be said to fool a network that was wrong
before. Scores are logarithms of percents, at least `LEAST` percent: the paper leaves that number open, and it never
matters among networks that fool each other at all.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from likewise._base.arrays import Array
from likewise.errors import InputError, UndefinedError

LEAST = 0.01  # percent
NONE_RIGHT = "no input is classified correctly by both, so nothing can be fooled. Show them inputs they know."


def score_of(percent: Any, least: float = LEAST) -> Any:
    """ln max(least, percent), entry by entry; NaN stays NaN.

    >>> [round(float(value), 3) for value in score_of(np.array([0.0, 42.857, 100.0]))]
    [-4.605, 3.758, 4.605]
    """
    if not 0 < least < math.inf:
        raise InputError(f"eps_s is {least}, which has no logarithm. Give a percentage above 0, like {LEAST}.")
    return np.log(np.maximum(percent, least))


def sat_score(labels: Any, clean_a: Any, clean_b: Any, a_on_b: Any, b_on_a: Any, *, eps_s: float = LEAST) -> float:
    """The similarity by attack transferability (SAT) of two networks, from classes (n,) each.

    ln max(eps_s, 100 / (2 |X|) Σ over X of [a_on_b ≠ y] + [b_on_a ≠ y]), X the inputs that both classify correctly;
    `a_on_b` is what A answers to the examples made from B. ln 100 = 4.6: whatever fools one fools the other;
    ln eps_s: nothing does. Networks of unequal accuracy differ by that alone.

    >>> round(sat_score([0, 1, 2], [0, 1, 2], [0, 1, 0], [1, 1, 2], [0, 0, 1]), 4)
    3.912
    """
    y, a, b, on_b, on_a = _columns(labels, clean_a, clean_b, a_on_b, b_on_a)
    both = _both(a == y, b == y)
    return float(score_of(50 * float(np.mean(on_b[both] != y[both]) + np.mean(on_a[both] != y[both])), eps_s))


def one_sided_score(labels: Any, clean_a: Any, clean_b: Any, b_on_a: Any, *, eps_s: float = LEAST) -> float:
    """The same from one attack only: how far the examples made from A fool B.

    >>> round(one_sided_score([0, 1, 2], [0, 1, 2], [0, 1, 0], [0, 0, 1]), 4)
    3.912
    """
    y, a, b, on_a = _columns(labels, clean_a, clean_b, b_on_a)
    both = _both(a == y, b == y)
    return float(score_of(100 * float(np.mean(on_a[both] != y[both])), eps_s))


def _columns(*given: Any) -> list[Array]:
    arrays = [np.asarray(values) for values in given]
    if len({array.shape for array in arrays}) > 1 or arrays[0].ndim != 1:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise InputError(f"labels and answers must be one class per input, got {shapes}. Give all the same inputs.")
    return arrays


def _both(a: Array, b: Array) -> Array:
    both: Array = a & b
    if not both.any():
        raise UndefinedError(f"SAT is undefined: {NONE_RIGHT}")
    return both


def directed_rates(right: Array, fooled: Array) -> tuple[Array, Array]:
    """How often examples of each network (rows) fool each other (columns), and of how many inputs, (m, m) each.

    `right` (m, n) says which inputs each network classifies correctly, `fooled` (m, m, n) which examples, made
    from the first, the second gets wrong. NaN where no input counts.
    """
    counts = right.astype(np.int64) @ right.T.astype(np.int64)
    hits = np.stack([(fooled[i] & right[i] & right).sum(axis=1) for i in range(len(right))])
    with np.errstate(invalid="ignore"):
        return hits / np.where(counts > 0, counts, np.nan), counts


def same_mistakes(right: Array, predictions: Array, labels: Array) -> Array:
    """Of examples that fool both their source and another network, the share both take for the same class, (m, m).

    Examples of either network of a pair count, made of inputs that both classify correctly; NaN where none fools both.
    """
    m = len(right)
    alike, both = np.zeros((m, m)), np.zeros((m, m))
    for i in range(m):
        own = predictions[i, i]
        shared = right[i] & right & (own != labels) & (predictions[i] != labels)  # (m, n): of i, on each j
        both[i], alike[i] = shared.sum(axis=1), (shared & (predictions[i] == own)).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((alike + alike.T) / (both + both.T))


def resampled_scores(hits: Array, counted: Array, draws: Array) -> Array:
    """Scores of one pair over draws of the inputs: `hits` (n,) from 0 to 2 per input, `draws` (times, n) how often."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(score_of(50 * (draws @ (hits * counted)) / (draws @ counted)))


def draws_of(n: int, times: int, seed: int) -> Array:
    """How often each of n inputs is drawn, `times` times n draws with replacement."""
    chosen = np.random.default_rng(seed).integers(n, size=(times, n))
    return np.stack([np.bincount(row, minlength=n) for row in chosen]).astype(np.float64)
