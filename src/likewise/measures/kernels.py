"""n x n matrices of a network whose inner products with other networks' are all a measure needs.

Over m networks the inner products of all pairs are one product of m long vectors. It is taken a few rows
of the matrices at a time, so the matrices never have to stand in memory together, or at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from likewise.measures.representation import Representation


class Kernel(Protocol):
    """A matrix a network has over the probe; equal kernels share their table."""

    def prepare(self, rep: Representation) -> None:
        """Compute what the rows need, before several networks' rows are held at once."""

    def rows(self, rep: Representation, start: int, stop: int) -> Tensor:
        """Some rows from column `start` on, the rest being its mirror image; not to be changed.

        Or what stands for those rows in one vector.
        """

    def __hash__(self) -> int: ...


@dataclass(frozen=True)
class Linear:
    """Inner products of the centred rows."""

    def prepare(self, rep: Representation) -> None:
        rep.centred_neurons  # noqa: B018

    def rows(self, rep: Representation, start: int, stop: int) -> Tensor:
        return rep.gram_rows(start, stop, upper=True)


@dataclass(frozen=True)
class Distance:
    """Euclidean distances between rows."""

    def prepare(self, rep: Representation) -> None:
        rep.squares  # noqa: B018

    def rows(self, rep: Representation, start: int, stop: int) -> Tensor:
        return rep.kept_distance_rows(start, stop, upper=True)


@dataclass(frozen=True)
class Gaussian:
    """exp(-distance² / 2 (bandwidth * median distance)²)."""

    bandwidth: float

    def prepare(self, rep: Representation) -> None:
        median_distance(rep)

    def rows(self, rep: Representation, start: int, stop: int) -> Tensor:
        width = self.bandwidth * median_distance(rep)
        squares = rep.squared_distance_rows(start, stop, upper=True)
        return squares.mul_(-0.5 / width**2).exp_()


def median_distance(rep: Representation) -> float:
    """Median over pairs of different rows; over 2,000 evenly spaced rows where n x n does not fit."""

    def compute() -> float:
        rep.size  # noqa: B018  refuses a constant representation
        step = 1 if rep.workspace.keeps_squares(rep.n) else -(-rep.n // 2000)
        chosen = torch.arange(0, rep.n, step)
        rows = rep.centred_neurons[chosen]
        distances = torch.pdist(rows) if step > 1 else condensed(rep, rep.kept_distance_rows)
        return float(distances.median())

    return rep.kept("median distance", compute)


def condensed(rep: Representation, rows: Callable[[int, int], Tensor]) -> Tensor:
    """The part of an n x n matrix above its diagonal as one vector, row after row."""
    n = rep.n
    rep.workspace.reserve(8 * n * n // 2)
    out = torch.empty(n * (n - 1) // 2, dtype=rep.values.dtype, device=rep.values.device)
    position = 0
    for start, stop in rep.blocks(4):
        block = rows(start, stop)
        for i in range(start, stop):
            out[position : position + n - 1 - i] = block[i - start, i + 1 :]
            position += n - 1 - i
    return out


@dataclass
class Table:
    """Inner products of one kernel: of pairs, and each network's row sums and diagonal."""

    inner: dict[tuple[int, int], float] = field(default_factory=dict)
    sums: dict[int, Tensor] = field(default_factory=dict)
    diagonals: dict[int, Tensor] = field(default_factory=dict)

    def dot(self, a: Representation, b: Representation) -> float:
        found = self.inner.get((a.key, b.key))
        return found if found is not None else self.inner[b.key, a.key]

    def centred(self, a: Representation, b: Representation) -> float:
        """<HKH, HLH> with H the centring matrix: n² times the biased HSIC."""
        n = a.n
        r, s = self.sums[a.key], self.sums[b.key]
        return self.dot(a, b) - 2 / n * float(r @ s) + float(r.sum() * s.sum()) / n**2

    def unbiased(self, a: Representation, b: Representation) -> float:
        """n (n - 3) times the unbiased HSIC of Song et al. 2012: diagonals left out."""
        n = a.n
        p, q = self.diagonals[a.key], self.diagonals[b.key]
        r, s = self.sums[a.key] - p, self.sums[b.key] - q
        inner = self.dot(a, b) - float(p @ q)
        return inner + float(r.sum() * s.sum()) / ((n - 1) * (n - 2)) - 2 / (n - 2) * float(r @ s)


def fill(
    table: Table,
    kernel: Kernel,
    left: Sequence[Representation],
    right: Sequence[Representation] = (),
) -> None:
    """Inner products of every left network with every left and right one, in one pass over rows."""
    everyone = [*left, *right]
    for rep in everyone:
        kernel.prepare(rep)
    first = everyone[0]
    # made beforehand: small tensors kept between large ones that come and go would scatter the heap
    margins = {
        rep.key: torch.zeros(2, rep.n, dtype=rep.mean.dtype, device=rep.mean.device)
        for rep in everyone
    }
    products = torch.zeros(len(left), len(everyone), dtype=torch.float64)
    for start, stop in first.blocks(2 * len(everyone)):
        blocks = [kernel.rows(rep, start, stop) for rep in everyone]
        if blocks[0].ndim == 1:
            products += _products(blocks, len(left))
            continue
        for rep, block in zip(everyone, blocks, strict=True):
            _add_margins(margins[rep.key], block, start, stop)
        # all but the square on the diagonal stands for its mirror image too
        products += 2 * _products(blocks, len(left))
        products -= _products([block[:, : stop - start] for block in blocks], len(left))
    for i, a in enumerate(left):
        for j, b in enumerate(everyone):
            table.inner[a.key, b.key] = float(products[i, j])
    for key, (sums, diagonal) in margins.items():
        table.sums[key], table.diagonals[key] = sums, diagonal


def _add_margins(margins: Tensor, block: Tensor, start: int, stop: int) -> None:
    """Add what rows from the diagonal on say of the sums of all rows and of the diagonal."""
    sums, diagonal = margins
    mirrored = block[:, stop - start :]
    sums[start:stop] += block.sum(dim=1)
    sums[stop:] += block.new_ones(stop - start) @ mirrored
    diagonal[start:stop] = block.diagonal()


def _products(blocks: list[Tensor], left: int) -> Tensor:
    """Inner products of the first `left` blocks with all, without copying them into one matrix."""
    rows = [block.reshape(-1) for block in blocks]
    if len(rows) == 2 == left:
        a, b = rows
        both = a @ b
        return torch.stack([torch.stack([a @ a, both]), torch.stack([both, b @ b])]).cpu().double()
    step = 1 << 16
    total = torch.zeros(left, len(rows), dtype=rows[0].dtype, device=rows[0].device)
    for i in range(0, rows[0].numel(), step):
        matrix = torch.stack([row[i : i + step] for row in rows])
        total += matrix[:left] @ matrix.T
    return total.cpu().double()
