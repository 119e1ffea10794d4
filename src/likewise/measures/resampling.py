"""A representation with its rows permuted, or some of its rows, made from its parent's quantities by index.

Whether a score is chance is asked of hundreds of permutations, and how far it would move with other inputs
of hundreds of subsets. Neither needs a new Gram matrix, decomposition or neighbour search. What follows how is
declared beside each quantity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from likewise.measures.representation import Representation
from likewise.measures.workspace import Key, Quantity, derive, quantity
from likewise.views import Activations, Outputs

T = TypeVar("T")


class Resampled(Representation):
    """Rows of a parent by index. What it computes is its own: hundreds of them come and go."""

    def __init__(self, parent: Representation, index: Tensor, view: Activations) -> None:
        super().__init__(view, parent.workspace, parent.exponent)
        self.parent, self.index = parent, index
        self._held: dict[Key, Any] = {}

    def memo(self, key: Key, compute: Callable[[], T]) -> T:
        if key not in self._held:
            value = self._derive(key[0], key)
            self._held[key] = compute() if value is None else value
        return cast(T, self._held[key])

    def _derive(self, quantity: Quantity[Any], key: Key) -> Any:
        """The quantity as it follows from the parent's; None where it is computed anew."""
        raise NotImplementedError

    def _computed_by_parent(self, key: Key) -> Any:
        return self.parent.workspace.find((self.parent.key, key))


class Permuted(Resampled):
    """The rows of a representation in another order."""

    def __init__(self, parent: Representation, index: Tensor) -> None:
        super().__init__(parent, index, parent.view)

    def at(self, exponent: int) -> Representation:
        return Permuted(self.parent.at(exponent), self.index)

    def _derive(self, quantity: Quantity[Any], key: Key) -> Any:
        if quantity.permuted is None:
            return None
        known = quantity(self.parent, *key[1:]) if quantity.eager else self._computed_by_parent(key)
        return derive(quantity.permuted, self.parent, known, self.index)

    @property
    def unconverted(self) -> Tensor:
        return self.parent.unconverted[self.index]

    @quantity
    def values(self) -> Tensor:
        return self.parent.values[self.index]

    @quantity
    def compact(self) -> Tensor:
        return self.parent.compact[self.index]

    def cosines_at(self, columns: Tensor) -> Tensor:
        listed = torch.empty_like(columns)
        listed[self.index] = self.index[columns]
        return self.parent.cosines_at(listed)[self.index]

    @property
    def outputs(self) -> Outputs:
        """The parent's outputs in the new order."""
        parent = self.parent.outputs
        labels = None if parent.labels is None else parent.labels[self.index]
        return Outputs(parent.logits[self.index], labels)


class Subset(Resampled):
    """Some rows of a representation, in their order. Gram and distance matrices are the parent's, by index."""

    def __init__(self, parent: Representation, index: Tensor) -> None:
        view = parent.view
        outputs = view.outputs and Outputs(
            view.outputs.logits[index],
            None if view.outputs.labels is None else view.outputs.labels[index],
        )
        rows = replace(view, values=view.values[index], outputs=outputs, reduce=None, probe=None)
        super().__init__(parent, index, rows)

    def at(self, exponent: int) -> Representation:
        return Subset(self.parent.at(exponent), self.index)

    # Chance is drawn once, for the whole: drawn anew for each part, it would pass for an effect of the inputs.

    def random_order(self, seed: int) -> np.ndarray:
        return self._places_in_subset(self.parent.random_order(seed))

    def random_sets(self, size: int, count: int, seed: int) -> list[np.ndarray]:
        return [self._places_in_subset(rows) for rows in self.parent.random_sets(size, count, seed)]

    def batches(self, size: int) -> list[tuple[int, int]]:
        index = self.index.cpu().numpy()
        ends = [int(np.searchsorted(index, stop)) for _, stop in self.parent.batches(size)]
        return list(pairwise([0, *ends]))

    def _places_in_subset(self, rows: np.ndarray) -> np.ndarray:
        """Those of some inputs of the whole that are in the subset, by their place in it."""
        places = np.full(self.parent.n, -1)
        places[self.index.cpu().numpy()] = np.arange(self.n)
        found = places[rows]
        return found[found >= 0]

    def _derive(self, quantity: Quantity[Any], key: Key) -> Any:
        if quantity.subset is None:
            return None
        return derive(quantity.subset, self.parent, self._computed_by_parent(key), self.index)
