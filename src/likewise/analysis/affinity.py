"""A similarity matrix as what the analyses read: affinities, and one number per pair."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise._base.arrays import Array
from likewise._base.optional import Library
from likewise.errors import InputError
from likewise.matrices.similarity import SimilarityMatrix


def affinities(matrix: SimilarityMatrix) -> Array:
    """How alike each two networks are, from 0 on, symmetric; the diagonal, which says little, is 0.

    Scores below 0 are lifted to it; of a distance it is how far below the largest one it is.
    """
    values = checked(matrix)
    away = ~np.eye(len(values), dtype=bool)
    if matrix.larger_is == "less alike":
        values = values[away].max() - values
    else:
        values = values - min(0.0, float(values[away].min()))
    return np.where(away, values, 0.0)


def pairs(values: Array) -> Array:
    """The values above the diagonal, one per pair."""
    return values[np.triu_indices(len(values), 1)]


def checked(matrix: SimilarityMatrix) -> Array:
    """The values, symmetric; a matrix with too few networks or with pairs without a finite score is refused."""
    values = np.asarray(matrix.values, dtype=np.float64)
    if len(values) < 3:
        raise InputError(f"{matrix!r} has {len(values)} networks, too few to compare pairs. Give three or more.")
    undefined = np.argwhere(~np.isfinite(values) & ~np.eye(len(values), dtype=bool))
    if len(undefined):
        i, j = undefined[0]
        raise InputError(
            f"{matrix!r} has no score for {matrix.names[i]!r} and {matrix.names[j]!r}. Leave one of them "
            "out: matrix.reordered([...]) with the names to keep."
        )
    return (values + values.T) / 2


def sklearn(part: str) -> Any:
    """A part of scikit-learn, or how to install it."""
    return Library(f"sklearn.{part}", extra="analysis", to="analyse a matrix").load()
