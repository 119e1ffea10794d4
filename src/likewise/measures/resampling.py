"""A representation with its rows permuted or drawn, made from its parent's quantities by index.

Whether a score is chance is asked of hundreds of permutations, and how far it would move with other inputs
of hundreds of draws. Neither needs a new Gram matrix, decomposition or neighbour search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from likewise.measures.neighbor_lists import reordered
from likewise.measures.ranks import Square
from likewise.measures.representation import Representation
from likewise.views import Outputs

T = TypeVar("T")

SAME = {
    "mean",
    "compact_mean",
    "norm",
    "size",
    "covariance",
    "energy",
    "_whitening",
    "_raw_whitening",
    "median distance",
    "heat trace",
    "symmetric whitening",
    "inverse spreads",
    "concentricity",
    "uniformity",
    "raw uniformity",
    "_scales",
    "_uneven",
    "_uneven_neurons",
    "_not_constant",
    "_far",
    "single_energy",
}
BY_ROW = {
    "values",
    "compact",
    "centred",
    "_centred_wide",
    "squares",
    "norms",
    "gram at",
    "_row_profile",
    "_toward_mean",
    "_span",
    "_raw_span",
    "_unit_rows",
    "single",
}
BY_BOTH = {"gram", "distances", "cosines"}
BASES = {"spectrum"}


class Permuted(Representation):
    """The rows of a representation in another order."""

    def __init__(self, parent: Representation, index: Tensor) -> None:
        super().__init__(parent.view, parent.workspace, parent.exponent)
        self.parent, self.index = parent, index
        self._held: dict[Any, Any] = {}

    def at(self, exponent: int) -> Representation:
        return Permuted(self.parent.at(exponent), self.index)

    def kept(self, name: Any, compute: Callable[[], T]) -> T:
        if name not in self._held:
            if name == "distances":  # made once for all orders
                self.parent.distances  # noqa: B018
            known = self.parent.workspace.find((self.parent.key, name))
            derived = None if known is None else self._derived(name, known)
            self._held[name] = compute() if derived is None else derived
        return cast(T, self._held[name])

    def _derived(self, name: Any, known: Any) -> Any:
        kind = name[0] if isinstance(name, tuple) else name
        if kind in SAME:
            return known
        if kind in BY_ROW:
            return self._rows_of(known)
        if kind in BY_BOTH:
            return known[self.index][:, self.index]
        if kind == "nearest":
            return reordered(known, self.index)
        if kind in BASES:
            scales, vectors, basis = known
            return scales, vectors, basis[self.index] if basis.numel() else basis
        if kind == "ranks":
            return Square.of(self.parent).taken(self.index)
        return None

    def _rows_of(self, known: Any) -> Any:
        if isinstance(known, tuple):
            return tuple(part[self.index] if isinstance(part, Tensor) and part.numel() else part for part in known)
        return known[self.index]

    @property
    def values(self) -> Tensor:
        return self.kept("values", lambda: self.parent.values[self.index])

    @property
    def compact(self) -> Tensor:
        return self.kept("compact", lambda: self.parent.compact[self.index])

    def cosines_at(self, columns: Tensor) -> Tensor:
        listed = torch.empty_like(columns)
        listed[self.index] = self.index[columns]
        return self.parent.cosines_at(listed)[self.index]

    @property
    def outputs(self) -> Outputs:
        parent = self.parent.outputs
        labels = None if parent.labels is None else parent.labels[self.index]
        return Outputs(parent.logits[self.index], labels)


class Subset(Representation):
    """Some rows of a representation, in their order. Gram and distance matrices are the parent's, by index."""

    def __init__(self, parent: Representation, index: Tensor) -> None:
        view = parent.view
        outputs = view.outputs and Outputs(
            view.outputs.logits[index],
            None if view.outputs.labels is None else view.outputs.labels[index],
        )
        drawn = replace(view, values=view.values[index], outputs=outputs, reduce=None, probe=None)
        super().__init__(drawn, parent.workspace, parent.exponent)
        self.parent, self.index = parent, index
        self._held: dict[Any, Any] = {}

    def at(self, exponent: int) -> Representation:
        return Subset(self.parent.at(exponent), self.index)

    # Chance is drawn once, for the whole: drawn anew for each part, it would pass for an effect of the inputs.

    def random_order(self, seed: int) -> np.ndarray:
        return self._among(self.parent.random_order(seed))

    def random_sets(self, size: int, count: int, seed: int) -> list[np.ndarray]:
        return [self._among(rows) for rows in self.parent.random_sets(size, count, seed)]

    def batches(self, size: int) -> list[tuple[int, int]]:
        index = self.index.cpu().numpy()
        ends = [int(np.searchsorted(index, stop)) for _, stop in self.parent.batches(size)]
        return list(pairwise([0, *ends]))

    def _among(self, rows: np.ndarray) -> np.ndarray:
        """Those of some inputs of the whole that were drawn, by their place in the draw."""
        places = np.full(self.parent.n, -1)
        places[self.index.cpu().numpy()] = np.arange(self.n)
        found = places[rows]
        return found[found >= 0]

    def kept(self, name: Any, compute: Callable[[], T]) -> T:
        if name not in self._held:
            known = self.parent.workspace.find((self.parent.key, name)) if name in BY_BOTH else None
            self._held[name] = compute() if known is None else self._derived(name, known)
        return cast(T, self._held[name])

    def _derived(self, name: str, known: Tensor) -> Tensor:
        square = known[self.index][:, self.index]
        if name != "gram":
            return square
        means = square.mean(dim=0)
        return square - means - means[:, None] + means.mean()
