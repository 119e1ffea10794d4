"""Intervals of shares and of their differences, against scipy and a published example."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from likewise.matrices.shares import difference, wilson


@pytest.mark.parametrize(("hits", "count"), [(0, 55), (3, 7), (50, 100), (100, 100)])
def test_the_interval_of_a_share_is_wilsons(hits: int, count: int) -> None:
    expected = binomtest(hits, count).proportion_ci(method="wilson")
    assert wilson(hits / count, count) == pytest.approx((expected.low, expected.high), abs=1e-7)


def test_shares_may_be_arrays() -> None:
    low, high = wilson(np.array([[0.0, 0.5]]), np.array([[55, 100]]))
    assert low.shape == high.shape == (1, 2)
    assert (low[0, 1], high[0, 1]) == wilson(0.5, 100)


def test_the_interval_of_a_difference_is_newcombes() -> None:
    # Method 10 of Newcombe 1998 by hand, for 9/10 - 3/10:
    # Wilson .5958 .9821 and .1078 .6032, so .6 - hypot(.3042, .3032), .6 + hypot(.0821, .1922)
    assert difference(0.9, 0.3, 10) == pytest.approx((0.1705, 0.8090), abs=2e-4)


def test_equal_shares_of_all_inputs_may_still_differ() -> None:
    low, high = difference(1.0, 1.0, 20)
    assert low == pytest.approx(-high)
    assert high > 0.1
