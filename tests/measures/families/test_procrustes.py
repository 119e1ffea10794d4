"""Rotations against matrix square roots, and the shape metric from end to end."""

import math

import numpy as np
import pytest
import scipy.linalg
import scipy.stats

from likewise import measures
from tests.measures.families.oracles import X, Y, canonical, centred


def test_nbs_and_procrustes_by_matrix_square_roots() -> None:
    k, l = (centred(v) @ centred(v).T for v in (X, Y))
    root = scipy.linalg.sqrtm(k).real
    fidelity = np.trace(scipy.linalg.sqrtm(root @ l @ root).real)
    size = math.sqrt(np.trace(k) * np.trace(l))
    assert measures.nbs(X, Y) == pytest.approx(fidelity / size, rel=1e-5)
    bures = math.sqrt(np.trace(k) + np.trace(l) - 2 * fidelity)
    assert measures.get("bures")(X, Y) == pytest.approx(bures, rel=1e-4)


def partly_whitened(x, alpha):
    """Williams et al. 2021: X (alpha I + (1 - alpha) (Xᵀ X)^-1/2), X centred."""
    x = x - x.mean(axis=0)
    squares, vectors = np.linalg.eigh(x.T @ x)
    return x @ (vectors * (alpha + (1 - alpha) / np.sqrt(squares))) @ vectors.T


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("scale", [1e-3, 1, 40])
def test_the_shape_metric_whitens_in_part_as_published(alpha, scale) -> None:
    x, y = (partly_whitened(v, alpha) for v in (scale * X, Y))
    cosine = np.linalg.norm(x.T @ y, "nuc") / np.linalg.norm(x) / np.linalg.norm(y)
    found = measures.get("shape", alpha=alpha)(scale * X, Y)
    assert found == pytest.approx(np.arccos(cosine), rel=1e-9)
    free = measures.get("shape", variant="scale-free", alpha=alpha)
    assert free(scale * X, Y) == pytest.approx(free(X, Y), rel=1e-9)


def test_the_shape_metric_goes_from_cca_to_procrustes() -> None:
    angle = measures.angular_shape(X, Y)
    assert measures.get("shape", alpha=1)(X, Y) == pytest.approx(angle, rel=1e-9)
    # at alpha 0 both sides are white: the cosine is the sum of correlations over sqrt(rank rank')
    expected = math.acos(canonical(X, Y).sum() / math.sqrt(9 * 12))
    assert measures.get("shape", alpha=0)(X, Y) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1.0, 1e200, 1e300])
def test_shape_without_whitening_is_the_angular_shape_at_any_scale(scale: float) -> None:
    x, y = np.random.default_rng(5).normal(size=(2, 12, 6))
    expected = measures.get("angular-shape")(x, y)
    assert measures.get("shape", alpha=1.0)(scale * x, y) == pytest.approx(expected, rel=1e-9)
    assert measures.get("shape", alpha=1.0)(scale * x, scale * x) == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200, 1e300])
def test_shape_of_whitened_networks_is_the_same_at_any_scale(scale: float) -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 30, 5))
    whitened = measures.get("shape", alpha=0.0)
    assert whitened(x * scale, y * scale) == pytest.approx(whitened(x, y), rel=1e-9)
    assert whitened(x * scale, y) == pytest.approx(whitened(x, y), rel=1e-9)


@pytest.mark.parametrize("name", ["procrustes", "procrustes-size", "angular-shape"])
def test_weak_directions_are_turned_as_exactly_as_strong_ones(name: str) -> None:
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(centred(rng.normal(size=(60, 10))))[0]
    turns = [np.linalg.qr(rng.normal(size=(10, 10)))[0] for _ in range(2)]
    x = basis * np.geomspace(1, 1.1e-3, 10) @ turns[0]
    assert measures.get(name)(x, x @ turns[1]) < 1e-12
