"""n x n matrices of a network whose inner products with other networks' are all a measure needs.

Over m networks the inner products of all pairs are one product of m long vectors. It is taken a few rows
of the matrices at a time, so the matrices never have to stand in memory together, or at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from likewise.errors import UndefinedError
from likewise.measures.algebra import hsic1, large_empty
from likewise.measures.representation import Representation
from likewise.measures.workspace import SMALL, quantity

ROUNDING = 64  # units of rounding that turning the rows may leave in them
CROWDED = 1e-6  # share of the rows' squares below which squared distances lack digits
BINS = 1 << 16


class Kernel(Protocol):
    """A matrix a network has over the probe; equal kernels share their inner products."""

    def prepare(self, rep: Representation) -> object:
        """What the rows are made from, computed before several networks' rows are held at once."""

    def rows(self, rep: Representation, start: int, stop: int) -> Tensor:
        """Some rows from column `start` on, the rest being its mirror image; not to be changed.

        Or what stands for those rows in one vector.
        """

    def __hash__(self) -> int: ...


@dataclass(frozen=True)
class Linear:
    """Inner products of the centred rows; `exact` asks for double precision whatever was given."""

    exact: bool = False

    def prepare(self, rep: Representation) -> Tensor:
        """Compute what the rows of a representation are made from."""
        return rep.centred_neurons

    def rows(self, rep: Representation, start: int, stop: int) -> Tensor:
        """Some rows of X Xᵀ, columns from `start` on."""
        return rep.gram_rows(start, stop, upper=True)


@dataclass(frozen=True)
class Distance:
    """Euclidean distances between rows."""

    def prepare(self, rep: Representation) -> Tensor:
        """Compute what the rows of a representation are made from."""
        return rep.squares

    def rows(self, rep: Representation, start: int, stop: int) -> Tensor:
        """Some rows of the distances, columns from `start` on."""
        return rep.shared_distance_rows(start, stop, upper=True)


@dataclass(frozen=True)
class Gaussian:
    """exp(-distance² / 2 (bandwidth * median distance)²) - 1.

    Centring takes the 1 off anyway; with it, a wide bandwidth would leave few digits of the rest.
    """

    bandwidth: float

    def prepare(self, rep: Representation) -> float:
        """Compute what the rows of a representation are made from."""
        return median_distance(rep)

    def rows(self, rep: Representation, start: int, stop: int) -> Tensor:
        """Some rows of exp(-|x - y|² / 2w²) - 1, columns from `start` on."""
        width = self.bandwidth * median_distance(rep)
        squares = _squares(rep, start, stop)
        return squares.mul_(-0.5 / width**2).expm1_()


@quantity(permuted="same")
def median_distance(rep: Representation) -> float:
    """Median over pairs of different rows, the mean of the middle two where they are even in number."""
    rep.refuse_constant(closely=True)
    pairs = rep.n * (rep.n - 1) // 2
    if rep.workspace.keeps_squares(rep.n):
        squares = upper_triangle(rep, rep.squared_distance_rows).cpu().numpy()
        squares.partition(((pairs - 1) // 2, pairs // 2))
        low, high = float(squares[(pairs - 1) // 2]), float(squares[pairs // 2])
    else:
        low, later = _ranked_squares(rep, (pairs - 1) // 2)
        high = low if pairs % 2 else later
    if high <= _rounding_square(rep):
        raise UndefinedError(
            f"more than half of the pairs of inputs are equal in {rep.name}, so its distances "
            "have no scale. Use cka, or show the networks inputs that differ."
        )
    if _crowded(rep, high) and rep.workspace.keeps_squares(rep.n):
        found = torch.pdist(rep.values).sort().values
        return float(found[(pairs - 1) // 2] + found[pairs // 2]) / 2
    return (low**0.5 + high**0.5) / 2


def _crowded(rep: Representation, square: float) -> bool:
    """Whether half of the squared distances are so small beside the rows that a product has lost digits."""
    return square < CROWDED * 2 * float(rep.squares.median())


def _squares(rep: Representation, start: int, stop: int) -> Tensor:
    """Squared distances of some rows from the diagonal on, by differences where those are small."""
    if not _crowded(rep, median_distance(rep) ** 2):
        return rep.squared_distance_rows(start, stop, upper=True)
    exact = "donot_use_mm_for_euclid_dist"
    return torch.cdist(rep.values[start:stop], rep.values[start:], compute_mode=exact).square_()


def _rounding_square(rep: Representation) -> float:
    """The squared distance that rounding may leave between two inputs that are equal."""
    eps = ROUNDING * torch.finfo(rep.mean.dtype).eps
    return 2 * eps * float(rep.squares.median()) + (eps * rep.norm) ** 2 / rep.n


def _ranked_squares(rep: Representation, rank: int) -> tuple[float, float]:
    """The squared distance of a rank (from 0) and the next, by counting in ever narrower bins."""
    low, high = 0.0, 4 * float(rep.squares.max()) * (1 + 1e-9)
    while True:
        below, counts = 0, torch.zeros(BINS, dtype=torch.float64)
        for squares in _pairwise_squares(rep):
            below += int((squares < low).sum())
            inside = squares[(squares >= low) & (squares <= high)]
            counts += torch.histc(inside, BINS, low, high).cpu()
        place = int(torch.searchsorted(counts.cumsum(0), rank - below, right=True))
        step = (high - low) / BINS
        # a bin to either side too, since edges are rounded
        low, high = low + (place - 1) * step, low + (place + 2) * step
        if 8 * float(counts[max(0, place - 1) : place + 2].sum()) <= rep.workspace.limit // 64:
            return _between(rep, low, high, rank)
        if step <= 1e-14 * high or high <= _rounding_square(rep):  # the rest differs by rounding only
            last = below + int(counts[: place + 2].sum()) - 1
            return high, high if rank < last else _ranked_squares(rep, rank + 1)[0]


def _between(rep: Representation, low: float, high: float, rank: int) -> tuple[float, float]:
    """The squared distance of a rank, known to lie between two numbers, and the next."""
    below, after, found = 0, float("inf"), []
    for squares in _pairwise_squares(rep):
        below += int((squares < low).sum())
        found.append(squares[(squares >= low) & (squares <= high)])
        beyond = squares[squares > high]
        after = min(after, float(beyond.min()) if beyond.numel() else after)
    values = [*torch.cat(found).sort().values[rank - below :][:2].tolist(), after]
    return values[0], values[1]


def _pairwise_squares(rep: Representation) -> Iterator[Tensor]:
    """Squared distances of all pairs, some rows at a time."""
    for start, stop in rep.blocks(6):
        block = rep.squared_distance_rows(start, stop, upper=True)
        yield block[torch.ones_like(block, dtype=torch.bool).triu_(1)]


def distinct(points: Tensor) -> tuple[Tensor, Tensor]:
    """The different rows of a matrix, and which of them each row is."""
    rows, place = np.unique(points.cpu().numpy(), axis=0, return_inverse=True)
    found = torch.from_numpy(rows), torch.from_numpy(place.reshape(-1))
    return found[0].to(points.device), found[1].to(points.device)


def squares_by_difference(kinds: tuple[Tensor, Tensor], rows: Tensor) -> Tensor:
    """Squared distances from some rows to all, to the last digit: no large numbers are subtracted.

    Many times slower than a matrix product, but equal rows are looked at once.
    """
    points, place = kinds
    chosen, which = torch.unique(place[rows], return_inverse=True)
    lengths = torch.cdist(points[chosen], points, compute_mode="donot_use_mm_for_euclid_dist")
    return lengths.square_()[which][:, place]


def directions(rep: Representation, centred: bool = False) -> Tensor:
    """The rows at length 1, if `centred` without their means over neurons; zero rows stay zero."""
    rows, lengths = rep.values, rep.norms
    if centred:
        means, lengths = rep._row_profile
        rows = rows - means[:, None]
    return rows / torch.where(lengths > 0, lengths, torch.inf)[:, None]


def upper_triangle(rep: Representation, rows: Callable[[int, int], Tensor]) -> Tensor:
    """The part of an n x n matrix above its diagonal as one vector, row after row."""
    n = rep.n
    if n <= SMALL:
        whole = rows(0, n)
        return whole[torch.ones_like(whole, dtype=torch.bool).triu_(1)]
    rep.workspace.reserve(8 * n * n // 2)
    out = large_empty(1, n * (n - 1) // 2, rep.values)[0]
    position, place = 0, _plain(out)
    for start, stop in rep.blocks(4):
        block = _plain(rows(start, stop))
        for i in range(start, stop):
            place[position : position + n - 1 - i] = block[i - start, i + 1 :]
            position += n - 1 - i
    return out


def _plain(tensor: Tensor) -> Any:
    """The numbers as numpy sees them, whose slices cost less, where they are on the CPU."""
    return tensor.numpy() if tensor.device.type == "cpu" else tensor


@dataclass
class InnerProducts:
    """Inner products of one kernel: of pairs, and each network's row sums and diagonal."""

    inner: dict[tuple[int, int], float] = field(default_factory=dict)
    sums: dict[int, np.ndarray] = field(default_factory=dict)
    diagonals: dict[int, np.ndarray] = field(default_factory=dict)

    def dot(self, a: Representation, b: Representation) -> float:
        """The inner product of two kernel matrices, in either order."""
        found = self.inner.get((a.key, b.key))
        return found if found is not None else self.inner[b.key, a.key]

    def centred(self, a: Representation, b: Representation) -> float:
        """<HKH, HLH> with H the centring matrix: n² times the biased HSIC."""
        n = a.n
        r, s = self.sums[a.key], self.sums[b.key]
        return self.dot(a, b) - 2 / n * float(r @ s) + float(r.sum() * s.sum()) / n**2

    def unbiased(self, a: Representation, b: Representation) -> float:
        """n (n - 3) times HSIC1, the unbiased HSIC of Song et al. 2012: diagonals left out."""
        p, q = self.diagonals[a.key], self.diagonals[b.key]
        r, s = self.sums[a.key] - p, self.sums[b.key] - q
        return hsic1(self.dot(a, b) - float(p @ q), float(r @ s), float(r.sum() * s.sum()), a.n)


def fill(
    table: InnerProducts,
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
    margins = {rep.key: torch.zeros(2, rep.n, dtype=rep.mean.dtype, device=rep.mean.device) for rep in everyone}
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
    for key, margin in margins.items():
        table.sums[key], table.diagonals[key] = margin.cpu().double().numpy()


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
