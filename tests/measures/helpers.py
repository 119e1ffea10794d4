"""Data with ties and their neighbours, and activations of single precision."""

import numpy as np

ROWS, WIDTH = 1500, 64


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


def exact_lists(x, k, metric="cosine"):
    """Neighbours in extended precision, from differences."""
    x = np.asarray(x, dtype=np.longdouble)
    norms = np.sqrt((x * x).sum(axis=1))
    if metric == "cosine":
        x = x / np.where(norms > 0, norms, 1)[:, None]
    squares = ((x[:, None] - x) ** 2).sum(axis=-1)
    if metric == "cosine":
        squares[norms == 0] = squares[:, norms == 0] = 2
    np.fill_diagonal(squares, np.inf)
    return np.argsort(squares, axis=1, kind="stable")[:, :k]


def activations(seed: int, *, mean: float = 0.0, scale: float = 1.0) -> np.ndarray:
    shared = np.random.default_rng(0).normal(size=(ROWS, WIDTH))
    rng = np.random.default_rng(seed)
    values = np.maximum(shared @ rng.normal(size=(WIDTH, WIDTH)) / 8 + 0.5 * rng.normal(size=(ROWS, WIDTH)), 0)
    return (scale * (values + mean)).astype(np.float32)
