"""Spans, shortest paths and single rows of Gram matrices against plain oracles."""

import math

import numpy as np
import pytest
import scipy.linalg
import scipy.stats

import likewise
from likewise import measures
from tests.measures.families.oracles import RNG, X, Y, centred, orthonormal


def gulp_by_hand(x, y, ridge):
    """tr of products of regularised projections, with explicit inverses."""
    n = len(x)
    x, y = (centred(v) / np.linalg.norm(centred(v)) * math.sqrt(n) for v in (x, y))
    sx, sy, sxy = x.T @ x / n, y.T @ y / n, x.T @ y / n
    px, py = (np.linalg.inv(s + ridge * np.eye(len(s))) for s in (sx, sy))
    square = np.trace(px @ sx @ px @ sx) + np.trace(py @ sy @ py @ sy) - 2 * np.trace(px @ sxy @ py @ sxy.T)
    return math.sqrt(square)


@pytest.mark.parametrize("ridge", [0.0, 1e-3, 0.1])
def test_gulp_is_the_distance_with_the_root(ridge) -> None:
    expected = gulp_by_hand(X, Y, ridge)
    assert measures.get("gulp", ridge=ridge)(X, Y) == pytest.approx(expected, rel=1e-8)


def test_gulp_of_rank_two_against_full_rank_stays_possible() -> None:
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 10))
    full = rng.normal(size=(60, 10))
    u, v = orthonormal(centred(flat)), orthonormal(centred(full))
    expected = math.sqrt(2 + 10 - 2 * np.linalg.norm(u.T @ v) ** 2)
    assert measures.gulp(flat, full) == pytest.approx(expected, rel=1e-9)


def test_eos_is_divided_by_the_larger_rank() -> None:
    flat = Y @ RNG.normal(size=(12, 4)) @ RNG.normal(size=(4, 12))
    u, v = orthonormal(X), orthonormal(flat)
    expected = np.linalg.norm(u.T @ v) ** 2 / 9
    assert measures.eos(X, flat) == pytest.approx(expected, rel=1e-9)
    assert measures.eos(flat, flat) == pytest.approx(1, abs=1e-9)


def test_pnka_is_the_cosine_of_each_row_of_the_gram_matrices() -> None:
    k, l = (centred(v) @ centred(v).T for v in (X, Y))
    points = [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in zip(k, l, strict=True)]
    assert likewise.pointwise(X, Y) == pytest.approx(points, abs=1e-12)
    assert measures.pnka(X, Y) == pytest.approx(np.mean(points), abs=1e-12)


def test_riemann_by_full_generalised_eigenvalues() -> None:
    shrunk = []
    for v in (X, Y):
        k = centred(v) @ centred(v).T
        shrunk.append(0.9 * k * 70 / np.trace(k) + 0.1 * np.eye(70))
    eigenvalues = scipy.linalg.eigh(*shrunk, eigvals_only=True)
    expected = math.sqrt(sum(math.log(v) ** 2 for v in eigenvalues))
    assert measures.riemann(X, Y) == pytest.approx(expected, rel=1e-8)


N = 24


def related():
    rng = np.random.default_rng(0)
    x = np.maximum(rng.normal(size=(N, 5)), -0.3)
    return x, x @ rng.normal(size=(5, 6)) + 0.3 * rng.normal(size=(N, 6))


def test_the_references_gulp_makes_no_claim_of_zero_for_dead_neurons() -> None:
    x, _ = related()
    x[:, 2] = 0
    measure = measures.get("gulp", variant="resi")
    assert measure(x, x) == pytest.approx(2)
    assert measure.info.identity is None


def test_the_riemannian_distance_is_the_same_either_way_with_little_shrinkage() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 2)) * [1, 1e-6], rng.normal(size=(20, 15))
    measure = measures.get("riemann", shrinkage=1e-6)
    assert measure(x, y) == pytest.approx(measure(y, x), rel=1e-9)


def test_an_input_at_the_mean_of_both_networks_keeps_its_place() -> None:
    line = np.linspace(1, 2, 5)[:, None]  # the third is the mean, up to rounding
    x, y = line * [1.3, -0.7, 2.1], line * [0.2, 5.1]
    assert measures.pnka(x, y) == pytest.approx(1, abs=1e-12)
    assert likewise.pointwise(x, y)[2] == 1
