"""SAI: how far two class similarity matrices agree, and how far they would by chance.

The diagonal is dropped and what is left is scaled to [0, 1], each matrix by itself, before they are compared. The
published index, the cosine, is high for anything: with WordNet's CIFAR-100 matrix a constant scores 0.76 and random
weights 0.74. So every alignment knows its chance levels, its calibrated value, and what permuting the classes gives.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.ndimage import gaussian_filter

from likewise.classes.from_sources import cosines
from likewise.classes.similarity import ClassSimilarity, same_classes
from likewise.errors import InputError, UnknownNameError, did_you_mean

DECIMALS = 9  # entries that differ by less are ties: BLAS splits equal cosines in the last digit


class Scaled:
    """A matrix ready to be aligned: off-diagonal entries scaled to [0, 1], zeros on the diagonal.

    What a metric needs of one matrix alone is computed once, so that a fixed reference costs nothing
    from the second epoch on. A constant matrix becomes all zeros, one with undefined entries all NaN.
    """

    def __init__(self, values: np.ndarray) -> None:
        grid = np.array(values, dtype=np.float64)
        np.fill_diagonal(grid, grid[0, 1])
        low, high = grid.min(), grid.max()
        if high - low <= 10.0**-DECIMALS * max(-low, high):  # a constant and its rounding
            grid[:] = high = low
        grid -= low
        grid /= high - low if high > low else 1.0
        np.fill_diagonal(grid, 0.0 if np.isfinite(low) else np.nan)
        self.grid, self.pairs = grid, grid.size - len(grid)

    @cached_property
    def energy(self) -> float:
        """The sum of squares of the entries."""
        return float(np.vdot(self.grid, self.grid))

    @cached_property
    def mean(self) -> float:
        """The mean over pairs of classes."""
        return float(self.grid.sum() / self.pairs)

    @cached_property
    def variance(self) -> float:
        """The variance over pairs of classes."""
        return self.energy / self.pairs - self.mean**2

    @cached_property
    def ranked(self) -> Scaled:
        """The ranks of the entries, ties sharing theirs, scaled in turn."""
        from scipy.stats import rankdata  # slow to import, and needed for one metric

        grid, c = np.round(self.grid, DECIMALS), len(self.grid)
        if np.isnan(grid).any():
            return self
        ranks = np.zeros_like(grid)
        if np.array_equal(grid, grid.T):  # both triangles hold the same order
            upper = np.triu_indices(c, 1)
            ranks[upper] = rankdata(grid[upper])
            ranks += ranks.T
        else:
            off = ~np.eye(c, dtype=bool)
            ranks[off] = rankdata(grid[off])
        return Scaled(ranks)

    @cached_property
    def blurred(self) -> np.ndarray:
        """The local mean at every entry."""
        return _blur(self.grid)

    @cached_property
    def spread(self) -> np.ndarray:
        """The local variance at every entry."""
        return _blur(self.grid**2) - self.blurred**2

    def reordered(self, order: np.ndarray) -> Scaled:
        """The same matrix with its classes in another order."""
        other = object.__new__(Scaled)
        other.grid, other.pairs = self.grid[np.ix_(order, order)], self.pairs
        return other


def _blur(grid: np.ndarray) -> np.ndarray:
    """An 11 x 11 Gaussian window of sigma 1.5, mirrored at the border."""
    return gaussian_filter(grid, sigma=1.5, truncate=3.5, mode="mirror")


class Both:
    """Two matrices side by side, and the inner product that most metrics are made of."""

    def __init__(self, a: Scaled, b: Scaled) -> None:
        self.a, self.b, self.pairs = a, b, a.pairs

    @cached_property
    def product(self) -> float:
        """The sum of products of the entries."""
        return float(np.vdot(self.a.grid, self.b.grid))


def cosine(both: Both) -> float:
    """Σ a·b / √(Σ a² Σ b²) over pairs of classes; undefined where a matrix is 0."""
    norm = np.sqrt(both.a.energy * both.b.energy)
    return float(both.product / norm) if norm > 0 else np.nan


def pearson(both: Both) -> float:
    """Correlation over pairs of classes; undefined where a matrix does not vary."""
    spread = both.a.variance * both.b.variance
    if not spread > 1e-24:
        return np.nan
    return float((both.product / both.pairs - both.a.mean * both.b.mean) / np.sqrt(spread))


def spearman(both: Both) -> float:
    """Correlation of the ranks over pairs of classes."""
    return pearson(Both(both.a.ranked, both.b.ranked))


def mse(both: Both) -> float:
    """Mean squared difference over pairs of classes."""
    gap = (both.a.energy + both.b.energy - 2 * both.product) / both.pairs
    return float(np.maximum(0.0, gap))  # max() would make 0 of NaN


def mae(both: Both) -> float:
    """Mean absolute difference over pairs of classes."""
    gaps = both.a.grid - both.b.grid
    return float(np.abs(gaps, out=gaps).sum() / both.pairs)


def ssim(both: Both) -> float:
    """Structural similarity (Wang et al. 2004) with range 1, averaged over the whole mirrored map."""
    a, b = both.a, both.b
    c1, c2 = 0.01**2, 0.03**2
    product = a.blurred * b.blurred
    shared = _blur(a.grid * b.grid) - product
    top = (2 * product + c1) * (2 * shared + c2)
    return float((top / (a.blurred**2 + b.blurred**2 + c1) / (a.spread + b.spread + c2)).mean())


METRICS = {function.__name__: function for function in (cosine, ssim, mse, mae, pearson, spearman)}
DISTANCES = ("mse", "mae")


class Chance(NamedTuple):
    """What an alignment would be without any agreement."""

    constant: float  # that of a matrix of one value throughout (cosine only, else NaN)
    random: float  # the mean over weights drawn from a normal distribution


class Alignment(float):
    """An alignment: a float that knows its metric, its chance levels, and how unlikely it is.

    `calibrated` is 0 where random weights are and 1 at full agreement. `z` and `p` come from permuting
    the classes of the first matrix, or of the second where WordNet's comes first.

    Attributes:
        a: The first matrix.
        b: The second matrix.
        metric: What compared them.
        permutations: How many times classes are permuted.
        seed: The seed of permutations and of random weights.
    """

    a: ClassSimilarity
    b: ClassSimilarity
    metric: str
    permutations: int
    seed: int
    _scaled: tuple[Scaled, Scaled]

    @property
    def _turned(self) -> bool:
        """Whether the reference comes first."""
        return self.a.kind == "wordnet" and self.b.kind != "wordnet"

    @cached_property
    def chance(self) -> Chance:
        """The levels of a constant matrix and of random weights in place of the network's."""
        other = self.b if self._turned else self.a
        width = int(other.about.get("width", 512))
        return chance(self._scaled[0 if self._turned else 1], self.metric, width=width, seed=self.seed)

    @property
    def calibrated(self) -> float:
        """The alignment on a scale where chance is 0 and perfect is 1."""
        return calibrated(float(self), self.metric, self.chance.random)

    @cached_property
    def _permuted(self) -> np.ndarray:
        """The same index with the classes of the matrix in question in random orders.

        The reference keeps its order: with kin apart it would be another picture to SSIM, and noise
        would agree better with the one than with the other.
        """
        metric, (moved, fixed) = METRICS[self.metric], self._scaled[:: -1 if self._turned else 1]
        if self.metric == "spearman":  # ranks move with their classes
            metric, moved, fixed = pearson, moved.ranked, fixed.ranked
        draw = np.random.default_rng(self.seed)
        orders = (draw.permutation(len(fixed.grid)) for _ in range(self.permutations))
        return np.array([metric(Both(moved.reordered(order), fixed)) for order in orders])

    @property
    def z(self) -> float:
        """Standard deviations above the mean of permuted classes, positive for better agreement."""
        spread = self._permuted.std()
        sign = -1 if self.metric in DISTANCES else 1
        return float(sign * (self - self._permuted.mean()) / spread) if spread > 0 else np.nan

    @property
    def p(self) -> float:
        """The share of permutations that agree at least as well, this one counted in."""
        if np.isnan(self):
            return np.nan
        sign = -1 if self.metric in DISTANCES else 1
        better = (sign * self._permuted >= sign * float(self) - 1e-12).sum()
        return float((1 + better) / (1 + self.permutations))

    def __str__(self) -> str:
        pair = f"{self.a.short} with {self.b.short}"
        if np.isnan(self):
            return f"undefined ({self.metric} of {pair}: one of them is constant or has undefined classes)"
        return (
            f"{float(self):.3f} ({self.metric} of {pair}; random weights give {self.chance.random:.3f}, "
            f"calibrated {self.calibrated:.3f}, p = {self.p:.2g})"
        )

    def __repr__(self) -> str:
        return f"Alignment({float(self):.4f}, metric={self.metric!r})"


def alignment(
    a: ClassSimilarity, b: ClassSimilarity, metric: str = "cosine", *, permutations: int = 200, seed: int = 0
) -> Alignment:
    """SAI: how far two class similarity matrices over the same classes agree.

    Off-diagonal entries of each are scaled to [0, 1], then compared by `metric`: cosine (published, high for anything),
    ssim, mse, mae (0 is full agreement), pearson, spearman (0 at chance). Undefined, NaN, where one is constant (the
    confusion of a classifier without mistakes) or has undefined classes. SSIM depends on the order of classes: they are
    put in the order of their WordNet ids where those are known.

    Args:
        a: A class similarity.
        b: Another over the same classes in the same order.
        metric: What compares them.
        permutations: How many times classes are permuted for `z` and `p`.
        seed: The seed of permutations and of random weights.

    Raises:
        InputError: The classes differ, or permutations is below 1.
        UnknownNameError: There is no such metric.

    Example:
        >>> a = ClassSimilarity([[1, 0.9, 0.1], [0.9, 1, 0.2], [0.1, 0.2, 1]])
        >>> alignment(a, a)
        Alignment(1.0000, metric='cosine')
    """
    if metric not in METRICS:
        raise UnknownNameError(
            f"no metric named {metric!r}.{did_you_mean(metric, METRICS)} There are {', '.join(METRICS)}."
        )
    if permutations < 1:
        raise InputError(f"permutations is {permutations}. Give at least 1.")
    same_classes(a, b)
    scaled = Scaled(a.values), Scaled(b.values)
    if metric == "ssim":
        order = semantic_order(a, b)
        scaled = scaled[0].reordered(order), scaled[1].reordered(order)
    value = Alignment(METRICS[metric](Both(*scaled)))
    value.a, value.b, value.metric, value._scaled = a, b, metric, scaled
    value.permutations, value.seed = permutations, seed
    return value


def semantic_order(a: ClassSimilarity, b: ClassSimilarity) -> np.ndarray:
    """Classes sorted by WordNet id where either matrix knows them, else as they are."""
    ids = next((m.ids for m in (a, b) if m.ids is not None), None)
    return np.arange(len(a)) if ids is None else np.argsort(np.array(ids), kind="stable")


def chance(reference: Scaled, metric: str, *, width: int = 512, seed: int = 0) -> Chance:
    """What a constant matrix, and random weights of this width, score with a reference."""
    c = len(reference.grid)
    constant = np.nan
    if metric == "cosine" and reference.energy > 0:
        constant = reference.mean * np.sqrt(reference.pairs / reference.energy)
    draw, draws = np.random.default_rng(seed), 20 if c <= 200 else 5
    names = [""] * c
    matrices = (Scaled(cosines(draw.normal(size=(c, width)), names, "")) for _ in range(draws))
    levels = [METRICS[metric](Both(matrix, reference)) for matrix in matrices]
    return Chance(float(constant), float(np.mean(levels)))


def calibrated(value: float, metric: str, level: float) -> float:
    """A value on the scale from chance, 0, to full agreement, 1."""
    if metric in DISTANCES:
        return 1 - value / level
    return (value - level) / (1 - level)
