"""Rows of one network permuted or left out, with everything that follows taken from the whole network by index.

Whether a score is chance is asked of hundreds of permutations, and how far it would move with other inputs
of hundreds of subsets. Neither needs a new Gram matrix, decomposition or neighbour search: how a quantity follows
is declared beside it.

A permutation changes neither the inner product of an n x n matrix with itself nor, up to order, its row sums.
Only the products between networks are new: `permuted_networks` takes them by index.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from likewise.measures.function import Measure
from likewise.measures.numerics.kernels import InnerProducts, Kernel, Linear
from likewise.measures.numerics.ranks import CorrelationRanks, rank_matrix
from likewise.measures.representation import Representation
from likewise.measures.workspace import Key, Quantity, derive, quantity
from likewise.views import Activations, Outputs

T = TypeVar("T")
ROWS = 2**15  # numbers in the rows of a matrix that are put in order together


class Resampled(Representation):
    """Rows of a parent by index. What it computes is its own: hundreds of them come and go."""

    def __init__(self, parent: Representation, index: Tensor, view: Activations) -> None:
        super().__init__(view, parent.workspace, parent.exponent, parent.dtype == torch.float64)
        self.parent, self.index = parent, index
        self._held: dict[Key, Any] = {}

    def memo(self, key: Key, compute: Callable[[], T]) -> T:
        if key not in self._held:
            value = self._derive(key[0], key)
            self._held[key] = compute() if value is None else value
        return cast(T, self._held[key])

    def _derive(self, quantity: Quantity[Any], key: Key) -> Any:
        """The quantity as it follows from the parent's; None where it has to be computed again."""
        raise NotImplementedError

    def _computed_by_parent(self, key: Key) -> Any:
        return self.parent.workspace.find((self.parent.key, key))


class Permuted(Resampled):
    """The rows of a representation in another order."""

    def __init__(self, parent: Representation, index: Tensor) -> None:
        super().__init__(parent, index, parent.view)

    def at(self, exponent: int) -> Representation:
        return Permuted(self.parent.at(exponent), self.index)

    @quantity
    def _double(self) -> Representation:
        return Permuted(self.parent.double, self.index)

    def _derive(self, quantity: Quantity[Any], key: Key) -> Any:
        if quantity.permuted is None:
            return None
        whole = quantity(self.parent, *key[1:]) if quantity.eager else self._computed_by_parent(key)
        return derive(quantity.permuted, self.parent, whole, self.index)

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
            view.outputs.logits[index], None if view.outputs.labels is None else view.outputs.labels[index]
        )
        clusters = None if view.clusters is None else view.clusters[index.cpu().numpy()]
        rows = replace(view, values=view.values[index], outputs=outputs, clusters=clusters, reduce=None, probe=None)
        super().__init__(parent, index, rows)

    def at(self, exponent: int) -> Representation:
        return Subset(self.parent.at(exponent), self.index)

    # Random choices are those of all rows: other ones per subset would pass for an effect of the inputs.

    def random_order(self, seed: int) -> np.ndarray:
        return self._positions(self.parent.random_order(seed))

    def random_sets(self, size: int, count: int, seed: int) -> list[np.ndarray]:
        return [self._positions(rows) for rows in self.parent.random_sets(size, count, seed)]

    def batches(self, size: int) -> list[tuple[int, int]]:
        index = self.index.cpu().numpy()
        ends = [int(np.searchsorted(index, stop)) for _, stop in self.parent.batches(size)]
        return list(pairwise([0, *ends]))

    def _positions(self, rows: np.ndarray) -> np.ndarray:
        """Where these rows of the parent are in the subset; rows that are left out are dropped."""
        positions = np.full(self.parent.n, -1)
        positions[self.index.cpu().numpy()] = np.arange(self.n)
        positions = positions[rows]
        return positions[positions >= 0]

    def _derive(self, quantity: Quantity[Any], key: Key) -> Any:
        if quantity.subset is None:
            return None
        return derive(quantity.subset, self.parent, self._computed_by_parent(key), self.index)


def measure_of_subset(measure: Measure, index: Tensor) -> Measure:
    """The measure for some of the inputs: its confounder at these."""
    confounder = measure.options.get("confounder")
    if confounder is None:
        return measure
    return measure.bind(confounder=np.asarray(confounder)[index.cpu().numpy()])


def permuted_networks(
    kernels: Sequence[Kernel],
    tables: Mapping[Kernel, InnerProducts],
    left: Sequence[Representation],
    right: Sequence[Representation],
    order: Tensor,
) -> tuple[list[Permuted], dict[Kernel, InnerProducts]]:
    """The right networks with their inputs in another order, and tables of each with the left ones before it.

    A kernel whose matrices cannot be kept is left out; pairs compute it again.
    """
    moved = [Permuted(rep, order) for rep in right]
    fits = right[0].workspace.keeps_squares(right[0].n)
    return moved, {k: _table(k, tables[k], left, moved) for k in kernels if fits and k in tables}


def _table(
    kernel: Kernel, whole: InnerProducts, left: Sequence[Representation], moved: Sequence[Permuted]
) -> InnerProducts:
    """The table of networks as they are and permuted ones, from that of the networks as they are."""
    table = InnerProducts()
    sources: list[tuple[Representation, int, Any]] = [(rep, rep.key, slice(None)) for rep in left]
    sources += [(b, b.parent.key, b.index.cpu().numpy()) for b in moved]
    for rep, key, rows in sources:
        if key in whole.sums:
            table.inner[rep.key, rep.key] = whole.inner[key, key]
            table.sums[rep.key], table.diagonals[rep.key] = whole.sums[key][rows], whole.diagonals[key][rows]
    for b in moved:
        before = left[: left.index(b.parent)] if b.parent in left else left  # the second side of these
        others = [a for a in before if a.key in table.sums]
        if others and b.key in table.sums:
            keys = [(a.key, b.key) for a in others]
            table.inner |= zip(keys, _products(kernel, others, b.parent, b.index), strict=True)
    return table


def _products(kernel: Kernel, left: Sequence[Representation], b: Representation, order: Tensor) -> list[float]:
    """Inner products of a network in another order with some others, as many rows at a time as stay in the cache."""
    if isinstance(kernel, Linear) and not any(rep.wide for rep in (*left, b)):
        rows = b.centred[order]
        return [float((a.centred.T @ rows).square_().sum()) for a in left]
    matrix, others, n = _kernel_square(kernel, b), [_kernel_square(kernel, a) for a in left], b.n
    total = torch.zeros(len(others), dtype=matrix.dtype, device=matrix.device)
    step = max(1, ROWS // n)
    for chunk in (slice(start, start + step) for start in range(0, n, step)):
        moved = matrix.index_select(0, order[chunk]).index_select(1, order).view(-1)
        total += torch.stack([moved @ other[chunk].reshape(-1) for other in others])
    share = 0.5 if isinstance(kernel, CorrelationRanks) else 1.0  # ranks are of pairs i < j only
    return [share * float(product) for product in total]


def _kernel_square(kernel: Kernel, rep: Representation) -> Tensor:
    """The matrix of a kernel, (n, n)."""
    if isinstance(kernel, CorrelationRanks):
        return rank_matrix(rep)
    return rep.gram if isinstance(kernel, Linear) else _kernel_matrix(rep, kernel)


@quantity
def _kernel_matrix(rep: Representation, kernel: Kernel) -> Tensor:
    """The matrix of a kernel from its rows, each half the mirror image of the other."""
    kernel.prepare(rep)
    matrix = torch.empty(rep.n, rep.n, dtype=rep.mean.dtype, device=rep.values.device)
    for start, stop in rep.blocks(2):
        block = kernel.rows(rep, start, stop)
        matrix[start:stop, start:] = block
        matrix[start:, start:stop] = block.T
    return matrix
