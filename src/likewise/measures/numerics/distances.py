"""Distances between the rows of a network: their median, directions, and squares to the last digit.

A squared distance from a matrix product has lost digits where rows lie close together beside their size: what needs
those digits takes differences instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
from torch import Tensor

from likewise.errors import UndefinedError
from likewise.measures.representation import Representation
from likewise.measures.workspace import quantity

ROUNDING = 64  # units of rounding that turning the rows may leave in them
CROWDED = 1e-6  # share of the rows' squares below which squared distances lack digits
BINS = 1 << 16


@quantity(permuted="same")
def median_distance(rep: Representation) -> float:
    """Median over pairs of different rows, the mean of the middle two where they are even in number."""
    rep.refuse_constant(closely=True)
    pairs = rep.n * (rep.n - 1) // 2
    if rep.workspace.keeps_squares(rep.n):
        rows = partial(rep.squared_distance_rows, again=True)  # whoever asks for the median reads them next
        squares = upper_triangle(rep, rows).cpu().numpy()
        squares.partition(((pairs - 1) // 2, pairs // 2))
        low, high = float(squares[(pairs - 1) // 2]), float(squares[pairs // 2])
    else:
        low, later = _ranked_squares(rep, (pairs - 1) // 2)
        high = low if pairs % 2 else later
    if high <= _rounding_square(rep):
        rep.require_double()
        raise UndefinedError(
            f"more than half of the pairs of inputs are equal in {rep.name}, so its distances "
            "have no scale. Use cka, or show the networks inputs that differ."
        )
    if _crowded(rep, high):
        rep.require_double()
    if _crowded(rep, high) and rep.workspace.keeps_squares(rep.n):
        lengths = torch.pdist(rep.values).sort().values
        return float(lengths[(pairs - 1) // 2] + lengths[pairs // 2]) / 2
    return (low**0.5 + high**0.5) / 2


def _crowded(rep: Representation, square: float) -> bool:
    """Whether half of the squared distances are so small beside the rows that a product has lost digits."""
    return square < rep.close(CROWDED) * 2 * float(rep.squares.median())


def careful_squares(rep: Representation, start: int, stop: int) -> Tensor:
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
        bin_ = int(torch.searchsorted(counts.cumsum(0), rank - below, right=True))
        step = (high - low) / BINS
        # a bin to either side too, since edges are rounded
        low, high = low + (bin_ - 1) * step, low + (bin_ + 2) * step
        if 8 * float(counts[max(0, bin_ - 1) : bin_ + 2].sum()) <= rep.workspace.limit // 64:
            return _between(rep, low, high, rank)
        if step <= rep.close(1e-14) * high or high <= _rounding_square(rep):  # the rest differs by rounding only
            last = below + int(counts[: bin_ + 2].sum()) - 1
            return high, high if rank < last else _ranked_squares(rep, rank + 1)[0]


def _between(rep: Representation, low: float, high: float, rank: int) -> tuple[float, float]:
    """The squared distance of a rank, known to lie between two numbers, and the next."""
    below, after, between = 0, float("inf"), []
    for squares in _pairwise_squares(rep):
        below += int((squares < low).sum())
        between.append(squares[(squares >= low) & (squares <= high)])
        beyond = squares[squares > high]
        after = min(after, float(beyond.min()) if beyond.numel() else after)
    values = [*torch.cat(between).sort().values[rank - below :][:2].tolist(), after]
    return values[0], values[1]


def _pairwise_squares(rep: Representation) -> Iterator[Tensor]:
    """Squared distances of all pairs, some rows at a time."""
    for start, stop in rep.blocks(6):
        block = rep.squared_distance_rows(start, stop, upper=True)
        yield block[torch.ones_like(block, dtype=torch.bool).triu_(1)]


def distinct(points: Tensor) -> tuple[Tensor, Tensor]:
    """The different rows of a matrix, and which of them each row is."""
    rows, which = np.unique(points.cpu().numpy(), axis=0, return_inverse=True)
    return torch.from_numpy(rows).to(points.device), torch.from_numpy(which.reshape(-1)).to(points.device)


def squares_by_difference(kinds: tuple[Tensor, Tensor], rows: Tensor) -> Tensor:
    """Squared distances from some rows to all, to the last digit: no large numbers are subtracted.

    Many times slower than a matrix product, but equal rows are computed once.
    """
    points, which = kinds
    needed, row_of = torch.unique(which[rows], return_inverse=True)
    lengths = torch.cdist(points[needed], points, compute_mode="donot_use_mm_for_euclid_dist")
    return lengths.square_()[row_of][:, which]


def directions(rep: Representation, centred: bool = False) -> Tensor:
    """The rows at length 1, if `centred` without their means over neurons; zero rows stay zero."""
    rows, lengths = rep.values, rep.norms
    if centred:
        means, lengths = rep._row_profile
        rows = rows - means[:, None]
    return rows / torch.where(lengths > 0, lengths, torch.inf)[:, None]


def upper_triangle(rep: Representation, rows: Callable[[int, int], Tensor]) -> Tensor:
    """The entries of an n x n matrix above its diagonal as one vector, row after row."""
    n, position = rep.n, 0
    rep.workspace.reserve(8 * n * n // 2)
    out = rep.values.new_empty(n * (n - 1) // 2)
    for start, stop in rep.blocks(4):
        block = rows(start, stop)
        above = torch.cat([block[i - start, i + 1 :] for i in range(start, stop)])
        out[position : position + above.numel()] = above
        position += above.numel()
    return out
