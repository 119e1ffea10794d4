"""One network's activations on the probe, and everything that follows from them alone.

Each quantity is computed when first asked for, at most once, and kept in a `Workspace` that may move it
to disk. Three ideas keep the work small:

* `compact`: measures that do not notice a rotation see the activations only through their inner
  products, so a network wider than the probe is long is replaced by an n x n matrix with the same ones.
* One matrix of inner products (`gram_rows`) serves distances, cosines and correlations of rows: they
  differ from it by outer products of vectors.
* What would be n x n is handed out by rows, from a kept matrix if there is room, else made anew.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from likewise.errors import UndefinedError
from likewise.measures.algebra import (
    inverse_of,
    lengths,
    rank_of,
    recentred,
    single_product_norm,
    symmetric,
    whitening,
)
from likewise.measures.workspace import Workspace, quantity
from likewise.views import Activations, Outputs
from likewise.views.activations import column_means, scaled

T = TypeVar("T")
_counter = itertools.count()

CONSTANT = 1e-13  # spread below this share of the norm is rounding
MANY = 1 << 16  # entries from which single precision is worth having
SQUARES = (1e-10, 1e10)  # mean squares whose products have squares within single precision


class Representation:
    """A view prepared for measures.

    All quantities are those of the values divided by 2 ** exponent, which is 1 but where the scale of the
    view is extreme. A measure that does not ignore scale multiplies it back, see `Pair.on_one_scale`.
    """

    def __init__(self, view: Activations, workspace: Workspace | None = None, exponent: int | None = None) -> None:
        self.view = view
        self.workspace = workspace or Workspace()
        self.exponent = view.exponent if exponent is None else exponent
        self.key = next(_counter)

    def at(self, exponent: int) -> Representation:
        """The same view divided by another power of two."""
        return Representation(self.view, self.workspace, exponent)

    def kept(self, name: object, compute: Callable[[], T]) -> T:
        return cast(T, self.workspace.get((self.key, name), compute))

    @property
    def name(self) -> str:
        return self.view.label

    @property
    def values(self) -> Tensor:
        """The activations, (n, d), in the precision of the means: float64 on the CPU."""
        values = cast(Tensor, self.view.values)
        if values.dtype == self.view.mean.dtype and not self.exponent:
            return values
        return self.kept("values", self._converted)

    @property
    def given(self) -> Tensor:
        """`values` in their own units, whatever the scale."""
        return self.at(0).values if self.exponent else self.values

    def _converted(self) -> Tensor:
        values = self.view.values.to(self.view.mean.dtype)
        if not self.exponent:
            return cast(Tensor, values)
        found = scaled(values, -self.exponent)
        if self.exponent == self.view.exponent:
            self._refuse_vanished(values, found)
        return found

    def _refuse_vanished(self, values: Tensor, found: Tensor) -> None:
        """Refuse rows and neurons so small beside the largest that no float holds both."""
        smallest = torch.finfo(found.dtype).tiny
        for axis, what in ((1, "rows"), (0, "neurons")):
            lost = (values != 0).any(dim=axis) & (found.abs().amax(dim=axis) < smallest)
            if bool(lost.any()):
                raise UndefinedError(
                    f"the {what} of {self.name} lie too far apart: {int(lost.sum())} of {lost.numel()} "
                    "vanish beside the largest in any arithmetic. Scale them, or leave them out."
                )

    @property
    def n(self) -> int:
        return self.view.n

    @property
    def d(self) -> int:
        return self.view.d

    @property
    def mean(self) -> Tensor:
        """The mean activation of every neuron, (d,)."""
        if not self.exponent:
            return self.view.mean
        return self.kept("mean", lambda: column_means(self.values))

    @property
    def outputs(self) -> Outputs:
        if self.view.outputs is None:
            raise UndefinedError(
                f"{self.name} carries no outputs. Make it with Activations(..., outputs=Outputs(...))."
            )
        return self.view.outputs

    @quantity
    def single(self) -> tuple[Tensor, Tensor]:
        """The centred values in single precision and their rows' squared norms; or empty.

        For products that are only summed up: rounding of single entries averages out there, and
        products of float32 values are twice as fast in float32. Empty where the network gave more
        digits, where there is nothing to gain, and where squares would leave the range of float32.
        """
        values = cast(Tensor, self.view.values)
        none = self.mean.new_empty(0)
        if values.dtype != torch.float32 or values.numel() < MANY or self.wide or self.exponent:
            return none, none
        mean = self.mean.float()
        rows = values - mean
        if mean.dtype != self.mean.dtype:
            rows -= (self.mean - mean).float()  # what rounding left of the mean
        squares = torch.linalg.vector_norm(rows, dim=1).to(self.mean.dtype).square_()
        fits = SQUARES[0] < float(squares.sum()) / rows.numel() < SQUARES[1]
        return (rows, squares) if fits else (none, none)

    # --- choices among the inputs ---------------------------------------------------------------

    def random_order(self, seed: int) -> np.ndarray:
        """The inputs in an order drawn at random; a part of them keeps the order of the whole."""
        return np.random.default_rng(seed).permutation(self.n)

    def random_sets(self, size: int, count: int, seed: int) -> list[np.ndarray]:
        """`count` random sets of inputs, or all of them, once, if there are no more than `size`."""
        if self.n <= size:
            return [np.arange(self.n)]
        rng = np.random.default_rng(seed)
        return [rng.choice(self.n, size, replace=False) for _ in range(count)]

    def batches(self, size: int) -> list[tuple[int, int]]:
        """The inputs cut into batches: where each begins and ends."""
        return [(i, min(i + size, self.n)) for i in range(0, self.n, size)]

    # --- size and shape -------------------------------------------------------------------------

    @property
    def wide(self) -> bool:
        return self.d > self.n

    @quantity
    def compact(self) -> Tensor:
        """A matrix with the inner products of the values, (n, min(n, d)): Xᵀ = Q R, so X ~ Rᵀ."""
        if not self.wide:
            return self.values
        if self._far:
            return self.centred + self.compact_mean
        return torch.linalg.qr(self.values.T, mode="r").R.T.contiguous()

    @quantity
    def compact_mean(self) -> Tensor:
        if self.wide and self._far:
            return self._turned[:, self.n]
        return self.compact.mean(dim=0) if self.wide else self.mean

    @quantity
    def centred(self) -> Tensor:
        """`compact` with column means taken off."""
        if self.wide and self._far:
            return self._turned[:, : self.n].T.contiguous()
        return self.compact - self.compact_mean

    @quantity
    def _far(self) -> bool:
        """Whether the mean is so large beside the rest that turning both at once would cost digits."""
        return self.norm > 1e6 * float(torch.linalg.vector_norm(self.centred_neurons))

    @quantity
    def _turned(self) -> Tensor:
        """The centred rows and then the mean as columns, turned into their span."""
        both = torch.cat([self.centred_neurons, self.mean[None]])
        return torch.linalg.qr(both.T, mode="r").R

    @quantity
    def _centred_wide(self) -> Tensor:
        return self.values - self.mean

    @property
    def centred_neurons(self) -> Tensor:
        """The values with column means taken off, (n, d): for measures that look at neurons."""
        return cast(Tensor, self._centred_wide if self.wide else self.centred)

    @quantity
    def norm(self) -> float:
        """Frobenius norm of the values."""
        return float(torch.linalg.vector_norm(self.norms))

    @quantity
    def size(self) -> float:
        """Frobenius norm of the centred values; a representation that has none is refused."""
        size = float(torch.linalg.vector_norm(self.centred_neurons))
        if size <= CONSTANT * self.norm or self.norm == 0:
            raise self._constant("the same")
        if size <= self.view.eps * self.norm and not bool(self._varies.any()):
            raise self._constant("the same up to rounding")
        return size

    def refuse_constant(self) -> None:
        """Refuse a network whose rows are all the same: there is nothing to compare."""
        self._not_constant  # noqa: B018

    @quantity
    def _not_constant(self) -> bool:
        squares = self.single[1] if self.single[1].numel() else self.squares
        if float(squares.sum()) > 1e-8 * self.n * float(self.mean @ self.mean):
            return True  # far from constant: there is no need to look closer
        return self.size > 0  # refuses it with the reason

    def _constant(self, how: str) -> UndefinedError:
        return UndefinedError(
            f"{self.name} is constant: all {self.n} rows are {how}, so there is nothing to "
            "compare. Look at another layer."
        )

    @quantity
    def _scales(self) -> Tensor:
        """The norm of every neuron's values, (d,)."""
        return lengths(self.values, dim=0)

    @property
    def _varies(self) -> Tensor:
        """Which neurons vary by more than the rounding of their values."""
        spread = lengths(self.centred_neurons, dim=0)
        return spread > self.view.eps * self._scales

    @property
    def rounding(self) -> float:
        """The largest singular value that rounding the values as they were given makes up.

        Activations are mostly float32 or less: where neurons depend on one another, what is left of
        them in double precision is noise of this size, not directions.
        """
        return self.view.eps * self.norm * (self.n**-0.5 + self.d**-0.5)

    # --- spectrum -------------------------------------------------------------------------------

    @quantity
    def covariance(self) -> Tensor:
        """Xᵀ X of the centred compact values (not divided by n)."""
        return symmetric(self.centred.T)

    @quantity
    def energy(self) -> float:
        """Frobenius norm of `covariance`, which is that of the centred Gram matrix."""
        self.refuse_constant()
        return float(torch.linalg.vector_norm(self.gram if self.wide else self.covariance))

    @quantity
    def single_energy(self) -> float:
        """`energy` from products in single precision."""
        return single_product_norm(self.single[0], self.single[0])

    @quantity
    def spectrum(self) -> tuple[Tensor, Tensor, Tensor]:
        """Singular values, right singular vectors and left basis of the centred values.

        The basis is empty where the whitening V / S may be used in its place: an eigendecomposition of
        the covariance is cheaper than one of the values, but squares their condition. Where that would
        cost digits, the values themselves are decomposed, to the rank of `_span`.
        """
        if self._whitening.numel():
            squares, vectors = torch.linalg.eigh(self.covariance)
            return squares.flip(0).sqrt(), vectors.flip(1), squares.new_empty(0)
        basis, scales, rows = torch.linalg.svd(recentred(self.centred), full_matrices=False)
        rank = self._span.shape[1] if self._uneven_neurons else rank_of(scales, self.rounding, self.n, self.d)
        rank = min(rank, self.n - 1)
        return scales[:rank], rows[:rank].T.contiguous(), basis[:, :rank].contiguous()

    @quantity
    def _whitening(self) -> Tensor:
        self.size  # noqa: B018  refuses a constant representation
        return whitening(self.covariance, self.rounding)

    @quantity
    def _raw_whitening(self) -> Tensor:
        if self.norm == 0:
            raise UndefinedError(f"{self.name} is zero everywhere, so it spans nothing.")
        moment = torch.addr(self.covariance, self.compact_mean, self.compact_mean, alpha=self.n)
        return whitening(moment, self.rounding)

    @quantity
    def _span(self) -> Tensor:
        """Orthonormal basis of the centred neurons, (n, rank)."""
        if not self._uneven_neurons:
            return cast(Tensor, self.spectrum[2])
        neurons = recentred(self.centred_neurons * inverse_of(self._scales) * self._varies)
        return self._spanned(neurons)[:, : self.n - 1]

    @quantity
    def _raw_span(self) -> Tensor:
        """Orthonormal basis of the neurons as they are, (n, rank)."""
        if self._uneven_neurons:
            return self._spanned(self.values * inverse_of(self._scales))
        basis, sizes, _ = torch.linalg.svd(self.compact, full_matrices=False)
        return basis[:, : rank_of(sizes, self.rounding, self.n, self.d)].contiguous()

    def _spanned(self, neurons: Tensor) -> Tensor:
        """The column space of neurons of norm 1, each rounded at its own scale."""
        if self.wide:
            neurons = torch.linalg.qr(neurons.T, mode="r").R.T
        basis, sizes, _ = torch.linalg.svd(neurons, full_matrices=False)
        rounding = self.view.eps * (1 + (self.d / self.n) ** 0.5)
        return basis[:, : rank_of(sizes, rounding, self.n, self.d)].contiguous()

    @quantity
    def _uneven_neurons(self) -> bool:
        """Whether rounding of one neuron may be as large as another is, or nearly."""
        varying = self._scales[self._varies]
        apart = min(1e3, 0.05 / self.view.eps)
        return not varying.numel() or bool(self._scales.max() > apart * varying.min())

    def whitening(self, centred: bool = True) -> Tensor:
        """W with X W orthonormal; empty where X is too near to singular to be whitened so."""
        return cast(Tensor, self._whitening if centred else self._raw_whitening)

    def basis(self, centred: bool = True) -> Tensor:
        """Orthonormal basis of the column space, (n, rank)."""
        white = self.whitening(centred)
        if white.numel():
            return (self.centred if centred else self.compact) @ white
        return cast(Tensor, self._span if centred else self._raw_span)

    @property
    def principal_basis(self) -> Tensor:
        """The left singular vectors of the centred values, (n, rank)."""
        scales, vectors, basis = self.spectrum
        return basis if basis.numel() else self.centred @ (vectors / scales)

    @property
    def rank(self) -> int:
        white = self._whitening
        return int((white if white.numel() else self._span).shape[1])

    # --- rows against rows ----------------------------------------------------------------------

    @quantity
    def gram(self) -> Tensor:
        """Inner products of the centred rows, (n, n). Only where there is room."""
        return symmetric(self.centred_neurons)

    def gram_rows(self, start: int, stop: int, *, upper: bool = False) -> Tensor:
        """Rows of `gram`; if `upper`, only from column `start` on, where the diagonal begins."""
        first = start if upper else 0
        if self._keeps_gram(upper):
            return self.gram[start:stop, first:]
        return self.centred_neurons[start:stop] @ self.centred_neurons[first:].T

    def _keeps_gram(self, upper: bool) -> bool:
        """Whether the whole matrix is worth keeping: not for a single pass over half of it."""
        if not self.workspace.keeps_squares(self.n):
            return False
        single = upper and self.workspace.once
        return not single or self.workspace.find((self.key, "gram")) is not None

    @quantity
    def squares(self) -> Tensor:
        """Squared norms of the centred rows, (n,)."""
        return torch.linalg.vector_norm(self.centred_neurons, dim=1).square_()

    @quantity
    def norms(self) -> Tensor:
        """Norms of the rows as they are, (n,)."""
        return lengths(self.values, dim=1)

    def blocks(self, copies: int = 1) -> Iterator[tuple[int, int]]:
        """Row ranges small enough for `copies` matrices of that many rows and n columns."""
        step = self.workspace.block(self.n, copies)
        return ((i, min(i + step, self.n)) for i in range(0, self.n, step))

    def squared_distance_rows(self, start: int, stop: int, *, upper: bool = False) -> Tensor:
        """Squared Euclidean distances from some rows to all, a matrix the caller may change."""
        first = start if upper else 0
        products = self.gram_rows(start, stop, upper=upper)
        block = torch.add(self.squares[first:], products, alpha=-2)
        block += self.squares[start:stop, None]
        block.clamp_(min=0)
        block.diagonal(start - first).zero_()
        return block

    def distance_rows(self, start: int, stop: int, *, upper: bool = False) -> Tensor:
        """Euclidean distances from some rows to all."""
        return self.squared_distance_rows(start, stop, upper=upper).sqrt_()

    @quantity
    def distances(self) -> Tensor:
        """All Euclidean distances, (n, n). Only where there is room."""
        return self.gathered(self.distance_rows)

    def gathered(self, rows: Callable[[int, int], Tensor]) -> Tensor:
        """An n x n matrix from its rows, with little beside it."""
        out = torch.empty(self.n, self.n, dtype=self.mean.dtype, device=self.values.device)
        for start, stop in self.blocks(2):
            out[start:stop] = rows(start, stop)
        return out

    def kept_distance_rows(self, start: int, stop: int, *, upper: bool = False) -> Tensor:
        """Rows of `distances`; not to be changed. Kept only where several pairs will want them."""
        if self.keeps_distances:
            return self.distances[start:stop, start if upper else 0 :]
        return self.distance_rows(start, stop, upper=upper)

    @property
    def keeps_distances(self) -> bool:
        """Whether the whole matrix of distances is kept: several pairs will want it, and there is room."""
        return self.workspace.shares_squares and self.workspace.keeps_squares(self.n)

    @quantity
    def _toward_mean(self) -> tuple[Tensor, float]:
        """Inner products of the centred rows with the mean row, and the mean row's with itself."""
        return self.centred_neurons @ self.mean, float(self.mean @ self.mean)

    def raw_gram_rows(self, start: int, stop: int) -> Tensor:
        """Inner products of the rows as they are."""
        toward, square = self._toward_mean
        block = self.gram_rows(start, stop) + (toward[start:stop, None] + square)
        block += toward
        return block

    def cosine_rows(self, start: int, stop: int) -> Tensor:
        """Cosines between rows; a zero row has cosine 0 with every other."""
        if self._uneven:
            return self._unit_rows[start:stop] @ self._unit_rows.T
        inverse = inverse_of(self.norms)
        block = self.raw_gram_rows(start, stop)
        block *= inverse[start:stop, None]
        block *= inverse
        return block

    @quantity
    def _uneven(self) -> bool:
        """Whether a row is so small beside the mean that adding the mean back would cost its digits."""
        small = self.norms < 0.1 * torch.linalg.vector_norm(self.mean)
        return bool((small & self.directed).any())

    @quantity
    def _unit_rows(self) -> Tensor:
        return self.values * inverse_of(self.norms)[:, None]

    def cosines_at(self, columns: Tensor) -> Tensor:
        """Cosines of each row with the rows listed for it, (n, k)."""
        if self.workspace.keeps_squares(self.n):
            if self.workspace.shares_squares:
                return self.kept("cosines", lambda: self.gathered(self.cosine_rows)).gather(1, columns)
            parts = [self.cosine_rows(i, j).gather(1, columns[i:j]) for i, j in self.blocks(4)]
            return torch.cat(parts)
        inverse = inverse_of(self.norms)
        found = torch.empty(columns.shape, dtype=self.values.dtype, device=self.values.device)
        step = max(1, self.workspace.limit // 32 // (8 * self.d * columns.shape[1]))
        for i in range(0, self.n, step):
            listed = columns[i : i + step]
            rows = self.values[i : i + step] * inverse[i : i + step, None]
            products = torch.einsum("nd,nkd->nk", rows, self.values[listed])
            found[i : i + step] = products * inverse[listed]
        return found

    @property
    def directed(self) -> Tensor:
        """Which rows are not zero, and so have a direction."""
        return self.norms > 0

    @quantity
    def _row_profile(self) -> tuple[Tensor, Tensor]:
        """Mean of each row over neurons, and norm of the row without it (0 if it is constant)."""
        means = self.values.mean(dim=1)
        spread = torch.linalg.vector_norm(self.values - means[:, None], dim=1)
        spread[spread <= CONSTANT * self.norms] = 0
        return means, spread

    def correlation_rows(self, start: int, stop: int) -> Tensor:
        """Pearson correlations between rows; a row constant over neurons has 0 with every other."""
        means, spread = self._row_profile
        inverse = inverse_of(spread)
        if self._uneven or bool((self.norms > 1e3 * spread).any()):  # sums and differences would cancel
            rows = (self.values - means[:, None]) * inverse[:, None]
            return rows[start:stop] @ rows.T
        block = self.raw_gram_rows(start, stop)
        block.addr_(means[start:stop], means, alpha=-self.d)
        block *= inverse[start:stop, None]
        block *= inverse
        return block
