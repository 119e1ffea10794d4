"""Debiased CKA of many layer pairs, batch by batch, in one pass.

The whole-data value needs every layer's n × n Gram matrix at once. A batch needs only its own:
HSIC1 (Song et al. 2012) is an unbiased estimate of HSIC from however few inputs, so that its mean
over batches nears the whole-data value (Nguyen et al. 2021, arXiv:2010.15327). The ratio is taken
once, of those means; a mean of ratios would be biased. Batches count by their inputs, so that a
short last one adds no noise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from likewise.errors import InputError, UndefinedError

SMALLEST_BATCH = 4  # HSIC1 divides by n - 3


@dataclass(frozen=True)
class Side:
    """Layers of one network on one batch: U-centred Gram matrices `(layers, n, n)`, and `numbers` `(3, layers)`:
    the squares of the rows, of what is left of them without their mean, and of the matrix before its row means
    were taken off; and the rounding of the rows' type."""

    grams: Tensor
    numbers: Tensor
    eps: Tensor

    @classmethod
    def of(cls, layers: Iterable[Tensor]) -> Side:
        """From the rows of every layer."""
        grams, numbers, eps = [], [], []
        for rows in layers:
            gram, *facts = centred_gram(rows)
            grams.append(gram)
            numbers.append(facts)
            eps.append(torch.finfo(rows.dtype).eps)
        return cls(torch.stack(grams), torch.tensor(numbers, dtype=torch.float64).T, torch.tensor(eps))

    def sums(self, weight: float) -> Tensor:
        """What adds up over batches, `(5, layers)`: HSIC1 with itself, its terms and scale, and the squares."""
        own = torch.linalg.vector_norm(self.grams, dim=(1, 2)).square().cpu() * weight
        squares, spread, rest = self.numbers
        terms = (own / weight + rest) / self.grams.shape[-1]
        return torch.stack([own, terms, spread.square() * weight, squares, spread])


class MinibatchCKA:
    """Sums of HSIC1 over batches: between layers of two networks, and of each layer with itself."""

    def __init__(self) -> None:
        self.n = 0
        self._sums: list[Tensor] = []
        self._eps: list[Tensor] = []

    def add(self, a: Iterable[Tensor], b: Iterable[Tensor] | None) -> None:
        """One batch: rows of every layer of `a` and of `b`, the same inputs in the same order."""
        left = Side.of(a)
        right = left if b is None else Side.of(b)
        n = left.grams.shape[-1]
        weight = 1 / (n - 3)  # n for the inputs, over the n (n - 3) of HSIC1
        cross = (left.grams.flatten(1) @ right.grams.flatten(1).T) * weight
        new = [cross.cpu(), left.sums(weight), right.sums(weight)]
        self._sums = [o + v for o, v in zip(self._sums, new, strict=True)] if self._sums else new
        self._eps = [left.eps, right.eps]
        self.n += n

    @property
    def cross(self) -> Tensor:
        """The sum of HSIC1(a, b), layers of `a` by layers of `b`."""
        if not self._sums:
            raise InputError("the data gave no inputs. Pass at least four.")
        return self._sums[0]

    @property
    def own(self) -> list[tuple[Tensor, Tensor]]:
        """Of `a` and of `b`: the sum of HSIC1 of every layer with itself, and of the terms it is a rest of."""
        return [(side[0], side[1]) for side in self._sums[1:]]

    def values(self) -> Tensor:
        """HSIC1(a, b) / √(HSIC1(a, a) · HSIC1(b, b)), layers of `a` by layers of `b`.

        NaN where a layer has nothing to compare: `faults` says why.
        """
        cross, ((left, _), (right, _)) = self.cross, self.own
        values = cross / (left.sqrt()[:, None] * right.sqrt()[None, :])
        sound = [torch.tensor([not fault for fault in side]) for side in self.faults()]
        return torch.where(sound[0][:, None] & sound[1][None, :], values, torch.nan)

    def faults(self) -> list[list[str]]:
        """Why a layer of either network has no value with any other; empty where it has."""
        return [
            [self._fault(*numbers) for numbers in zip(*side[[0, 2, 3, 4]].tolist(), eps.tolist(), strict=True)]
            for side, eps in zip(self._sums[1:], self._eps, strict=True)
        ]

    def _fault(self, own: float, scale: float, squares: float, spread: float, eps: float) -> str:
        if spread <= (2 * eps) ** 2 * squares:
            return (
                f"is constant: all {self.n} rows are the same, so there is nothing to compare. Look at another layer."
            )
        if own <= (4 * eps) ** 2 * scale:
            return (
                "finds all inputs equally alike but for rounding, so there is nothing to compare. "
                "Look at another layer, or show more inputs."
            )
        return ""


def centred_gram(rows: Tensor) -> tuple[Tensor, float, float, float]:
    """The U-centred Gram matrix `(n, n)` of rows `(n, d)`: HSIC1 is a product of two of them.

    Diagonal 0, K_ij - r_i - r_j + s off it, where r_i = Σ_j K_ij / (n - 2) and
    s = Σ_ij K_ij / ((n - 1)(n - 2)). Shifts of the columns do not change it, so they are taken out
    before the product, where they would cost digits. Beside it sums of squares: of the rows as
    they came, of the rows without their mean, and of r_i + r_j - s, i ≠ j.
    """
    n = len(rows)
    if n < SMALLEST_BATCH:
        raise UndefinedError(f"debiased CKA is not defined for a batch of {n} inputs. Use batches of at least 4.")
    gram, shift = _products(rows if rows.dtype == torch.float64 else rows.float())
    spread = float(gram.diagonal().sum())
    gram.fill_diagonal_(0)
    sums = gram.sum(dim=1) / (n - 2)
    total = sums.sum() / (n - 1)
    gram -= sums[:, None]
    gram -= sums[None, :] - total
    halves = sums - total / 2
    rest = 2 * (n - 2) * float(halves.square().sum()) + 2 * float(halves.sum()) ** 2
    return gram.fill_diagonal_(0), spread + n * shift, spread, rest


def _products(rows: Tensor) -> tuple[Tensor, float]:
    """Inner products of the rows without their mean, in double, and the square of that mean.

    Single precision is two to three times as fast and holds them to seven digits, unless they are
    too large or too small for it, or so near to one another that the mean's own rounding shows.
    """
    mean = rows.mean(dim=0)
    centred = rows - mean
    gram = (centred @ centred.T).double()
    shift = float(mean.double().square().sum())
    if rows.dtype == torch.float64:
        return gram, shift
    spread = float(gram.diagonal().sum())
    apart = spread > 1e-30 * rows.numel() and spread > 1e-8 * len(rows) * shift
    if apart and bool(gram.sum().isfinite()):
        return gram, shift
    return _products(rows.double())
