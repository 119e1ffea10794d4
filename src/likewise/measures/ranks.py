"""Ranks of all row correlations of a network: what RSA compares.

The ranks are kept centred and of norm 1, so that Spearman's correlation of two networks is their inner
product. Sorting n²/2 numbers is the costly part and happens once per network.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from likewise.errors import UndefinedError
from likewise.measures.kernels import condensed
from likewise.measures.representation import Representation


@dataclass(frozen=True)
class Ranks:
    """Centred ranks of the correlations above the diagonal, as a kernel given by rows."""

    def prepare(self, rep: Representation) -> None:
        rank_vector(rep)

    def rows(self, rep: Representation, start: int, stop: int) -> Tensor:
        """The piece of the vector that belongs to these rows."""
        ranks, n = rank_vector(rep), rep.n
        first, last = (i * (2 * n - i - 1) // 2 for i in (start, stop))
        return ranks[first:last]


def rank_vector(rep: Representation) -> Tensor:
    """Ranks of the row correlations over pairs i < j, ties averaged, centred, of norm 1."""
    return rep.kept("ranks", lambda: _rank_vector(rep))


def _rank_vector(rep: Representation) -> Tensor:
    pairs = rep.n * (rep.n - 1) // 2
    small = 8 * 4 * pairs <= rep.workspace.limit // 2
    rep.workspace.reserve(pairs * (32 if small else 12))
    similarities = condensed(rep, rep.correlation_rows if small else _rounding(rep))
    array = similarities.cpu().numpy()
    ranks = average_ranks(array) if small else _ranks_in_place(array, rep)
    ranks -= ranks.dtype.type((array.size + 1) / 2)
    norm = np.sqrt(sum(float(np.square(part, dtype=np.float64).sum()) for part in _parts(ranks)))
    if norm <= 1e-9 * array.size:
        raise UndefinedError(
            f"all inputs are equally correlated in {rep.name} (its width is {rep.d}), so their order "
            "is undefined. Use a wider layer, or a measure other than rsa."
        )
    ranks /= ranks.dtype.type(norm)
    return torch.from_numpy(ranks).to(similarities.device)


def _rounding(rep: Representation) -> Callable[[int, int], Tensor]:
    """Correlations without their rounding noise: what is equal in exact arithmetic ties."""
    return lambda start, stop: rep.correlation_rows(start, stop).mul_(1e12).round_().mul_(1e-12)


def average_ranks(array: np.ndarray) -> np.ndarray:
    """Ranks from 1 of numbers in [-1, 1], those equal to about 1e-12 sharing their mean rank.

    A number and its place share one integer, the number in the high bits: sorting plain integers is many
    times faster than sorting an index.
    """
    bits = max(1, int(array.size - 1).bit_length())
    scale = 2.0 ** min(61 - bits, 40)
    keys = np.rint(np.clip(array, -1, 1) * scale).astype(np.int64)
    keys <<= bits
    keys |= np.arange(array.size)
    keys.sort()
    order = keys & ((1 << bits) - 1)
    keys >>= bits
    positions = np.arange(1, array.size + 1, dtype=np.float64)
    _share(positions, keys[1:] == keys[:-1])
    ranks = np.empty_like(positions)
    ranks[order] = positions
    return ranks


def _share(positions: np.ndarray, tied: np.ndarray) -> None:
    """Give every run of tied places its mean; `tied[i]` says that places i and i + 1 tie."""
    places = np.flatnonzero(tied)
    if not places.size:
        return
    breaks = np.flatnonzero(np.diff(places) > 1)
    starts, stops = places[np.append(0, breaks + 1)], places[np.append(breaks, -1)] + 2
    lengths = stops - starts
    runs = np.repeat(starts - np.append(0, lengths.cumsum()[:-1]), lengths) + np.arange(
        lengths.sum()
    )
    positions[runs] = np.repeat((starts + 1 + stops) / 2, lengths)


def _ranks_in_place(array: np.ndarray, rep: Representation) -> np.ndarray:
    """The same in a third of the memory: sort the only copy, then look each number up again."""
    array.sort()
    n, position, rows = rep.n, 0, _rounding(rep)
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


def _parts(array: np.ndarray, size: int = 1 << 22) -> list[np.ndarray]:
    return [array[i : i + size] for i in range(0, array.size, size)]


class Square:
    """The rank vector laid out as an n x n matrix, so that a permutation of the inputs is an index."""

    def __init__(self, rep: Representation) -> None:
        vector, n = rank_vector(rep), rep.n
        self.matrix = torch.zeros(n, n, dtype=vector.dtype, device=vector.device)
        position = 0
        for i in range(n - 1):
            self.matrix[i, i + 1 :] = vector[position : position + n - 1 - i]
            position += n - 1 - i
        self.matrix += self.matrix.T.clone()
        self.upper = torch.ones(n, n, dtype=torch.bool, device=vector.device).triu_(1)

    @staticmethod
    def of(rep: Representation) -> Square:
        return rep.kept("rank square", lambda: Square(rep))

    def taken(self, index: Tensor) -> Tensor:
        """The rank vector with the inputs in another order."""
        return self.matrix[index][:, index][self.upper]
