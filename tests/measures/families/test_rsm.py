"""Distances and rank correlations against scipy, and where digits are scarce."""

import math

import numpy as np
import pytest
import scipy.linalg
import scipy.stats
from scipy.spatial.distance import cdist

import likewise
from likewise import measures
from tests.measures.families.oracles import X, Y


def test_rsm_difference_is_the_frobenius_norm() -> None:
    gap = cdist(X, X) - cdist(Y, Y)
    assert measures.rsm_difference(X, Y) == pytest.approx(math.sqrt((gap**2).sum()), rel=1e-9)
    reference = measures.get("rsm-difference", variant="resi")(X, Y)
    assert reference == pytest.approx(np.linalg.norm(gap, 2), rel=1e-9)


def test_the_spectral_norm_is_found_by_iteration_too() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 300, 5))
    gap = cdist(x, x) - cdist(y, y)
    assert measures.get("RSMDiff", variant="resi")(x, y) == pytest.approx(np.linalg.norm(gap, 2), rel=1e-8)


def test_eigenvalues_of_about_the_same_size_are_told_apart() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 500, 30))
    x, y = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (x, y))
    largest = np.abs(np.linalg.eigvalsh(cdist(x, x) - cdist(y, y)))
    largest.sort()
    assert largest[-2] > 0.95 * largest[-1]  # many products are needed
    assert measures.get("RSMDiff", variant="resi")(x, y) == pytest.approx(largest[-1], rel=1e-9)


def test_rsa_and_distance_correlation_by_scipy() -> None:
    # rounded, so that inputs with one active neuron each tie in fact as they do in truth
    left, right = (np.corrcoef(v)[np.triu_indices(70, 1)].round(12) for v in (X, Y))
    assert measures.rsa(X, Y) == pytest.approx(scipy.stats.spearmanr(left, right)[0], abs=1e-10)
    a, b = (cdist(v, v) for v in (X, Y))
    a, b = (g - g.mean(0) - g.mean(1)[:, None] + g.mean() for g in (a, b))
    expected = math.sqrt((a * b).mean() / math.sqrt((a * a).mean() * (b * b).mean()))
    assert measures.distance_correlation(X, Y) == pytest.approx(expected, abs=1e-10)


def test_the_largest_eigenvalue_is_found_though_its_rows_sum_to_nothing() -> None:
    x = 2 * np.eye(2)[np.repeat([0, 1], 40)]
    y = 2 * np.eye(2)[np.tile([0, 1], 40)]
    gap = np.linalg.norm(x[:, None] - x, axis=2) - np.linalg.norm(y[:, None] - y, axis=2)
    expected = np.abs(np.linalg.eigvalsh(gap)).max()
    assert measures.get("rsm-difference", variant="resi")(x, y) == pytest.approx(expected)


def exact_rsa(x, y):
    orders = []
    for v in (x, y):
        rows = v.astype(np.longdouble)
        rows = rows - rows.mean(axis=1, keepdims=True)
        rows /= np.sqrt((rows * rows).sum(axis=1, keepdims=True))
        squares = ((rows[:, None] - rows) ** 2).sum(axis=-1)
        orders.append(-squares[np.triu_indices(len(v), 1)].astype(float))
    return scipy.stats.spearmanr(*orders).statistic


@pytest.mark.parametrize("memory", ["1GB", "10MB"])
@pytest.mark.parametrize("outlier", [False, True])
def test_rsa_has_digits_where_a_mean_pattern_drowns_the_rest(memory, outlier) -> None:
    rng = np.random.default_rng(5)
    hidden, x, y = rng.normal(size=(3, 700, 6))
    x, y = hidden + x, hidden + y + 1e6 * rng.normal(size=6)
    if outlier:
        y[3] = rng.normal(size=6)
    score = float(likewise.compare(x, y, "rsa", memory=memory))
    assert score == pytest.approx(exact_rsa(x, y), abs=1e-5)
