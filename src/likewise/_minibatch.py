"""Debiased CKA of many layer pairs, batch by batch, in one pass.

The whole-data value needs every layer's n × n Gram matrix at once. A batch needs only its own:
HSIC1 (Song et al. 2012) is an unbiased estimate of HSIC from however few inputs, so that its mean
over batches nears the whole-data value (Nguyen et al. 2021, arXiv:2010.15327). The ratio is taken
once, of those means; a mean of ratios would be biased. Batches count by their inputs, so that a
short last one adds no noise.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from likewise.errors import InputError, UndefinedError

SMALLEST = 4  # HSIC1 divides by n - 3


class MinibatchCKA:
    """Sums of HSIC1 over batches: between layers of two networks, and of each layer with itself."""

    def __init__(self) -> None:
        self._sums: tuple[Tensor, Tensor, Tensor] | None = None

    def add(self, a: Iterable[Tensor], b: Iterable[Tensor] | None) -> None:
        """One batch: rows of every layer of `a` and of `b`, the same inputs in the same order."""
        left = torch.stack([centred_gram(rows) for rows in a])
        right = left if b is None else torch.stack([centred_gram(rows) for rows in b])
        n = left.shape[-1]
        x, y = left.flatten(1), right.flatten(1)
        weight = n / (n * (n - 3))
        cross, own = (x @ y.T) * weight, (x * x).sum(dim=1) * weight
        other = own if b is None else (y * y).sum(dim=1) * weight
        if self._sums is not None:
            cross, own, other = (
                old + new for old, new in zip(self._sums, (cross, own, other), strict=True)
            )
        self._sums = (cross, own, other)

    def values(self) -> Tensor:
        """HSIC1(a, b) / √(HSIC1(a, a) · HSIC1(b, b)), layers of `a` by layers of `b`."""
        if self._sums is None:
            raise InputError("the data gave no inputs. Pass at least four.")
        cross, own, other = self._sums
        norm = (own[:, None] * other[None, :]).sqrt()
        return torch.where(norm > 0, cross / norm, torch.nan)


def centred_gram(rows: Tensor) -> Tensor:
    """The U-centred Gram matrix `(n, n)` of rows `(n, d)`: HSIC1 is a product of two of them.

    Diagonal 0, K_ij - r_i - r_j + s off it, where r_i = Σ_j K_ij / (n - 2) and
    s = Σ_ij K_ij / ((n - 1)(n - 2)). Shifts of the columns do not change it, so they are taken out
    before the product, where they would cost digits.
    """
    n = len(rows)
    if n < SMALLEST:
        raise UndefinedError(
            f"debiased CKA is not defined for a batch of {n} inputs. Use batches of at least 4."
        )
    rows = rows - rows.mean(dim=0)
    gram = (rows @ rows.T).double()
    gram.fill_diagonal_(0)
    sums = gram.sum(dim=1) / (n - 2)
    total = gram.sum() / ((n - 1) * (n - 2))
    gram -= sums[:, None]
    gram -= sums[None, :]
    gram += total
    return gram.fill_diagonal_(0)
