"""n x n matrices of a network whose inner products with other networks' are all a measure needs.

Over m networks the inner products of all pairs are one product of m long vectors. It is taken a few rows
of the matrices at a time, so the matrices never have to be in memory together, or at all. Of a symmetric matrix only
the half above the diagonal is multiplied.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from likewise._base.arrays import Array
from likewise.measures.numerics.algebra import hsic1, symmetric, tolerance
from likewise.measures.numerics.distances import careful_squares, median_distance
from likewise.measures.representation import Representation

BLOCK = 2**27  # bytes of the rows of all networks that are multiplied at a time
ROWS = 64  # of a matrix at a time where there is room: fewer make slow products
CHUNK = 2**11  # products summed up in single precision before the sum continues in double
FEW = 32  # networks whose products take no time beside their matrices
TILE_SECONDS = 2.0  # what a tile of inner products may take in a worker
ENTRY_SECONDS = 1e-8  # of an entry of an n x n matrix, for one network of a tile


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

    def among(self, reps: Sequence[Representation]) -> Linear:
        """The kernel in the precision that serves all of some networks."""
        return self if self.exact or all(rep.uses_float32 for rep in reps) else Linear(exact=True)

    def prepare(self, rep: Representation) -> Tensor:
        """What the rows of a network are computed from."""
        return rep.centred_neurons if self.exact or not rep.uses_float32 else rep.float32_centred

    def rows(self, rep: Representation, start: int, stop: int) -> Tensor:
        """Some rows of X Xᵀ, columns from `start` on."""
        if self.exact:
            return rep.gram_rows(start, stop, upper=True)
        return rep.float32_centred[start:stop] @ rep.float32_centred[start:].T


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
    sums: dict[int, Array] = field(default_factory=dict)
    diagonals: dict[int, Array] = field(default_factory=dict)

    def dot(self, a: Representation, b: Representation) -> float:
        """The inner product of two kernel matrices, in either order."""
        product = self.inner.get((a.key, b.key))
        return product if product is not None else self.inner[b.key, a.key]

    def centred(self, a: Representation, b: Representation) -> float:
        """<HKH, HLH> with H the centring matrix: n² times the biased HSIC."""
        return float(_centred(self.dot(a, b), self.sums[a.key], self.sums[b.key]))

    def unbiased(self, a: Representation, b: Representation) -> float:
        """n (n - 3) times HSIC1, the unbiased HSIC of Song et al. 2012: diagonals left out."""
        sums, diagonals = ([of[rep.key] for rep in (a, b)] for of in (self.sums, self.diagonals))
        return float(_unbiased(self.dot(a, b), *sums, *diagonals))


@dataclass(frozen=True)
class Margins:
    """What networks bring alone to inner products: those with themselves, (m,), row sums and diagonals, (m, n)."""

    dot: Array
    sums: Array
    diagonals: Array
    exponents: Array

    @cached_property
    def centred(self) -> Array:
        """n² times the biased HSIC of each network with itself."""
        return np.array([_centred(dot, r, r) for dot, r in zip(self.dot, self.sums, strict=True)])

    @cached_property
    def unbiased(self) -> Array:
        """n (n - 3) times HSIC1 of each network with itself."""
        networks = zip(self.dot, self.sums, self.diagonals, strict=True)
        return np.array([_unbiased(dot, r, r, p, p) for dot, r, p in networks])


@dataclass(frozen=True)
class Products:
    """Inner products of the matrices of some networks with those of others, (left, right)."""

    dot: Array
    left: Margins
    right: Margins
    dtype: torch.dtype = torch.float64  # that the networks are prepared in

    @property
    def n(self) -> int:
        """How many inputs the networks saw."""
        return int(self.left.sums.shape[1])

    def close(self, in_double: float) -> float:
        """A tolerance made for double precision, at the precision of the networks."""
        return tolerance(in_double, self.dtype)

    @property
    def centred(self) -> Array:
        """n² times the biased HSIC."""
        return _centred(self.dot, self.left.sums, self.right.sums)

    @property
    def unbiased(self) -> Array:
        """n (n - 3) times HSIC1."""
        left, right = self.left, self.right
        return _unbiased(self.dot, left.sums, right.sums, left.diagonals, right.diagonals)


def roots(left: Array, right: Array) -> Array:
    """Roots of the products of two numbers, one of each side, (left, right)."""
    return np.multiply.outer(np.sqrt(left), np.sqrt(right))


def _centred(dot: Array | float, r: Array, s: Array) -> Array:
    """<HKH, HLH> from <K, L> and row sums, of one pair or of all pairs of two sets of networks."""
    n = r.shape[-1]
    return dot - 2 / n * (r @ s.T) + np.multiply.outer(r.sum(-1), s.sum(-1)) / n**2


def _unbiased(dot: Array | float, r: Array, s: Array, p: Array, q: Array) -> Array:
    """The same of HSIC1, which also takes the diagonals."""
    r, s = r - p, s - q
    return hsic1(dot - p @ q.T, r @ s.T, np.multiply.outer(r.sum(-1), s.sum(-1)), r.shape[-1])


def fill(table: InnerProducts, kernel: Kernel, reps: Sequence[Representation]) -> None:
    """Inner products of some networks, each with each."""
    products = multiply(kernel, reps)
    for i, a in enumerate(reps):
        table.sums[a.key], table.diagonals[a.key] = products.left.sums[i], products.left.diagonals[i]
        for j, b in enumerate(reps):
            table.inner[a.key, b.key] = float(products.left.dot[i] if i == j else products.dot[i, j])


def multiply(kernel: Kernel, left: Sequence[Representation], right: Sequence[Representation] = ()) -> Products:
    """Inner products of every left network with every right one, else with every left one, in one pass over rows."""
    everyone = [*left, *right]
    kernel = kernel.among(everyone) if isinstance(kernel, Linear) else kernel
    for rep in everyone:
        kernel.prepare(rep)
    m, n, count = len(everyone), everyone[0].n, len(left)
    dot, squares, (sums, diagonals) = np.zeros((count, len(right) or count)), np.zeros(m), np.zeros((2, m, n))
    for start, stop in _row_ranges(everyone):
        rows, share = _rows(kernel, everyone, start, stop), 1
        if rows.ndim == 3:
            share = 2  # for the mirror image
            if not isinstance(kernel, Linear):  # whose sums are 0
                sums[:, start:stop] += rows.sum(dim=2).cpu().numpy()
                sums[:, stop:] += rows[:, :, stop - start :].sum(dim=1).cpu().numpy()
            diagonals[:, start:stop] = rows.diagonal(dim1=1, dim2=2).cpu().numpy()
            rows[:, :, : stop - start].triu_(1)
            rows = rows.flatten(1)
        dot += share * row_products(rows[:count], rows[count:])
        squares += share * torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64).square_().cpu().numpy()
    squares += (diagonals * diagonals).sum(axis=1)
    exponents = np.array([rep.exponent for rep in everyone])
    margins = [Margins(squares[i], sums[i], diagonals[i], exponents[i]) for i in (slice(count), slice(count, None))]
    one, other = margins if right else (margins[0], margins[0])
    return Products(dot + one.diagonals @ other.diagonals.T, one, other, everyone[0].dtype)


def group_size(n: int, d: int, limit: int, *, single: bool = False) -> int:
    """How many networks fit into memory two groups at a time: their values, some rows, and the inner products."""
    values = limit // 4 // ((6 if single else 24) * n * d)
    rows = min(limit // 8, BLOCK) // (8 * n * ROWS // 4)
    return max(1, min(values, rows, math.isqrt(limit // 256)))


def group_count(networks: int, n: int, workers: int, *, kernels: int = 1, alone: bool = True) -> int:
    """In how many groups workers take networks, every two a tile; few, since each tile computes its matrices again.

    Args:
        networks: How many networks.
        n: How many inputs they saw.
        workers: How many there are; each gets some tiles, if there is no other work.
        kernels: How many kinds of matrices are multiplied.
        alone: Whether there is no other work.
    """
    seconds = 2 * networks * kernels * n * n * ENTRY_SECONDS
    return max(math.isqrt(2 * workers) if alone else 1, math.ceil(seconds / TILE_SECONDS))


def first_rows(kernel: Kernel, reps: Sequence[Representation]) -> tuple[Tensor, float]:
    """The first rows that are multiplied, and how many times as much all of them are."""
    kernel = kernel.among(reps) if isinstance(kernel, Linear) else kernel
    n, ranges = reps[0].n, list(_row_ranges(reps))
    rows = _rows(kernel, reps, *ranges[0])
    if rows.ndim < 3:
        return rows, len(ranges)
    entries = sum((stop - start) * (n - start) for start, stop in ranges)
    return rows.flatten(1), entries / rows[0].numel()


def _row_ranges(reps: Sequence[Representation]) -> Iterator[tuple[int, int]]:
    """Ranges of rows of which there is room for all networks."""
    n, m, workspace = reps[0].n, len(reps), reps[0].workspace
    most = max(1, min(workspace.limit // 8, BLOCK) // (8 * n * m))
    step = min(most, max(ROWS, workspace.block(n, 2 * m)))
    return ((start, min(start + step, n)) for start in range(0, n, step))


def _rows(kernel: Kernel, reps: Sequence[Representation], start: int, stop: int) -> Tensor:
    """Some rows of the matrices of all networks, from column `start` on, as one tensor."""
    first = kernel.rows(reps[0], start, stop)
    single = isinstance(kernel, Linear) and not kernel.exact
    rows = first.new_empty(len(reps), *first.shape, dtype=torch.float32 if single else torch.float64)
    rows[0] = first
    for i, rep in enumerate(reps[1:], 1):
        rows[i] = kernel.rows(rep, start, stop)
    return rows


def row_products(left: Tensor, right: Tensor) -> Array:
    """Inner products of the rows of two matrices, or of one, long sums of which are made in double precision."""
    if len(left) + len(right) < FEW:
        left, right = left.double(), right.double()
    step = CHUNK if left.dtype == torch.float32 else max(1, left.shape[1])
    total = np.zeros((len(left), len(right) or len(left)))
    for columns in (slice(i, i + step) for i in range(0, left.shape[1], step)):
        part = left[:, columns] @ right[:, columns].T if len(right) else symmetric(left[:, columns])
        total += part.cpu().numpy()
    return total
