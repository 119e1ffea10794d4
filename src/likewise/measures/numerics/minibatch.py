"""Debiased CKA of many layer pairs, batch by batch, in one pass.

The whole-data value needs every layer's n × n Gram matrix at once. A batch needs only its own:
HSIC1 (Song et al. 2012) is an unbiased estimate of HSIC from however few inputs, so that its mean
over batches nears the whole-data value (Nguyen et al. 2021, arXiv:2010.15327). The ratio is taken
once, of those means; a mean of ratios would be biased. Batches count by their inputs, so that a
short last one adds no noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from likewise._base.machine import on_precise_device
from likewise.errors import InputError, UndefinedError

SMALLEST_BATCH = 4  # HSIC1 divides by n - 3


class Side(NamedTuple):
    """Layers of one network on one batch: their U-centred Gram matrices, `(layers, n, n)`, what `centred_gram` gives
    beside each of them, `(layers, 5)`, and the rounding of the rows' type."""

    grams: Tensor
    numbers: np.ndarray
    eps: list[float]

    @classmethod
    def of(cls, layers: Iterable[Tensor]) -> Side:
        """From the rows of every layer."""
        layers = list(layers)
        grams, numbers = zip(*map(centred_gram, layers), strict=True)
        whole = torch.stack(grams) if len(grams) > 1 else grams[0][None]  # one needs no copy
        return cls(whole, np.array(numbers), [torch.finfo(rows.dtype).eps for rows in layers])


class Grams:
    """Gram matrices of a network's layers on one batch, summed over parts of their columns as these come."""

    def __init__(self, names: Sequence[str]) -> None:
        self._index = {name: index for index, name in enumerate(names)}
        self._shifts = [0.0] * len(names)
        self._eps = [0.0] * len(names)
        self._whole: Tensor | None = None

    def add(self, name: str, rows: Tensor) -> None:
        """Columns of a layer: all, or some of them."""
        (gram, shift), index = products(rows), self._index[name]
        if self._whole is None:
            self._whole = gram.new_zeros(len(self._index), *gram.shape)
        self._whole[index] += gram
        self._shifts[index] += shift
        self._eps[index] = torch.finfo(rows.dtype).eps

    def side(self) -> Side:
        """All layers, in place: nothing may be added afterwards."""
        assert self._whole is not None  # a network has at least one layer
        numbers = [centre(gram, shift) for gram, shift in zip(self._whole, self._shifts, strict=True)]
        return Side(self._whole, np.array(numbers), self._eps)


class MinibatchCKA:
    """Sums of HSIC1 over batches: between layers of two networks, and of each layer with itself.

    Args:
        shuffles: How many times inputs of the second network are also shuffled, within batches, for all layers alike.
        seed: Draws the shuffles.
    """

    def __init__(self, shuffles: int = 0, seed: int = 0) -> None:
        self.n = 0
        self._shuffles, self._seed = shuffles, seed
        self._null: Tensor | float = 0.0
        self._cross: Tensor | None = None
        self._sums: list[np.ndarray] = []
        self._eps: list[list[float]] = []

    def add(self, a: Iterable[Tensor], b: Iterable[Tensor] | None, *, rows_per_input: int = 1) -> None:
        """One batch: rows of every layer of `a` and of `b`, the same inputs in the same order."""
        self.add_sides(Side.of(a), None if b is None else Side.of(b), rows_per_input=rows_per_input)

    def add_sides(self, left: Side, other: Side | None = None, *, rows_per_input: int = 1) -> None:
        """One batch, as its Gram matrices."""
        right = left if other is None else other
        n = left.grams.shape[-1]
        weight = 1 / (n - 3)  # n for the inputs, over the n (n - 3) of HSIC1
        grams = right.grams.to(left.grams.device)  # the networks may be on two devices
        cross = (left.grams.flatten(1) @ grams.flatten(1).T).cpu() * weight
        sums = [side.numbers * [weight, weight, weight, 1, 1] for side in (left, right)]
        if self._cross is None:
            self._cross, self._sums = cross, sums
        else:
            self._cross += cross
            self._sums = [total + new for total, new in zip(self._sums, sums, strict=True)]
        if self._shuffles:
            self._null = self._null + self._shuffled(left.grams, grams, rows_per_input) * weight
        self._eps = [left.eps, right.eps]
        self.n += n

    def _shuffled(self, left: Tensor, right: Tensor, rows_per_input: int) -> Tensor:
        """HSIC1(a, b) times its divisor with the inputs of `b` in other orders, `(shuffles, layers, layers)`."""
        rng = np.random.default_rng([self._seed, self.n])
        rows = torch.arange(left.shape[-1], device=left.device).reshape(-1, rows_per_input)
        products = []
        for _ in range(self._shuffles):
            order = rows[torch.from_numpy(rng.permutation(len(rows))).to(left.device)].flatten()
            moved = right.index_select(1, order).index_select(2, order)
            products.append((left.flatten(1) @ moved.flatten(1).T).cpu())
        return torch.stack(products)

    @property
    def cross(self) -> Tensor:
        """The sum of HSIC1(a, b), layers of `a` by layers of `b`."""
        if self._cross is None:
            raise InputError("the data gave no inputs. Pass at least four.")
        return self._cross

    @property
    def self_sums(self) -> list[np.ndarray]:
        """Of `a` and of `b`: sums of HSIC1 of a layer with itself, and of the terms it is made of, `(layers, 2)`."""
        return [side[:, :2] for side in self._sums]

    def values(self) -> Tensor:
        """HSIC1(a, b) / √(HSIC1(a, a) · HSIC1(b, b)), layers of `a` by layers of `b`.

        NaN where a layer has nothing to compare: `faults` says why.
        """
        return self._ratios(self.cross)

    def nulls(self) -> Tensor:
        """The same of shuffled inputs, `(shuffles, layers of a, layers of b)`."""
        return self._ratios(torch.as_tensor(self._null))

    def _ratios(self, cross: Tensor) -> Tensor:
        left, right = (torch.from_numpy(side[:, 0]).sqrt() for side in self.self_sums)
        sound = [torch.tensor([not fault for fault in side]) for side in self.faults()]
        return torch.where(sound[0][:, None] & sound[1][None, :], cross / (left[:, None] * right[None, :]), torch.nan)

    def faults(self) -> list[list[str]]:
        """Why a layer of either network has no value with any other; empty where it has."""
        return [
            [self._fault(*layer) for layer in zip(side.tolist(), eps, strict=True)]
            for side, eps in zip(self._sums, self._eps, strict=True)
        ]

    def _fault(self, numbers: Sequence[float], eps: float) -> str:
        hsic, _, scale, squares, spread = numbers
        if spread <= (2 * eps) ** 2 * squares:
            return (
                f"is constant: all {self.n} rows are the same, so there is nothing to compare. Look at another layer."
            )
        if hsic <= (4 * eps) ** 2 * scale:
            return (
                "finds all inputs equally alike but for rounding, so there is nothing to compare. "
                "Look at another layer, or show more inputs."
            )
        return ""


def centred_gram(rows: Tensor) -> tuple[Tensor, tuple[float, ...]]:
    """The U-centred Gram matrix U `(n, n)` of rows `(n, d)`: HSIC1 is a product of two of them.

    Diagonal 0, K_ij - r_i - r_j + s off it, where r_i = Σ_j K_ij / (n - 2) and
    s = Σ_ij K_ij / ((n - 1)(n - 2)). Shifts of the columns do not change it, so they are taken out
    before the product, where they would cost digits. Beside it sums of squares: of U, of K off its
    diagonal, of K's trace, of the rows as they came and of the rows without their mean.
    """
    gram, shift = products(rows)
    return gram, centre(gram, shift)


def products(rows: Tensor) -> tuple[Tensor, float]:
    """Inner products of the rows without their mean, in double, and the square of that mean: sums over columns."""
    if len(rows) < SMALLEST_BATCH:
        raise UndefinedError(
            f"debiased CKA is not defined for a batch of {len(rows)} inputs. Use batches of at least 4."
        )
    return _products(rows if rows.dtype == torch.float64 else rows.float())


def centre(gram: Tensor, shift: float) -> tuple[float, ...]:
    """U-centre inner products in place, and return what `centred_gram` gives beside them."""
    n = len(gram)
    spread = float(gram.diagonal().sum())
    gram.fill_diagonal_(0)
    sums = gram.sum(dim=1) / (n - 2)
    total = sums.sum() / (n - 1)
    gram -= sums[:, None]
    gram -= sums - total
    flat = gram.fill_diagonal_(0).view(-1)
    hsic = float(flat @ flat)
    halves = sums - total / 2  # U and r_i + r_j - s are orthogonal, so their squares add up to those of K
    rest = 2 * (n - 2) * float(halves @ halves) + 2 * float(halves.sum().square())
    return hsic, hsic + rest, spread * spread, spread + n * shift, spread


def _products(rows: Tensor) -> tuple[Tensor, float]:
    """Inner products of the rows without their mean, in double, and the square of that mean.

    Single precision is two to three times as fast and holds them to seven digits, unless they are
    too large or too small for it, or so near to one another that the mean's own rounding shows.
    """
    mean = rows.mean(dim=0)
    centred = rows - mean
    gram = on_precise_device(centred @ centred.T).double()
    shift = float(on_precise_device(mean).double().square().sum())
    if rows.dtype == torch.float64:
        return gram, shift
    spread = float(gram.diagonal().sum())
    apart = spread > 1e-30 * rows.numel() and spread > 1e-8 * len(rows) * shift
    if apart and bool(gram.sum().isfinite()):
        return gram, shift
    return _products(on_precise_device(rows).double())
