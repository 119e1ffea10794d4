"""Ranks of all row correlations of a network: what RSA compares.

The ranks are kept centred and of norm 1, so that Spearman's correlation of two networks is their inner
product. Sorting n²/2 numbers is the costly part and happens once per network.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from likewise.errors import UndefinedError
from likewise.measures.numerics.distances import directions, distinct, squares_by_difference, upper_triangle
from likewise.measures.representation import Representation
from likewise.measures.workspace import quantity

CROWDED = 1e-6  # correlations nearer to 1 than this have few digits left to tell them apart


@dataclass(frozen=True)
class CorrelationRanks:
    """Centred ranks of the correlations above the diagonal, as a kernel given by rows."""

    def prepare(self, rep: Representation) -> Tensor:
        """Compute the ranks of a representation."""
        return rank_vector(rep)

    def rows(self, rep: Representation, start: int, stop: int) -> Tensor:
        """The piece of the vector that belongs to these rows."""
        ranks, n = rank_vector(rep), rep.n
        first, last = (i * (2 * n - i - 1) // 2 for i in (start, stop))
        return ranks[first:last]


def _permute(rep: Representation, ranks: Tensor, index: Tensor) -> Tensor:
    if rep.workspace.keeps_squares(rep.n):
        return rank_matrix(rep)[index][:, index][_above_diagonal(rep)]
    moved, stop = torch.empty_like(ranks), 0
    for i in range(rep.n - 1):
        low, high = torch.minimum(index[i], index[i + 1 :]), torch.maximum(index[i], index[i + 1 :])
        start, stop = stop, stop + len(low)
        moved[start:stop] = ranks[low * (2 * rep.n - low - 1) // 2 + high - low - 1]
    return moved


@quantity(permuted=_permute)
def rank_vector(rep: Representation) -> Tensor:
    """Ranks of the row correlations over pairs i < j, ties averaged, centred, of norm 1."""
    pairs = rep.n * (rep.n - 1) // 2
    small = 40 * pairs <= rep.workspace.limit // 2
    rep.workspace.reserve(pairs * (40 if small else 12))
    rows = rep.correlation_rows if small else _rounded(rep.correlation_rows)
    array = upper_triangle(rep, rows).cpu().numpy()
    crowded = _crowded(rep, array)
    if crowded:
        del array
        rows = _opposite_chords(rep) if small else _rounded(_opposite_chords(rep))
        array = upper_triangle(rep, rows).cpu().numpy()
    if not small:
        ranks = _ranks_in_place(array, rep, rows)
    elif crowded:
        ranks = _ranks_by_gaps(array)
    else:
        ranks = average_ranks(array)
    square = 0.0
    for _, chunk in _chunks(ranks):
        chunk -= ranks.dtype.type((ranks.size + 1) / 2)
        square += float(np.square(chunk, dtype=np.float64).sum())
    norm = math.sqrt(square)
    if norm <= 1e-9 * ranks.size:
        raise UndefinedError(
            f"all inputs are equally correlated in {rep.name} (its width is {rep.d}), so their order "
            "is undefined. Use a wider layer, or a measure other than rsa."
        )
    ranks /= ranks.dtype.type(norm)
    return torch.from_numpy(ranks).to(rep.values.device)


def _crowded(rep: Representation, correlations: np.ndarray) -> bool:
    """Whether one pair in a hundred, of rows that are not the same, is too near to 1."""
    few = correlations.size // 100
    near = int(np.count_nonzero(correlations > 1 - CROWDED))
    if near <= few:
        return False
    counts = _kinds(rep)[1].bincount()
    return near - int((counts * (counts - 1) // 2).sum()) > few


@quantity
def _kinds(rep: Representation) -> tuple[Tensor, Tensor]:
    return distinct(directions(rep, centred=True))


def _rounded(rows: Callable[[int, int], Tensor]) -> Callable[[int, int], Tensor]:
    """The same without rounding noise: what is equal in exact arithmetic ties."""
    return lambda start, stop: rows(start, stop).mul_(1e12).round_().mul_(1e-12)


def _opposite_chords(rep: Representation) -> Callable[[int, int], Tensor]:
    """-|r - r'| of rows centred and at length 1: in the order of correlations r r' = 1 - |r - r'|² / 2.

    It has digits where correlations crowd near 1.
    """
    spread = rep._row_profile[1]
    kinds = _kinds(rep)

    def rows(start: int, stop: int) -> Tensor:
        squares = squares_by_difference(kinds, torch.arange(start, stop, device=spread.device))
        squares[:, spread == 0] = 2  # a row constant over neurons has correlation 0 with every other
        squares[spread[start:stop] == 0] = 2
        return squares.sqrt_().neg_()

    return rows


def _ranks_by_gaps(array: np.ndarray) -> np.ndarray:
    """Ranks from 1, those sharing their mean that differ from the next by rounding only."""
    order = np.argsort(array)
    values = array[order]
    in_order = np.arange(1, array.size + 1, dtype=np.float64)
    positions, means = _shared_ranks(np.flatnonzero(np.diff(values) <= 1e-13 + 1e-12 * np.abs(values[1:])))
    in_order[positions] = means
    ranks = np.empty_like(in_order)
    ranks[order] = in_order
    return ranks


def average_ranks(array: np.ndarray) -> np.ndarray:
    """Ranks from 1 of numbers in [-1, 1], those equal to about 1e-12 sharing their mean rank; written over them.

    A number and its index share one integer, the number in the high bits: sorting plain integers is many times faster
    than sorting an index. Chunks that fit in the cache save passes over memory.
    """
    keys = np.empty(array.size, dtype=np.int64)
    bits = max(1, int(array.size - 1).bit_length())
    scale = 2.0 ** min(61 - bits, 40)
    for start, chunk in _chunks(array):
        key = keys[start : start + chunk.size]
        key[:] = np.rint(np.clip(chunk, -1, 1) * scale)
        key <<= bits
        key |= np.arange(start, start + chunk.size)
    keys.sort()
    tied = [start + np.flatnonzero(np.diff(chunk >> bits) == 0) for start, chunk in _chunks(keys, overlap=1)]
    for start, chunk in _chunks(keys):
        chunk &= (1 << bits) - 1
        array[chunk] = np.arange(start + 1, start + 1 + chunk.size, dtype=np.float64)
    positions, means = _shared_ranks(np.concatenate(tied))
    array[keys[positions]] = means
    return array


def _shared_ranks(tied: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The positions of tied runs with the mean rank of each run; position i + 1 ties with every i of `tied`."""
    if not tied.size:
        return tied, tied.astype(np.float64)
    breaks = np.flatnonzero(np.diff(tied) > 1)
    starts, stops = tied[np.append(0, breaks + 1)], tied[np.append(breaks, -1)] + 2
    lengths = stops - starts
    runs = np.repeat(starts - np.append(0, lengths.cumsum()[:-1]), lengths) + np.arange(lengths.sum())
    return runs, np.repeat((starts + 1 + stops) / 2, lengths)


def _ranks_in_place(array: np.ndarray, rep: Representation, rows: Callable[[int, int], Tensor]) -> np.ndarray:
    """The same in a third of the memory: sort the only copy, then look each number up again."""
    array.sort()
    n, position = rep.n, 0
    ranks = np.empty(array.size, dtype=np.float32)
    for start, stop in rep.blocks(4):
        block = rows(start, stop).cpu().numpy()
        for i in range(start, stop):
            row = block[i - start, i + 1 :]
            order = np.argsort(row)  # ordered look-ups stay in the cache
            low, high = (np.searchsorted(array, row[order], side) for side in ("left", "right"))
            ranks[position : position + n - 1 - i][order] = (low + high + 1) / 2
            position += n - 1 - i
    return ranks


def _chunks(array: np.ndarray, size: int = 1 << 17, overlap: int = 0) -> Iterator[tuple[int, np.ndarray]]:
    """Pieces of a vector that fit in the cache, each with where it starts."""
    return ((start, array[start : start + size + overlap]) for start in range(0, array.size, size))


@quantity
def rank_matrix(rep: Representation) -> Tensor:
    """The rank vector as a symmetric n x n matrix, so that a permutation of the inputs is an index."""
    ranks = rank_vector(rep)
    matrix = ranks.new_zeros(rep.n, rep.n)
    matrix[_above_diagonal(rep)] = ranks
    return matrix + matrix.T


@quantity
def _above_diagonal(rep: Representation) -> Tensor:
    return torch.ones(rep.n, rep.n, dtype=torch.bool, device=rep.values.device).triu_(1)
