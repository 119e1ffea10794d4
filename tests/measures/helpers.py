"""Data with ties, for the tests of neighbours."""

import numpy as np


def one_hot(rng, n, c=10):
    return np.eye(c)[rng.integers(0, c, n)]


def turn(rng, d):
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


def kinds(rng, n=60):
    """Data with ties of every sort, and without."""
    grid = np.maximum(rng.normal(size=(n, 4)), 0).round()
    grid[0] += grid.sum(axis=1).min() == 0  # at least one row that is not zero
    return {
        "apart": rng.normal(size=(n, 8)),
        "classes": one_hot(rng, n, 5) + 0.1,
        "grid with zero rows": grid,
        "twins": np.repeat(rng.normal(size=(n // 2, 8)), 2, axis=0),
        "turned classes": one_hot(rng, n, 6) @ turn(rng, 6),
        "far from zero": rng.normal(size=(n, 8)) + 1e6,
        "twins far from zero": np.repeat(rng.normal(size=(n // 2, 8)), 2, axis=0) + 1e6,
    }
