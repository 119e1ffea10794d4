"""Two representations on the same probe, and everything that needs both, at most once each.

The cross-covariance is the one large product of a pair. Uncentred, whitened and neuron-wise forms follow
from it by small corrections, so every alignment and canonical measure starts from the same matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from likewise._base.arrays import as_tensor, refuse_meta
from likewise.errors import UndefinedError
from likewise.measures.numerics.algebra import float32_product_norm, frobenius, svd, symmetric, tolerance
from likewise.measures.numerics.kernels import InnerProducts, Kernel, Linear, fill
from likewise.measures.representation import Representation
from likewise.measures.workspace import Key, Workspace, quantity, swap
from likewise.views import Activations, Outputs
from likewise.views.activations import check_same_probe, on_one_device

T = TypeVar("T")
__all__ = ["Kernel", "Pair", "pair_of"]


class Pair:
    """Two networks on the same inputs.

    Args:
        a: The first network.
        b: The other one, on the same inputs.
        tables: Inner products of n x n matrices that are shared with other pairs.
    """

    def __init__(self, a: Representation, b: Representation, tables: dict[Kernel, InnerProducts] | None = None) -> None:
        refuse_meta()
        check_same_probe(a.view, b.view)
        self.a, self.b = a, b
        self.tables = {} if tables is None else tables
        self._held: dict[Key, Any] = {}

    def memo(self, key: Key, compute: Callable[[], T]) -> T:
        """The value under a key, computed at most once.

        Args:
            key: A quantity and its options.
            compute: What gives the value.
        """
        if key not in self._held:
            self._held[key] = compute()
        value: T = self._held[key]
        return value

    @property
    def swapped(self) -> Pair:
        """The pair with its sides swapped; what is declared to follow is not computed again."""
        other = Pair(self.b, self.a, self.tables)
        other._held = {key: swap(key[0].swapped, value) for key, value in self._held.items() if key[0].swapped}
        return other

    @property
    def double(self) -> Pair:
        """The pair in double precision."""
        same = self.a.double is self.a and self.b.double is self.b
        return self if same else Pair(self.a.double, self.b.double, self.tables)

    def close(self, in_double: float) -> float:
        """A tolerance made for double precision, at the precision that is worked in.

        Args:
            in_double: The tolerance in double precision.
        """
        return self.a.close(in_double)

    def __repr__(self) -> str:
        return f"{self.a.name} and {self.b.name}"

    @property
    def n(self) -> int:
        """How many inputs both saw."""
        return self.a.n

    # --- scale ----------------------------------------------------------------------------------

    @property
    def on_one_scale(self) -> Pair:
        """The pair with both sides divided by the same power of two, for measures that notice scale."""
        if self.a.exponent == self.b.exponent:
            return self
        return self._at_larger_scale

    @quantity
    def _at_larger_scale(self) -> Pair:
        largest = max((rep.exponent for rep in (self.a, self.b) if rep.norm), default=0)
        return Pair(self.a.at(largest), self.b.at(largest))

    def in_units(self, length: float) -> float:
        """A length of this pair, which stands on one scale, in the units of the activations.

        Args:
            length: A distance at the scale of the pair.
        """
        if not self.a.exponent:
            return length
        try:
            return math.ldexp(length, self.a.exponent)
        except OverflowError:
            raise UndefinedError(
                f"the distance between {self} is more than a float can hold. Scale the activations."
            ) from None

    # --- cross-covariance -----------------------------------------------------------------------

    @quantity(swapped="transposed")
    def cross(self) -> Tensor:
        """Xᵀ Y of the centred compact values."""
        return self.a.covariance if self.a is self.b else self.a.centred.T @ self.b.centred

    @quantity
    def raw_cross(self) -> Tensor:
        """Xᵀ Y of the compact values, not centred."""
        return torch.addr(self.cross, self.a.compact_mean, self.b.compact_mean, alpha=self.n)

    @quantity(swapped="transposed")
    def neuron_cross(self) -> Tensor:
        """Xᵀ Y of the centred values, one row per neuron of X and one column per neuron of Y."""
        if not (self.a.wide or self.b.wide):
            return self.cross
        return self.a.centred_neurons.T @ self.b.centred_neurons

    @quantity
    def nuclear(self) -> float:
        """Sum of the singular values of `cross`: how far one side turns into the other."""
        return nuclear_norm(self.cross)

    @quantity
    def rotation(self) -> Tensor:
        """The orthogonal map that takes the centred compact X nearest to Y, (wide x wide)."""
        return polar(self.cross)

    # --- column spaces --------------------------------------------------------------------------

    @quantity
    def projection(self) -> Tensor:
        """Xᵀ V, the centred compact X along an orthonormal basis of the centred column space of Y."""
        white = self.b.whitening()
        return self.cross @ white if white.numel() else self.a.centred.T @ self.b.basis()

    @quantity(swapped="transposed")
    def overlap(self) -> Tensor:
        """Uᵀ V, orthonormal bases of the centred column spaces against each other."""
        white = self.a.whitening()
        if white.numel() and self.b.whitening().numel():
            return white.T @ self.projection
        return self.a.basis().T @ self.b.basis()

    @quantity(swapped="transposed")
    def raw_overlap(self) -> Tensor:
        """`overlap` of the column spaces of the values as they are.

        In bases that whiten the centred values, with a and b the means there and O the overlap, it is
        (I + aaᵀ)^-½ (O + abᵀ) (I + bbᵀ)^-½: the mean adds to O and is whitened in one direction.
        """
        if any(rep.is_constant or not rep.whitening().numel() for rep in (self.a, self.b)):
            return self.a.basis(centred=False).T @ self.b.basis(centred=False)
        (a, size), (b, other) = self.a.white_mean, self.b.white_mean
        shrunk, less = 1 - 1 / math.hypot(1, size), 1 - 1 / math.hypot(1, other)
        left, right = a @ self.overlap, self.overlap @ b
        both = shrunk * less * float(left @ b) + size / math.hypot(1, size) * other / math.hypot(1, other)
        return self.overlap.addr(a, both * b - shrunk * left).addr_(right, b, alpha=-less)

    def principal_overlap(self, k: int | None = None, l: int | None = None) -> Tensor:
        """`overlap` of the first k and l left singular vectors, largest singular value first.

        Args:
            k: How many vectors of the first network; all by default.
            l: How many of the second.
        """
        (s, v, u), (t, w, p) = self.a.spectrum, self.b.spectrum
        if u.numel() or p.numel():
            return self.a.principal_basis[:, :k].T @ self.b.principal_basis[:, :l]
        return (v[:, :k] / s[:k]).T @ self.cross @ (w[:, :l] / t[:l])

    @quantity
    def correlations(self) -> Tensor:
        """Canonical correlations, largest first: cosines of the angles between the column spaces."""
        if Pair.canonical.key in self._held:
            return self.canonical[1]
        return torch.linalg.svdvals(self.overlap).clamp(max=1)

    @quantity(swapped="reversed")
    def canonical(self) -> tuple[Tensor, Tensor, Tensor]:
        """`correlations` with the directions they belong to, one column each, in both bases."""
        left, rho, right = svd(self.overlap, repeated=self.a.rank + self.b.rank > self.n)
        return left, rho.clamp(max=1), right.T

    # --- inner products of n x n matrices -------------------------------------------------------

    def table(self, kernel: Kernel) -> InnerProducts:
        """The table that holds this pair's inner products of a kernel.

        Args:
            kernel: What makes the n x n matrix of a network.
        """
        table = self.tables.setdefault(kernel, InnerProducts())
        a, b = self.a, self.b
        if not {(a.key, b.key), (b.key, a.key)} & table.inner.keys():
            if isinstance(kernel, Linear) and not (a.wide or b.wide):
                self._fill_linear(table, kernel)
            else:
                fill(table, kernel, [a, b] if b is not a else [a])
        return table

    def _fill_linear(self, table: InnerProducts, kernel: Linear) -> None:
        """<XXᵀ, YYᵀ> = |Xᵀ Y|²: no n x n matrix is needed."""
        a, b = self.a, self.b
        float32 = not kernel.exact and a.uses_float32 and b.uses_float32
        for rep in (a, b):
            table.inner[rep.key, rep.key] = (rep.float32_energy if float32 else rep.energy) ** 2
            squares = rep.float32_squares if float32 else rep.squares
            table.diagonals[rep.key], table.sums[rep.key] = squares.cpu().double().numpy(), np.zeros(rep.n)
        both = float32_product_norm(a.float32_centred, b.float32_centred) if float32 else frobenius(self.cross)
        table.inner[a.key, b.key] = both**2

    def refuse_constant(self) -> None:
        """Refuse a pair in which all rows of one network are the same."""
        self.a.refuse_constant()
        self.b.refuse_constant()


def pair_of(x: Any, y: Any, *, reduce: str | None = None, shapes: str | None = None, on: str = "") -> Pair:
    """A pair of two bare arrays or views; `shapes` is the reference's way with tokens and maps."""
    if shapes is not None and reduce is None:
        x, y = _as_reference(x, y, shapes)
    workspace = Workspace(once=True)
    views = on_one_device([_view(v, name, reduce, on) for v, name in ((x, "x"), (y, "y"))])
    a, b = (Representation(view, workspace) for view in views)
    return Pair(a, b)


def _view(values: Any, name: str, reduce: Any, on: str) -> Activations:
    if isinstance(values, Activations):
        return values
    outputs = None
    if on == "outputs" and _axes(values, name) == 2:
        outputs = Outputs(as_tensor(values, repr(name)))
    return Activations(values, name=name, reduce=reduce, outputs=outputs)


def _axes(values: Any, name: str) -> int:
    if isinstance(values, (Tensor, np.ndarray)):
        return values.ndim
    return as_tensor(values, repr(name)).ndim


def _as_reference(x: Any, y: Any, shapes: str) -> tuple[Any, Any]:
    """Tokens become rows; maps are flattened, or pooled alike, laid out by position and thinned."""
    if isinstance(x, Activations) or isinstance(y, Activations) or _axes(x, "x") < 3:
        return x, y
    x, y = as_tensor(x, "'x'"), as_tensor(y, "'y'")
    if x.ndim != y.ndim:
        return x, y
    if x.ndim == 3:
        return x.flatten(0, 1), y.flatten(0, 1)
    if x.ndim != 4:
        return x, y
    if shapes == "flatten":
        return x.flatten(1), y.flatten(1)
    size = (min(x.shape[2], y.shape[2]), min(x.shape[3], y.shape[3]))
    maps = [v if v.shape[2:] == size else adaptive_avg_pool2d(v, size) for v in (x, y)]
    rows = [v.permute(0, 2, 3, 1).flatten(0, 2) for v in maps]
    step = max(1, rows[0].shape[0] // 5000)
    return rows[0][::step], rows[1][::step]


def nuclear_norm(matrix: Tensor) -> float:
    """Sum of singular values, from the cheaper eigenvalues of AᵀA where that costs no digits."""
    small = matrix if matrix.shape[0] >= matrix.shape[1] else matrix.T
    squares = torch.linalg.eigvalsh(symmetric(small.T))
    if float(squares[0]) > tolerance(1e-10, matrix.dtype) * float(squares[-1]):
        return float(squares.sqrt().sum())
    return float(torch.linalg.svdvals(matrix).sum())


def polar(matrix: Tensor) -> Tensor:
    """U Vᵀ of the singular value decomposition: the orthogonal matrix nearest to this one."""
    left, _, right = svd(matrix)
    return left @ right
