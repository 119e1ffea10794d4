"""Ranks of pairs and how far measures agree on them."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.analysis import agreement
from likewise.matrices.similarity import SimilarityMatrix
from likewise.report.families import report_networks
from likewise.report.grids import ranked, score_grids, view_of
from likewise.report.panels.disagreement import rank_agreement
from likewise.report.panels.panel import pack
from likewise.report.runs import Runs
from tests.report.helpers import compared, unpacked


def test_ranks_are_shares_of_pairs_that_are_less_alike() -> None:
    alike = np.array([[np.nan, 3.0, 1.0], [3.0, np.nan, 2.0], [1.0, 2.0, np.nan]])
    # three pairs: 1 is the lowest (0.5 of 3 below), 3 the highest (2.5 of 3)
    expected = np.array([[np.nan, 2.5, 0.5], [2.5, np.nan, 1.5], [0.5, 1.5, np.nan]]) / 3
    np.testing.assert_allclose(ranked(alike), expected)


@pytest.mark.parametrize(
    ("measure", "view"),
    [
        ("cka-debiased", "representations"),
        ("jaccard[k=5]", "representations"),
        ("disagreement", "answers"),
        ("sat", "attacks"),
        ("class-alignment", "classes"),
        ("of somebody else", "other measures"),
    ],
)
def test_a_measure_belongs_to_a_view(measure: str, view: str) -> None:
    assert view_of(measure) == view


def test_a_distance_agrees_with_the_likeness_it_is_made_of() -> None:
    made = compared(6, ["cka"])["cka"]
    distance = SimilarityMatrix(made.names, 1 - made.values, measure="own", larger_is="less alike")
    runs = Runs(matrices=[made, distance])
    found = rank_agreement(score_grids(runs, report_networks(runs)))
    assert found is not None
    assert found["rho"][0, 1] == pytest.approx(1.0)
    expected = agreement(made, distance, how="spearman", permutations=1999, resamples=200)
    assert found["p"][0, 1] == pytest.approx(expected.p)
    assert (found["low"][0, 1], found["high"][0, 1]) == pytest.approx((expected.low, expected.high))


def test_matrices_of_other_networks_stand_side_by_side() -> None:
    one, two = compared(5, ["cka"])["cka"], compared(4, ["rsa"])["rsa"]
    runs = Runs(matrices=[one, two])
    scores = score_grids(runs, report_networks(runs))
    assert scores[1].values.shape == (5, 5)
    names = report_networks(runs).names
    missing = names.index("net-4")
    assert np.isnan(scores[1].values[missing]).all()
    assert scores[1].values[names.index("net-0"), names.index("net-1")] == two["net-0", "net-1"]


@pytest.mark.parametrize(
    "values", [[[0.0, 1.0], [np.nan, -2.5]], [[1e-9, 1e9], [1.0, np.inf]], [[3.0, 3.0]], [[np.nan]]]
)
def test_packed_numbers_show_four_digits(values: list[list[float]]) -> None:
    given = np.array(values)
    found = unpacked(pack(given))
    known = np.isfinite(given)
    np.testing.assert_array_equal(np.isnan(found), ~known)
    np.testing.assert_allclose(
        found[known], given[known], rtol=1e-3, atol=1e-3 * 5e-4 * (np.ptp(given[known]) if known.any() else 0)
    )
