"""n x n matrices of a network whose inner products with other networks' are all a measure needs.

Over m networks the inner products of all pairs are one product of m long vectors. It is taken a few rows
of the matrices at a time, so the matrices never have to be in memory together, or at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from likewise.errors import LikewiseError
from likewise.measures.numerics.algebra import hsic1
from likewise.measures.numerics.distances import careful_squares, median_distance
from likewise.measures.representation import Representation


class Kernel(Protocol):
    """A matrix a network has over the probe; equal kernels share their inner products."""

    def prepare(self, rep: Representation) -> object:
        """What the rows are computed from; called before the rows of several networks are in memory."""

    def rows(self, rep: Representation, start: int, stop: int) -> Tensor:
        """Some rows from column `start` on, the rest being its mirror image; not to be changed.

        Or one vector in place of these rows.
        """

    def __hash__(self) -> int: ...


@dataclass(frozen=True)
class Linear:
    """Inner products of the centred rows; `exact` asks for double precision whatever was given."""

    exact: bool = False

    def prepare(self, rep: Representation) -> Tensor:
        """What the rows of a network are computed from."""
        return rep.centred_neurons

    def rows(self, rep: Representation, start: int, stop: int) -> Tensor:
        """Some rows of X Xᵀ, columns from `start` on."""
        return rep.gram_rows(start, stop, upper=True)


@dataclass(frozen=True)
class Distance:
    """Euclidean distances between rows."""

    def prepare(self, rep: Representation) -> Tensor:
        """What the rows of a network are computed from."""
        return rep.distances if rep.gram_by_distances else rep.squares

    def rows(self, rep: Representation, start: int, stop: int) -> Tensor:
        """Some rows of the distances, columns from `start` on."""
        return rep.distance_rows(start, stop, upper=True)


@dataclass(frozen=True)
class Gaussian:
    """exp(-distance² / 2 (bandwidth * median distance)²) - 1.

    Centring takes the 1 off anyway; with it, a wide bandwidth would leave few digits of the rest.
    """

    bandwidth: float

    def prepare(self, rep: Representation) -> float:
        """What the rows of a network are computed from."""
        return median_distance(rep)

    def rows(self, rep: Representation, start: int, stop: int) -> Tensor:
        """Some rows of exp(-|x - y|² / 2w²) - 1, columns from `start` on."""
        width = self.bandwidth * median_distance(rep)
        squares = careful_squares(rep, start, stop)
        return squares.mul_(-0.5 / width**2).expm1_()


@dataclass
class InnerProducts:
    """Inner products of one kernel: of pairs, and each network's row sums and diagonal, by the networks' keys."""

    inner: dict[tuple[int, int], float] = field(default_factory=dict)
    sums: dict[int, np.ndarray] = field(default_factory=dict)
    diagonals: dict[int, np.ndarray] = field(default_factory=dict)

    def dot(self, a: Representation, b: Representation) -> float:
        """The inner product of two kernel matrices, in either order."""
        product = self.inner.get((a.key, b.key))
        return product if product is not None else self.inner[b.key, a.key]

    def centred(self, a: Representation, b: Representation) -> float:
        """<HKH, HLH> with H the centring matrix: n² times the biased HSIC."""
        n = a.n
        r, s = self.sums[a.key], self.sums[b.key]
        return self.dot(a, b) - 2 / n * float(r @ s) + float(r.sum() * s.sum()) / n**2

    def unbiased(self, a: Representation, b: Representation) -> float:
        """n (n - 3) times HSIC1, the unbiased HSIC of Song et al. 2012: diagonals left out."""
        p, q = self.diagonals[a.key], self.diagonals[b.key]
        r, s = self.sums[a.key] - p, self.sums[b.key] - q
        return hsic1(self.dot(a, b) - float(p @ q), float(r @ s), float(r.sum()) * float(s.sum()), a.n)


def inner_products(kernels: Iterable[Kernel], reps: Sequence[Representation]) -> dict[Kernel, InnerProducts]:
    """Inner products of all pairs for some kernels, a group of networks at a time."""
    tables: dict[Kernel, InnerProducts] = {}
    for kernel in kernels:
        usable = [rep for rep in reps if can_prepare(kernel, rep)]
        table = tables[kernel] = InnerProducts()
        groups = groups_in_memory(usable)
        for p, left in enumerate(groups):
            fill(table, kernel, left)
            for right in groups[p + 1 :]:
                fill(table, kernel, left, right)
    return tables


def can_prepare(kernel: Kernel, rep: Representation) -> bool:
    """Whether a network has this kernel; one that has not will say so when its pairs are scored."""
    try:
        kernel.prepare(rep)
    except LikewiseError:
        return False
    return True


def groups_in_memory(reps: Sequence[Representation]) -> list[Sequence[Representation]]:
    """Networks that fit into memory together, two groups at a time."""
    if not reps:
        return []
    size = 8 * reps[0].n * max(min(rep.d, 2 * rep.n) for rep in reps) * 3
    count = max(1, reps[0].workspace.limit // 4 // size)
    return [reps[i : i + count] for i in range(0, len(reps), count)]


def fill(
    table: InnerProducts, kernel: Kernel, left: Sequence[Representation], right: Sequence[Representation] = ()
) -> None:
    """Inner products of every left network with every left and right one, in one pass over rows."""
    everyone = [*left, *right]
    for rep in everyone:
        kernel.prepare(rep)
    first = everyone[0]
    # allocated first: small tensors kept between large ones that come and go would fragment the heap
    margins = {rep.key: torch.zeros(2, rep.n, dtype=torch.float64, device=rep.mean.device) for rep in everyone}
    products = torch.zeros(len(left), len(everyone), dtype=torch.float64)
    for start, stop in first.blocks(2 * len(everyone)):
        blocks = [kernel.rows(rep, start, stop) for rep in everyone]
        if blocks[0].ndim == 1:
            products += _products(blocks, len(left))
            continue
        for rep, block in zip(everyone, blocks, strict=True):
            _add_margins(margins[rep.key], block, start, stop)
        # all but the square on the diagonal counts for its mirror image too
        products += 2 * _products(blocks, len(left))
        products -= _products([block[:, : stop - start] for block in blocks], len(left))
    for i, a in enumerate(left):
        for j, b in enumerate(everyone):
            table.inner[a.key, b.key] = float(products[i, j])
    for key, margin in margins.items():
        table.sums[key], table.diagonals[key] = margin.cpu().double().numpy()


def _add_margins(margins: Tensor, block: Tensor, start: int, stop: int) -> None:
    """Add what rows from the diagonal on say of the sums of all rows and of the diagonal."""
    sums, diagonal = margins
    mirrored = block[:, stop - start :]
    sums[start:stop] += block.sum(dim=1, dtype=torch.float64)
    sums[stop:] += block.new_ones(stop - start) @ mirrored
    diagonal[start:stop] = block.diagonal()


def _products(blocks: list[Tensor], left: int) -> Tensor:
    """Inner products of the first `left` blocks with all, without copying them into one matrix."""
    rows = [block.reshape(-1) for block in blocks]
    step = 1 << 16
    total = torch.zeros(left, len(rows), dtype=torch.float64, device=rows[0].device)
    for i in range(0, rows[0].numel(), step):
        matrix = torch.stack([row[i : i + step] for row in rows]).double()
        total += matrix[:left] @ matrix.T
    return total.cpu()
