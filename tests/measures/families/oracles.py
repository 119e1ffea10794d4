"""Data and plain oracles that the tests of several families share."""

import numpy as np
import scipy.linalg
import scipy.stats

RNG = np.random.default_rng(7)


HIDDEN = RNG.normal(size=(70, 6))


def network(d, noise=0.7):
    return np.maximum(HIDDEN @ RNG.normal(size=(6, d)) + noise * RNG.normal(size=(70, d)), 0) + 0.1


X, Y = network(9), network(12)


def centred(v):
    return v - v.mean(axis=0)


def unit(v):
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def orthonormal(v):
    return scipy.linalg.orth(v)


def canonical(x, y):
    """Canonical correlations by the generalised eigenvalue problem, not by bases."""
    x, y = centred(x), centred(y)
    a, b, c = x.T @ x, y.T @ y, x.T @ y
    eigenvalues = scipy.linalg.eigh(c @ np.linalg.solve(b, c.T), a, eigvals_only=True)
    return np.sqrt(np.sort(np.clip(eigenvalues, 0, 1))[::-1])


N = 24


def related():
    rng = np.random.default_rng(0)
    x = np.maximum(rng.normal(size=(N, 5)), -0.3)
    return x, x @ rng.normal(size=(5, 6)) + 0.3 * rng.normal(size=(N, 6))


def with_a_large_row(size):
    x, y = related()
    x[3] *= size
    return x, y
