"""A search by cosine: the vectors of items, those of queries, and how much of one search another one finds.

Neighbour lists of measures are among the inputs themselves; here queries may be other vectors than the items, and of
another model than they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from likewise.matrices.shares import wilson

TIE = 1e-12  # cosines that differ by less differ by rounding
BLOCK = 1 << 23  # cosines computed together


@dataclass(frozen=True)
class Recall:
    """A mean share over queries, with its 95 % interval over other queries.

    Attributes:
        value: The share.
        low: The lower end of the interval.
        high: The upper end.

    Example:
        >>> print(Recall(0.5, 0.45, 0.55))
        0.50 [0.45, 0.55]
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"

    @classmethod
    def of(cls, shares: Tensor) -> Recall:
        """The mean of one share per query.

        Wilson's interval, for as many queries as would have this variance if each share were 0 or 1.
        """
        mean, n = float(shares.mean()), len(shares)
        if spread := float(shares.var()):
            n = max(n, round(n * mean * (1 - mean) / spread))
        return cls(mean, *wilson(mean, n))


@dataclass(frozen=True, eq=False)
class Search:
    """Rows of length 1: items `(n, d)`, queries `(q, d)`, and which item each query is, if they are items."""

    items: Tensor
    queries: Tensor
    own: Tensor | None = None

    def cosines(self, start: int, stop: int) -> Tensor:
        """Of some queries with all items; -inf for a query with itself."""
        near = self.queries[start:stop] @ self.items.T
        if self.own is not None:
            near.scatter_(1, self.own[start:stop, None], -torch.inf)
        return near

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Ranges of queries whose cosines fit into a block."""
        step = max(1, BLOCK // len(self.items))
        for start in range(0, len(self.queries), step):
            yield start, min(start + step, len(self.queries))

    @property
    def others(self) -> int:
        """How many items a query may find."""
        return len(self.items) - (self.own is not None)


def recalls(found: Search, wanted: Search, ks: Sequence[int]) -> dict[int, Recall]:
    """By k, the share of the k nearest in one search that are among the k nearest in another.

    What ties with the k-th nearest counts as among them.
    """
    shares: list[Tensor] = []
    for start, stop in wanted.blocks():
        near = wanted.cosines(start, stop)
        last = near.topk(max(ks), dim=1).values
        scores = near.gather(1, found.cosines(start, stop).topk(max(ks), dim=1).indices)
        shares.append(torch.stack([(scores[:, :k] >= last[:, k - 1, None] - TIE).double().mean(dim=1) for k in ks]))
    return {k: Recall.of(row) for k, row in zip(ks, torch.cat(shares, dim=1), strict=True)}
