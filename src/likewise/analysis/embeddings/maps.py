"""Maps from the vectors of one embedding model to those of another, learned from items that both have embedded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise._base.arrays import Array
from likewise.errors import InputError
from likewise.measures.numerics.algebra import ridge_factors, svd
from likewise.measures.numerics.distances import directions
from likewise.measures.representation import Representation
from likewise.views import Activations

FOLDS = 5


def unit_rows(values: Any, name: str) -> Tensor:
    """The rows of vectors at length 1, in double precision; a zero row is refused, as it has no direction."""
    view = values if isinstance(values, Activations) else Activations(values, name=name)
    rep = Representation(view).double
    if not bool(rep.directed.all()):
        empty = (~rep.directed).nonzero()[:, 0]
        raise InputError(
            f"{view.label} has {len(empty)} rows of zeros, the first at row {int(empty[0])}, and a cosine needs a "
            "direction. Drop these items from all files."
        )
    return directions(rep)


@dataclass(frozen=True, eq=False)
class VectorMap:
    """A map from old vectors to new ones: at length 1, less a mean, times a matrix, plus a mean, at length 1 again.

    Attributes:
        name: How it was learned: "procrustes" (a rotation, with one scale) or "ridge" (any matrix, with a penalty).
        matrix: The matrix (old width, new width).
        old_mean: The mean of the old vectors.
        new_mean: The mean of the new vectors.
    """

    name: str
    matrix: Array
    old_mean: Array
    new_mean: Array

    def __call__(self, vectors: Any) -> Array:
        """Map old vectors, one per row."""
        rows = unit_rows(vectors, "the vectors").cpu().numpy()
        if rows.shape[1] != len(self.matrix):
            raise InputError(
                f"the vectors have {rows.shape[1]} columns, and the map takes {len(self.matrix)}. Pass vectors of the "
                "old model."
            )
        mapped = (rows - self.old_mean) @ self.matrix + self.new_mean
        return np.asarray(mapped / np.linalg.norm(mapped, axis=1, keepdims=True))

    def __repr__(self) -> str:
        return f"VectorMap({self.name!r}, {self.matrix.shape[0]} to {self.matrix.shape[1]})"


def _procrustes(old: Tensor, new: Tensor) -> Tensor:
    """The rotation of centred vectors, or the projection where widths differ, with the scale that fits best."""
    left, _, right = svd(old.T @ new)
    turned = old @ left @ right
    return left @ right * ((turned * new).sum() / turned.square().sum())


def _ridge(old: Tensor, new: Tensor) -> Tensor:
    first, second = ridge_factors(old, new)
    return first @ second


LEARNERS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"procrustes": _procrustes, "ridge": _ridge}


def learn(name: str, old: Tensor, new: Tensor) -> VectorMap:
    """The map of a name, from items that both models have embedded."""
    means = old.mean(dim=0), new.mean(dim=0)
    matrix = LEARNERS[name](old - means[0], new - means[1])
    return VectorMap(name, *(part.cpu().numpy() for part in (matrix, *means)))


def held_out(name: str, old: Tensor, new: Tensor, order: Array) -> Tensor:
    """Every item mapped by a map that was learned without it, as one of `FOLDS` parts of an order of items."""
    mapped = torch.empty_like(new)
    for part in np.array_split(order, FOLDS):
        rest = np.setdiff1d(order, part)
        rows, fit = (torch.from_numpy(index).to(old.device) for index in (part, rest))
        vectors = learn(name, old[fit], new[fit])(old[rows])
        mapped[rows] = torch.from_numpy(vectors).to(new)
    return mapped
