"""Two matrices held against each other: the correlation over pairs, and a p that knows pairs share networks."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from likewise import analysis
from tests.analysis.helpers import matrix
from tests.conftest import refused

UPPER = np.triu_indices(5, 1)


def noise(seed: int, m: int = 5) -> np.ndarray:
    values = np.random.default_rng(seed).normal(size=(m, m))
    return values + values.T


@pytest.mark.parametrize(("how", "oracle"), [("pearson", pearsonr), ("spearman", spearmanr)])
def test_the_correlation_is_that_over_pairs(how: str, oracle: object) -> None:
    a, b = noise(0), noise(1)
    found = analysis.agreement(matrix(a), matrix(b), how=how, permutations=9, resamples=9)
    assert found.correlation == pytest.approx(oracle(a[UPPER], b[UPPER])[0])  # type: ignore[operator]
    assert float(found) == found.correlation


def test_p_is_the_share_of_permutations_that_agree_as_much() -> None:
    a, b = noise(0), noise(3)
    given = abs(pearsonr(a[UPPER], b[UPPER])[0])
    every = [abs(pearsonr(a[UPPER], b[np.ix_(o, o)][UPPER])[0]) for o in map(list, permutations(range(5)))]
    exact = np.mean(np.array(every) >= given - 1e-12)
    assert analysis.agreement(matrix(a), matrix(b), permutations=4000, resamples=1).p == pytest.approx(exact, abs=0.03)


def test_unrelated_matrices_are_rarely_called_related() -> None:
    small = [
        analysis.agreement(matrix(noise(2 * s, 8)), matrix(noise(2 * s + 1, 8)), permutations=99, resamples=1).p
        for s in range(200)
    ]
    assert 0.01 <= np.mean(np.array(small) <= 0.05) <= 0.10


def related(draw: np.random.Generator, m: int) -> list[np.ndarray]:
    """Distances of m points, and of the same points shaken."""
    points = draw.normal(size=(m, 3))
    shaken = points + 0.7 * draw.normal(size=(m, 3))
    return [np.linalg.norm(each[:, None] - each[None], axis=-1) for each in (points, shaken)]


def test_the_interval_covers_what_fresh_networks_give() -> None:
    draw, upper = np.random.default_rng(0), np.triu_indices(20, 1)
    fresh = [np.corrcoef(*(each[upper] for each in related(draw, 20)))[0, 1] for _ in range(500)]
    found = [
        analysis.agreement(*map(matrix, related(draw, 20)), permutations=1, resamples=100, seed=s) for s in range(60)
    ]
    assert np.mean([one.low <= np.mean(fresh) <= one.high for one in found]) >= 0.9
    assert np.mean([one.high - one.low for one in found]) < 0.5  # wide enough to cover, and no wider
    assert all(one.low <= one.correlation <= one.high for one in found)


def test_an_agreement_prints_its_interval_and_p() -> None:
    found = analysis.agreement(matrix(noise(0)), matrix(noise(0)), permutations=9, resamples=9)
    assert str(found) == f"1.00 [1.00, 1.00], p {found.p:.4g}"


def test_draws_of_one_network_alone_are_left_out_of_the_interval() -> None:
    found = analysis.agreement(matrix(noise(0, 4)), matrix(noise(0, 4)), permutations=9)
    assert found.correlation == 1
    assert (found.low, found.high) == pytest.approx((1, 1))


def test_a_distance_is_turned_round_and_networks_are_matched_by_name() -> None:
    a = noise(0)
    other = matrix(-a, larger_is="less alike").reordered(["n3", "n0", "n4", "n1", "n2"])
    assert analysis.agreement(matrix(a), other, permutations=9, resamples=9).correlation == 1


@pytest.mark.parametrize(
    ("a", "b", "options", "message"),
    [
        (
            noise(0),
            noise(0, 6),
            {},
            "the matrices are of other networks: 'n5' is in one only. Give both the same networks.",
        ),
        (noise(0, 3), noise(1, 3), {}, "3 networks have too few permutations to tell. Give four or more."),
        (noise(0), noise(1), {"how": "kendall"}, "no correlation named 'kendall'. Choose 'pearson' or 'spearman'."),
        (noise(0), noise(1), {"permutations": 0}, "permutations is 0. Give at least 1."),
        (
            noise(0),
            np.ones((5, 5)),
            {},
            "all pairs of one matrix are equally alike, so nothing can agree with it. Choose another.",
        ),
        (
            noise(0),
            np.full((5, 5), np.nan),
            {},
            "SimilarityMatrix('made', 5 networks, 25 undefined) has pairs without a score. Leave out networks: "
            "matrix.reordered([...]).",
        ),
    ],
    ids=["others", "few", "how", "none", "flat", "undefined"],
)
def test_what_cannot_agree_is_said(a: np.ndarray, b: np.ndarray, options: dict[str, object], message: str) -> None:
    assert refused(lambda: analysis.agreement(matrix(a), matrix(b), **options)) == message  # type: ignore[arg-type]
