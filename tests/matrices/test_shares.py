"""Intervals of shares and of their differences, against scipy and a published example."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta, binomtest

from likewise.matrices.shares import difference, mean_of_two, wilson


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


@pytest.mark.parametrize(("hits", "count"), [(3, 7), (20, 100)])
def test_the_mean_of_a_share_with_itself_has_the_interval_of_jeffreys(hits: int, count: int) -> None:
    expected = beta.ppf([0.025, 0.975], hits + 0.5, count - hits + 0.5)
    assert mean_of_two(hits, hits, hits, count) == pytest.approx(tuple(expected), abs=1e-12)
    wider = beta.ppf([0.005, 0.995], hits + 0.5, count - hits + 0.5)
    assert mean_of_two(hits, hits, hits, count, 0.99) == pytest.approx(tuple(wider), abs=1e-12)


def test_the_mean_of_two_shares_by_hand() -> None:
    # 10 and 20 of 100, 6 in common: Jeffreys .05258 .17012 and .13079 .28628; cells 6.5 4.5 14.5 76.5, so their
    # correlation is (6.5 76.5 - 4.5 14.5) / sqrt(11 91 21 81) = .3311;
    # the lower end is .15 - sqrt(.04742² + .06921² + 2 .3311 .04742 .06921) / 2
    assert mean_of_two(10, 20, 6, 100) == pytest.approx((0.15 - 0.04799, 0.15 + 0.06397), abs=1e-5)


def test_the_interval_of_a_mean_takes_arrays_and_none_of_no_input() -> None:
    low, high = mean_of_two(np.array([0, 10]), np.array([0, 20]), np.array([0, 6]), np.array([0, 100]))
    assert np.isnan([low[0], high[0]]).all()
    assert (low[1], high[1]) == mean_of_two(10, 20, 6, 100)
