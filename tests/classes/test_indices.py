"""Indices of class similarity: plain loops, levels of chance, and what must not matter."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise import classes
from likewise.classes import wsi
from tests.classes.helpers import NET, few, mean, noise, refusals, seeds


def quantile(values: list[float], q: float) -> float:
    """Between the two values nearest to the place q (n - 1) of the sorted ones."""
    ordered, place = sorted(values), q * (len(values) - 1)
    low = math.floor(place)
    high = min(low + 1, len(values) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


test_an_error_is_a_sentence = refusals(
    (lambda: classes.wsi(NET, 0.05), "quantile is 0.05. Give one from 0.5 to 1."),
    (
        lambda: classes.wsi(NET.values),
        "an array of shape (3, 3) is no class similarity. Give ClassSimilarity(values, names), or one that "
        "from_weights, from_confusion or from_wordnet make.",
    ),
)


@few
@given(seeds, st.integers(2, 30), st.sampled_from([0.5, 0.8, 0.95, 1.0]))
def test_wsi_is_that_of_a_plain_loop(seed: int, count: int, q: float) -> None:
    similarity = noise(count, seed, width=4)
    upper = [similarity.values[i, j] for i in range(count) for j in range(i + 1, count)]
    tops, ends = [], []
    for i in range(count):
        row = [float(similarity.values[i, j]) for j in range(count) if j != i]
        high, low = quantile(row, q), quantile(row, 1 - q)
        tops.append(mean([v for v in row if v >= high - 1e-12]))  # 27 classes, 0.8: 1 - q is not 0.2
        ends.append(mean([v for v in row if v <= low + 1e-12]))
    found = wsi(similarity, q)
    assert found == pytest.approx((mean(upper), mean(tops), mean(ends)), abs=1e-9)
