"""One network prepared for measures: everything that follows from its activations alone.

Two ideas keep the work small:

* One matrix of inner products (`gram_rows`) serves distances, cosines and correlations of rows: they
  differ from it by outer products of vectors. Where the distances are kept for measures of their own,
  they serve in its place.
* n x n matrices are read by rows: from a kept matrix if there is room, else computed again.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from likewise.errors import UndefinedError
from likewise.measures.numerics.algebra import (
    float32_product_norm,
    frobenius,
    inverse_of,
    lengths,
    rank_of,
    recentre,
    svd,
    symmetric,
    whitening,
)
from likewise.measures.values import CONSTANT, Values
from likewise.measures.workspace import Workspace, quantity


def _basis_rows(rep: Values, spectrum: tuple[Tensor, Tensor, Tensor], index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A spectrum with the rows of its basis in another order."""
    scales, vectors, basis = spectrum
    return scales, vectors, basis[index] if basis.numel() else basis


def _recentred_rows(rep: Values, gram: Tensor, index: Tensor) -> Tensor:
    """Inner products of some rows, less their own mean."""
    square = gram[index][:, index]
    means = square.mean(dim=0)
    return square - means - means[:, None] + means.mean()


class Representation(Values):
    """The spectrum of a network, and its rows against each other."""

    def at(self, exponent: int) -> Representation:
        """The same view divided by another power of two.

        Args:
            exponent: The power of two.
        """
        return Representation(self.view, self.workspace, exponent, self.dtype == torch.float64)

    @property
    def double(self) -> Representation:
        """The same rows in double precision."""
        return self if self.dtype == torch.float64 else self._double

    @quantity
    def _double(self) -> Representation:
        return Representation(self.view, Workspace(self.workspace.limit // 2), double=True)

    @property
    def unscaled(self) -> Tensor:
        """`values` in their own units, whatever the scale."""
        return self.at(0).values if self.exponent else self.values

    # --- spectrum -------------------------------------------------------------------------------

    @quantity(permuted="same")
    def covariance(self) -> Tensor:
        """Xᵀ X of the centred compact values (not divided by n)."""
        return symmetric(self.centred.T)

    @quantity(permuted="same")
    def energy(self) -> float:
        """Frobenius norm of `covariance`, which is that of the centred Gram matrix."""
        self.refuse_constant()
        return frobenius(self.gram if self.wide else self.covariance)

    @quantity(permuted="same")
    def float32_energy(self) -> float:
        """`energy` from products in single precision."""
        return float32_product_norm(self.float32_centred, self.float32_centred)

    @quantity(permuted=_basis_rows)
    def spectrum(self) -> tuple[Tensor, Tensor, Tensor]:
        """Singular values, right singular vectors and left basis of the centred values.

        The basis is empty where the whitening V / S may be used in its place: an eigendecomposition of
        the covariance is cheaper than one of the values, but squares their condition. Where that would
        cost digits, the values themselves are decomposed, to the rank of `_span`.
        """
        if self._whitening.numel():
            squares, vectors = torch.linalg.eigh(self.covariance)
            return squares.flip(0).sqrt(), vectors.flip(1), squares.new_empty(0)
        self.require_double()
        basis, scales, rows = svd(recentre(self.centred))
        rank = self._span.shape[1] if self._uneven_neurons else rank_of(scales, self.rounding, self.n, self.d)
        rank = min(rank, self.n - 1)
        return scales[:rank], rows[:rank].T.contiguous(), basis[:, :rank].contiguous()

    @quantity(permuted="same")
    def _whitening(self) -> Tensor:
        self.refuse_constant(closely=True)
        return whitening(self.covariance, self.rounding)

    @quantity(permuted="same")
    def _raw_whitening(self) -> Tensor:
        if self.norm == 0:
            raise UndefinedError(f"{self.name} is zero everywhere, so it spans nothing.")
        moment = torch.addr(self.covariance, self.compact_mean, self.compact_mean, alpha=self.n)
        return whitening(moment, self.rounding)

    @quantity(permuted="same")
    def white_mean(self) -> tuple[Tensor, float]:
        """Direction and length of the mean of √n X W, W the whitening of the centred values; empty without W."""
        white = self._whitening
        mean = self.compact_mean @ white if white.numel() else white
        size = float(torch.linalg.vector_norm(mean))
        return mean / size if size else mean, size * self.n**0.5

    @quantity(permuted="rows")
    def _span(self) -> Tensor:
        """Orthonormal basis of the centred neurons, (n, rank)."""
        self.require_double()
        if not self._uneven_neurons:
            return self.spectrum[2]
        neurons = recentre(self.centred_neurons * inverse_of(self._scales) * self._varies)
        return self._column_space(neurons)[:, : self.n - 1]

    @quantity(permuted="rows")
    def _raw_span(self) -> Tensor:
        """Orthonormal basis of the neurons as they are, (n, rank)."""
        self.require_double()
        if self._uneven_neurons:
            return self._column_space(self.values * inverse_of(self._scales))
        basis, sizes, _ = svd(self.compact)
        return basis[:, : rank_of(sizes, self.rounding, self.n, self.d)].contiguous()

    def _column_space(self, neurons: Tensor) -> Tensor:
        """The column space of neurons of norm 1, each rounded at its own scale."""
        if self.wide:
            neurons = torch.linalg.qr(neurons.T, mode="r").R.T
        basis, sizes, _ = svd(neurons)
        rounding = self.view.eps * (1 + (self.d / self.n) ** 0.5)
        return basis[:, : rank_of(sizes, rounding, self.n, self.d)].contiguous()

    @quantity(permuted="same")
    def _uneven_neurons(self) -> bool:
        """Whether rounding of one neuron may be as large as another is, or nearly."""
        varying = self._scales[self._varies]
        apart = min(1e3, 0.05 / self.view.eps)
        return not varying.numel() or bool(self._scales.max() > apart * varying.min())

    def whitening(self, centred: bool = True) -> Tensor:
        """W with X W orthonormal; empty where X is too near to singular to be whitened so.

        Args:
            centred: Whether column means are taken off.
        """
        return self._whitening if centred else self._raw_whitening

    def basis(self, centred: bool = True) -> Tensor:
        """Orthonormal basis of the column space, (n, rank).

        Args:
            centred: Whether column means are taken off.
        """
        white = self.whitening(centred)
        if white.numel():
            return (self.centred if centred else self.compact) @ white
        return self._span if centred else self._raw_span

    @property
    def principal_basis(self) -> Tensor:
        """The left singular vectors of the centred values, (n, rank)."""
        scales, vectors, basis = self.spectrum
        return basis if basis.numel() else self.centred @ (vectors / scales)

    @property
    def rank(self) -> int:
        """How many directions vary."""
        white = self._whitening
        return int((white if white.numel() else self._span).shape[1])

    # --- rows against rows ----------------------------------------------------------------------

    @quantity(permuted="both", subset=_recentred_rows)
    def gram(self) -> Tensor:
        """Inner products of the centred rows, (n, n). Only where there is room."""
        return symmetric(self.centred_neurons)

    def gram_rows(self, start: int, stop: int, *, upper: bool = False, again: bool = False) -> Tensor:
        """Rows of `gram`.

        Args:
            start: The first row.
            stop: The row after the last.
            upper: Only from column `start` on, where the diagonal begins.
            again: They will be read more than once.
        """
        first = start if upper else 0
        if self.gram_by_distances:
            block = self._minus_half_squares(start, stop, self.squares[first:] / 2, first)
            block += self.squares[start:stop, None] / 2
            return block
        if self._keeps_gram(again):
            return self.gram[start:stop, first:]
        return self.centred_neurons[start:stop] @ self.centred_neurons[first:].T

    @quantity(permuted="same")
    def gram_by_distances(self) -> bool:
        """Whether the distances serve for inner products: <x, y> = (|x|² + |y|² - |x - y|²) / 2.

        A second n x n matrix is then saved. Its rounding is that of the longer row, so rows of very different
        lengths would lose digits.
        """
        if not (self.workspace.distances and self.keeps_distances):
            return False
        return bool(self.squares.max() <= 100 * self.squares.min())

    def _minus_half_squares(self, start: int, stop: int, columns: Tensor, first: int = 0) -> Tensor:
        """Minus half the squared distances of some rows, from column `first` on, plus a number per column."""
        apart = self.distances[start:stop, first:]
        return torch.addcmul(columns, apart, apart, value=-0.5)

    def _keeps_gram(self, again: bool) -> bool:
        """Whether the whole matrix is worth keeping: not for a single pass over it."""
        if not self.workspace.keeps_squares(self.n):
            return False
        one_pass = self.workspace.reads_once(self.n) and not again
        return not one_pass or self.workspace.find((self.key, Representation.gram.key)) is not None

    def squared_distance_rows(self, start: int, stop: int, *, upper: bool = False, again: bool = False) -> Tensor:
        """Squared Euclidean distances from some rows to all, a matrix the caller may change.

        Args:
            start: The first row.
            stop: The row after the last.
            upper: Only from column `start` on.
            again: They will be read more than once.
        """
        first = start if upper else 0
        if self.gram_by_distances:
            return self.distances[start:stop, first:].square()
        products = self.gram_rows(start, stop, upper=upper, again=again)
        block = torch.add(self.squares[first:], products, alpha=-2)
        block += self.squares[start:stop, None]
        block.clamp_(min=0)
        block.diagonal(start - first).zero_()
        return block

    @quantity(permuted="both", subset="both", eager=True)
    def distances(self) -> Tensor:
        """All Euclidean distances, (n, n). Only where there is room."""
        if not self.gram_by_distances:
            return self._assemble(lambda start, stop: self.squared_distance_rows(start, stop).sqrt_())
        out = symmetric(self.centred_neurons)
        for start, stop in self.blocks(2):
            rows = out[start:stop]
            rows.mul_(-2).add_(self.squares[start:stop, None] + self.squares).clamp_(min=0).sqrt_()
        return out.fill_diagonal_(0)

    def _assemble(self, rows: Callable[[int, int], Tensor]) -> Tensor:
        """An n x n matrix from its rows, with little beside it."""
        out = self.mean.new_empty(self.n, self.n)
        for start, stop in self.blocks(2):
            out[start:stop] = rows(start, stop)
        return out

    def distance_rows(self, start: int, stop: int, *, upper: bool = False) -> Tensor:
        """Euclidean distances from some rows to all; not to be changed. Kept only where several pairs need them.

        Args:
            start: The first row.
            stop: The row after the last.
            upper: Only from column `start` on.
        """
        if self.keeps_distances:
            return self.distances[start:stop, start if upper else 0 :]
        return self.squared_distance_rows(start, stop, upper=upper).sqrt_()

    @property
    def keeps_distances(self) -> bool:
        """Whether the whole matrix of distances is kept: several pairs need it, and there is room."""
        shared = self.workspace.shares_squares and not self.workspace.reads_once(self.n)
        return shared and self.workspace.keeps_squares(self.n)

    @quantity(permuted="rows")
    def _toward_mean(self) -> tuple[Tensor, float]:
        """Inner products of the centred rows with the mean row, and the mean row's with itself."""
        return self.centred_neurons @ self.mean, float(self.mean @ self.mean)

    def raw_gram_rows(self, start: int, stop: int) -> Tensor:
        """Inner products of the rows as they are.

        Args:
            start: The first row.
            stop: The row after the last.
        """
        toward, square = self._toward_mean
        if self.gram_by_distances:
            block = self._minus_half_squares(start, stop, toward + self.squares / 2)
            block += (toward + self.squares / 2 + square)[start:stop, None]
            return block
        block = self.gram_rows(start, stop) + (toward[start:stop, None] + square)
        block += toward
        return block

    def cosine_rows(self, start: int, stop: int) -> Tensor:
        """Cosines between rows; a zero row has cosine 0 with every other.

        Args:
            start: The first row.
            stop: The row after the last.
        """
        if self._uneven:
            return self._unit_rows[start:stop] @ self._unit_rows.T
        inverse = inverse_of(self.norms)
        block = self.raw_gram_rows(start, stop)
        block *= inverse[start:stop, None]
        block *= inverse
        return block

    @quantity(permuted="same")
    def _uneven(self) -> bool:
        """Whether a row is so small beside the mean that adding the mean back would cost its digits."""
        small = self.norms < 0.1 * torch.linalg.vector_norm(self.mean)
        return bool((small & self.directed).any())

    @quantity(permuted="rows")
    def _unit_rows(self) -> Tensor:
        return self.values * inverse_of(self.norms)[:, None]

    @quantity(permuted="both", subset="both")
    def _cosines(self) -> Tensor:
        return self._assemble(self.cosine_rows)

    def cosines_at(self, columns: Tensor) -> Tensor:
        """Cosines of each row with the rows listed for it, (n, k).

        Args:
            columns: The rows listed for each row, (n, k).
        """
        inverse = inverse_of(self.norms)
        if self.workspace.keeps_squares(self.n) and not self.workspace.reads_once(self.n):
            if self._uneven:
                return self._cosines.gather(1, columns)
            toward, square = self._toward_mean
            products = self._gram_at(columns) + (toward[columns] + (toward[:, None] + square))
            return products.mul_(inverse[columns]).mul_(inverse[:, None])
        cosines = torch.empty(columns.shape, dtype=self.values.dtype, device=self.values.device)
        step = max(1, self.workspace.limit // 32 // (8 * self.d * columns.shape[1]))
        for i in range(0, self.n, step):
            listed = columns[i : i + step]
            rows = self.values[i : i + step] * inverse[i : i + step, None]
            products = torch.einsum("nd,nkd->nk", rows, self.values[listed])
            cosines[i : i + step] = products * inverse[listed]
        return cosines

    def _gram_at(self, columns: Tensor) -> Tensor:
        """Entries of `gram` in the columns listed for each row, (n, k)."""
        if not self.gram_by_distances:
            return self.gram.gather(1, columns)
        squares = self.distances.gather(1, columns).square_()
        return (self.squares[columns] + self.squares[:, None] - squares).div_(2)

    @property
    def directed(self) -> Tensor:
        """Which rows are not zero, and so have a direction."""
        return self.norms > 0

    @quantity(permuted="rows")
    def _row_profile(self) -> tuple[Tensor, Tensor]:
        """Mean of each row over neurons, and norm of the row without it (0 if it is constant)."""
        means = self.values.mean(dim=1)
        spread = lengths(self.values - means[:, None], 1)
        spread[spread <= self.close(CONSTANT) * self.norms] = 0
        return means, spread

    def correlation_rows(self, start: int, stop: int) -> Tensor:
        """Pearson correlations between rows; a row constant over neurons has 0 with every other.

        Args:
            start: The first row.
            stop: The row after the last.
        """
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
