"""One network's activations on the probe: precision and scale, means and centring, norms and size.

Each quantity is computed when it is first read, at most once, and kept in a `Workspace` that may move it to disk.
Measures that do not notice a rotation see the activations only through their inner products, so a network wider
than the probe is long is replaced by an n x n matrix with the same ones: `compact`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from likewise.errors import UndefinedError
from likewise.measures.numerics.algebra import lengths, tolerance
from likewise.measures.workspace import Key, Workspace, quantity
from likewise.views import Activations, Outputs
from likewise.views.activations import NetworkOnData, column_means, scaled

T = TypeVar("T")
_counter = itertools.count()

CONSTANT = 1e-13  # spread below this share of the norm is rounding: means are taken off in double precision
FAR = 1e-6  # spread below this share of the norm, around a mean that is large beside it
MANY = 1 << 16  # entries per network of a pair from which single precision is worth having
SLIGHT = 1e-12  # share of the square of the values that products in single precision do not notice
SQUARES = (1e-10, 1e10)  # mean squares whose products have squares within single precision


class TooFewDigitsError(UndefinedError):
    """Single precision leaves too few digits of a result; a measure is then computed again in double."""


class Values:
    """The values of a view, at a scale where arithmetic is safe, and what centring and their size ask for.

    All quantities are those of the values divided by 2 ** exponent, which is 1 but where the scale of the
    view is extreme. A measure that does not ignore scale multiplies it back, see `Pair.on_one_scale`.

    Args:
        view: The activations.
        workspace: What holds computed quantities; one of its own by default.
        exponent: The power of two that values are divided by; by default that of the view.
        double: Work in double precision even where the view asks for single.
    """

    def __init__(
        self,
        view: Activations,
        workspace: Workspace | None = None,
        exponent: int | None = None,
        double: bool = False,
    ) -> None:
        self.view = view
        self.workspace = workspace or Workspace()
        self.dtype = torch.float64 if double or view.precision != "single" else torch.float32
        self._own_exponent = view.exponent if self.dtype == torch.float64 else _single_exponent(view)
        self.exponent = self._own_exponent if exponent is None else exponent
        self.key = next(_counter)
        self.n, self.d = view.values.shape  # plain attributes: they are read often

    def memo(self, key: Key, compute: Callable[[], T]) -> T:
        """The value under a key, computed at most once.

        Args:
            key: A quantity and its options.
            compute: What gives the value.
        """
        value: T = self.workspace.get((self.key, key), compute)
        return value

    @property
    def name(self) -> str:
        """What the view is called in messages."""
        return self.view.label

    @property
    def unconverted(self) -> Tensor:
        """The activations, (n, d), as they were given: in their own units and precision."""
        return cast(Tensor, self.view.values)

    @property
    def values(self) -> Tensor:
        """The activations, (n, d), in the precision that measures work in."""
        values = self.unconverted
        if values.dtype == self.dtype and not self.exponent:
            return values
        return self._converted

    @quantity(permuted="rows")
    def _converted(self) -> Tensor:
        if not self.exponent:
            return cast(Tensor, self.view.values.to(self.dtype))
        values = self.view.values.double()
        at_scale = scaled(values, -self.exponent).to(self.dtype)
        if self.exponent == self._own_exponent:
            self._refuse_vanished(values, at_scale)
        return at_scale

    def _refuse_vanished(self, values: Tensor, at_scale: Tensor) -> None:
        """Refuse rows and neurons so small beside the largest that no float holds both."""
        smallest = torch.finfo(at_scale.dtype).tiny
        for axis, what in ((1, "rows"), (0, "neurons")):
            lost = (values != 0).any(dim=axis) & (at_scale.abs().amax(dim=axis) < smallest)
            if bool(lost.any()):
                raise UndefinedError(
                    f"the {what} of {self.name} lie too far apart: {int(lost.sum())} of {lost.numel()} "
                    "vanish beside the largest in any arithmetic. Scale them, or leave them out."
                )

    @property
    def mean(self) -> Tensor:
        """The mean activation of every neuron, (d,)."""
        if not self.exponent and self.dtype == torch.float64:
            return self.view.mean
        return self._mean_at_scale

    @quantity(permuted="same")
    def _mean_at_scale(self) -> Tensor:
        return self.precise_mean.to(self.dtype)

    @property
    def precise_mean(self) -> Tensor:
        """The same in double precision."""
        if not self.exponent:
            return self.view.mean
        return column_means(self.values) if self.dtype == torch.float64 else scaled(self.view.mean, -self.exponent)

    def close(self, in_double: float) -> float:
        """A tolerance made for double precision, at the precision that is worked in.

        Args:
            in_double: The tolerance in double precision.
        """
        return tolerance(in_double, self.dtype)

    def require_double(self) -> None:
        """Stop where a result in single precision would be a small rest of large numbers."""
        if self.dtype != torch.float64:
            raise TooFewDigitsError(f"single precision leaves too few digits of {self.name}. Compare in double.")

    @property
    def subject(self) -> NetworkOnData:
        """The network itself and the data it was shown."""
        if self.view.subject is None:
            raise UndefinedError(f"{self.name} does not bring its network along. Pass networks and data= to compare.")
        return self.view.subject

    @property
    def outputs(self) -> Outputs:
        """The outputs the view carries, or a refusal where it has none."""
        if self.view.outputs is None:
            raise UndefinedError(
                f"{self.name} carries no outputs. Make it with Activations(..., outputs=Outputs(...))."
            )
        return self.view.outputs

    @quantity(permuted="rows")
    def float32_centred(self) -> Tensor:
        """The centred values in single precision; or empty.

        For products that are only summed up: rounding of entries averages out there, and
        products of float32 values are twice as fast in float32. Empty where the network gave more
        digits, where there is nothing to gain, and where squares would leave the range of float32.
        """
        none = self.mean.new_empty(0, 0)
        if not self._worth_float32:
            return none
        mean = self.precise_mean.float()
        rows = self.unconverted - mean
        square = self.view.variation or float(torch.linalg.vector_norm(rows)) ** 2
        rest = self.precise_mean - mean  # what rounding left of the mean
        if self.n * float(rest @ rest) > SLIGHT * square:
            rows -= rest.float()
            square = float(torch.linalg.vector_norm(rows)) ** 2
        return rows if SQUARES[0] < square / rows.numel() < SQUARES[1] else none

    @quantity(permuted="rows")
    def float32_squares(self) -> Tensor:
        """Squared norms of the rows of `float32_centred`, (n,)."""
        return torch.linalg.vector_norm(self.float32_centred, dim=1).to(self.mean.dtype).square_()

    @property
    def uses_float32(self) -> bool:
        """Whether `float32_centred` is not empty, and sums of its rows keep their digits."""
        return self._worth_float32 and self.float32_centred.numel() > 0 and not self._has_giant

    @quantity(permuted="same")
    def _has_giant(self) -> bool:
        """Whether one row has a tenth of all squares, beside which the others lose digits."""
        squares = self.float32_squares
        return squares.numel() > 0 and bool(10 * squares.max() > squares.sum())

    @property
    def _worth_float32(self) -> bool:
        if self.exponent or self.view.values.dtype != torch.float32 or (self.wide and self.workspace.resampled):
            return False  # the last: resampling keeps whole matrices of inner products
        worth = self.n * self.d * self.workspace.networks >= 2 * MANY
        return worth and torch.get_float32_matmul_precision() == "highest"

    # --- choices among the inputs ---------------------------------------------------------------

    def random_order(self, seed: int) -> np.ndarray:
        """The inputs in an order drawn at random; a part of them keeps the order of the whole.

        Args:
            seed: Of the random generator.
        """
        return np.random.default_rng(seed).permutation(self.n)

    def random_sets(self, size: int, count: int, seed: int) -> list[np.ndarray]:
        """`count` random sets of inputs, or all of them, once, if there are no more than `size`.

        Args:
            size: Inputs per set.
            count: How many sets.
            seed: Of the random generator.
        """
        if self.n <= size:
            return [np.arange(self.n)]
        rng = np.random.default_rng(seed)
        return [rng.choice(self.n, size, replace=False) for _ in range(count)]

    def batches(self, size: int) -> list[tuple[int, int]]:
        """The inputs cut into batches: where each begins and ends.

        Args:
            size: Inputs per batch; the last may have fewer.
        """
        return [(i, min(i + size, self.n)) for i in range(0, self.n, size)]

    # --- size and shape -------------------------------------------------------------------------

    @property
    def wide(self) -> bool:
        """Whether there are more neurons than inputs."""
        return self.d > self.n

    @quantity(permuted="rows")
    def compact(self) -> Tensor:
        """A matrix with the inner products of the values, (n, min(n, d)): Xᵀ = Q R, so X ~ Rᵀ."""
        if not self.wide:
            return self.values
        if self._far:
            return self.centred + self.compact_mean
        return torch.linalg.qr(self.values.T, mode="r").R.T.contiguous()

    @quantity(permuted="same")
    def compact_mean(self) -> Tensor:
        if self.wide and self._far:
            return self._joint_triangle[:, self.n]
        return self.compact.mean(dim=0) if self.wide else self.mean

    @quantity(permuted="rows")
    def centred(self) -> Tensor:
        """`compact` minus column means."""
        if not self.wide:
            return self._minus_mean()
        if self._far:
            return self._joint_triangle[:, : self.n].T.contiguous()
        return self.compact - self.compact_mean

    @quantity(permuted="same")
    def _far(self) -> bool:
        """Whether the mean is so large beside the rest that turning both at once would cost digits."""
        return self.close(FAR) * self.norm > float(torch.linalg.vector_norm(self.centred_neurons))

    @quantity
    def _joint_triangle(self) -> Tensor:
        """The centred rows and then the mean as columns, turned into their span."""
        both = torch.cat([self.centred_neurons, self.mean[None]])
        return torch.linalg.qr(both.T, mode="r").R

    @quantity(permuted="rows")
    def _centred_wide(self) -> Tensor:
        return self._minus_mean()

    def _minus_mean(self) -> Tensor:
        """The values minus column means; torch converts their precision as it subtracts."""
        if self.dtype == torch.float64:
            return (self.values if self.exponent else self.unconverted) - self.mean
        rows = scaled(self.unconverted.double(), -self.exponent) if self.exponent else self.unconverted
        return (rows - self.precise_mean).to(self.dtype)  # a large mean would cost digits in single precision

    @property
    def centred_neurons(self) -> Tensor:
        """The values minus column means, (n, d): for measures of neurons."""
        return self._centred_wide if self.wide else self.centred

    @quantity(permuted="same")
    def norm(self) -> float:
        """Frobenius norm of the values."""
        return float(torch.linalg.vector_norm(self.norms))

    @quantity(permuted="same")
    def spread(self) -> float:
        """Frobenius norm of the centred values, also where that is rounding."""
        return float(torch.linalg.vector_norm(self.centred_neurons))

    @property
    def size(self) -> float:
        """Frobenius norm of the centred values; a representation that has none is refused."""
        self.refuse_constant(closely=True)
        return self.spread

    @property
    def is_constant(self) -> bool:
        """Whether all rows are the same, up to rounding."""
        return bool(self._sameness)

    def refuse_constant(self, *, closely: bool = False) -> None:
        """Refuse a network whose rows are all the same: there is nothing to compare.

        Args:
            closely: Refuse rows that differ by rounding only, too.
        """
        if (closely or not (self.view.variation or self._plainly_varied)) and self._sameness:
            raise UndefinedError(
                f"{self.name} is constant: all {self.n} rows are {self._sameness}, so there is nothing to "
                "compare. Look at another layer."
            )

    @quantity(permuted="same")
    def _plainly_varied(self) -> bool:
        """Whether the rows are so far from the same that there is no need to look closer."""
        squares = self.float32_squares if self.uses_float32 else self.squares
        return float(squares.sum()) > self.close(1e-8) * self.n * float(self.mean @ self.mean)

    @quantity(permuted="same")
    def _sameness(self) -> str:
        """In words, how all rows are the same; empty where they differ."""
        if self.spread <= CONSTANT * self.norm or self.norm == 0:
            return "the same"
        if self.spread <= self.view.eps * self.norm and not bool(self._varies.any()):
            return "the same up to rounding"
        return ""

    @quantity(permuted="same")
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

    @quantity(permuted="rows")
    def squares(self) -> Tensor:
        """Squared norms of the centred rows, (n,)."""
        return torch.linalg.vector_norm(self.centred_neurons, dim=1).square_()

    @quantity(permuted="rows")
    def norms(self) -> Tensor:
        """Norms of the rows as they are, (n,)."""
        return lengths(self.values, dim=1)

    def blocks(self, copies: int = 1) -> Iterator[tuple[int, int]]:
        """Row ranges small enough for the memory limit.

        Args:
            copies: How many matrices of that many rows and n columns are held at a time.
        """
        step = self.workspace.block(self.n, copies)
        return ((i, min(i + step, self.n)) for i in range(0, self.n, step))


def _single_exponent(view: Activations) -> int:
    """The power of two of the largest value, 0 where that is ordinary: single precision holds no large powers."""
    exponent = math.frexp(float(view.values.abs().max()))[1]
    return exponent if abs(exponent) > 6 else 0
