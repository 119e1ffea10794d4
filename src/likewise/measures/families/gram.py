"""Gram-matrix measures: what two networks span, how far apart their Gram matrices lie, and row by row.

They are of the family `rsm`, but need the matrices' eigenvectors or rows, not their inner products alone.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg
import torch
from torch import Tensor

from likewise.errors import UndefinedError
from likewise.measures.facts import LINEAR, ROTATION, SCALE, SHIFT
from likewise.measures.numerics.algebra import inverse_of, large, lengths, svd
from likewise.measures.pair import Pair
from likewise.measures.registry import measure
from likewise.measures.representation import Representation
from likewise.measures.saturation import Sizes, either_wide, ranks
from likewise.measures.values import CONSTANT
from likewise.measures.workspace import quantity

CLOSE = 1e-3  # logarithms of eigenvalues of which single precision has too few digits


@measure(
    name="eos",
    aliases=("EOS", "eigenspace-overlap"),
    larger_is="more alike",
    bounds=(0, 1),
    shared_variance=0.6,
    identity=1,
    invariant_to={LINEAR},
    cross=True,
    saturates=lambda o: either_wide(_eos_of_sizes, less=0),
    source="May et al. 2019, arXiv:1909.01264",
)
def eos(pair: Pair) -> float:
    """How far two networks span the same space of functions on the inputs.

    |Uᵀ V|² / max(rank, rank'), U and V the left singular vectors of X and Y as they are, not centred.
    1: the same column space; 0: orthogonal ones. With n <= d both span everything and the score is 1.

    Example:
        >>> f"{likewise.measures.eos(x, x + noise):.3f}"
        '0.519'
    """
    shared = float(torch.linalg.vector_norm(pair.raw_overlap)) ** 2
    return min(1.0, shared / max(pair.raw_overlap.shape))


def _eos_of_sizes(sizes: Sizes) -> float:
    n, a, b = sizes
    return min(a, b, n) / n


@eos.variant(
    "resi",
    deviation="Divided by the larger width, not the larger rank.",
    identity=None,
    saturates=lambda o: either_wide(lambda sizes: min(sizes) / max(sizes[1:]), less=0),
)
def eos_resi(pair: Pair) -> float:
    """|Uᵀ V|² / max(d, d')."""
    shared = float(torch.linalg.vector_norm(pair.raw_overlap)) ** 2
    return min(1.0, shared / max(pair.a.d, pair.b.d))


@measure(
    name="gulp",
    aliases=("GULP",),
    larger_is="less alike",
    bounds=(0, None),
    identity=0,
    shared_variance=1.0,
    invariant_to={LINEAR, SHIFT},
    metric=True,
    cross=True,
    limits={"ridge": (0, None)},
    saturates=lambda o: None if o["ridge"] else either_wide(_gulp_of_sizes),
    source="Boix-Adserà et al. 2022, arXiv:2210.06545",
)
def gulp(pair: Pair, *, ridge: float = 0.0) -> float:
    """How differently two networks can predict, over all linear targets, by ridge regression.

    With S_x, S_y, S_xy the covariances of X and Y, centred and scaled to mean squared norm 1, and
    P = (S + ridge I)^-1 (pseudo-inverse): sqrt(tr(P_x S_x P_x S_x) + tr(P_y S_y P_y S_y)
    - 2 tr(P_x S_xy P_y S_yx)). 0: equal up to an invertible linear map; at ridge 0 it is at most
    sqrt(d + d'). A ridge above 0 makes it notice linear maps.

    Options:
        ridge: The penalty of the regression.

    Example:
        >>> f"{likewise.measures.gulp(x, x + noise):.3f}"
        '3.923'
    """
    if not ridge:
        square = sum(pair.overlap.shape) - 2 * float(torch.linalg.vector_norm(pair.overlap)) ** 2
        if square > pair.close(1e-6) * sum(pair.overlap.shape):
            return math.sqrt(square)
    pair.a.require_double()
    # Of X = U S Vᵀ only S enters besides the overlap of the bases U: |U x Uᵀ - V y Vᵀ|.
    x, y = (_shrinkage(rep, ridge) for rep in (pair.a, pair.b))
    u, v = pair.a.principal_basis, pair.b.principal_basis
    left, right = u * x - v @ (v.T @ (u * x)), v * y - u @ (u.T @ (v * y))
    inner = (x[:, None] - y) * pair.principal_overlap()
    return math.sqrt(sum(float(torch.linalg.vector_norm(m)) ** 2 for m in (left, right, inner)))


def _gulp_of_sizes(sizes: Sizes) -> float:
    low, high = ranks(sizes)
    return math.sqrt(high - low)


def _shrinkage(rep: Representation, ridge: float) -> Tensor:
    """s² / (s² + ridge) of each direction, at mean squared norm 1."""
    squares = (rep.spectrum[0] / rep.size).square()
    return squares / (squares + ridge)


@gulp.variant(
    "resi",
    deviation="The square of the distance, with widths for ranks: above 0 for a network with dead neurons and itself.",
    metric=False,
    identity=None,
    saturates=lambda o: either_wide(lambda sizes: _gulp_of_sizes(sizes) ** 2),
)
def gulp_resi(pair: Pair) -> float:
    """d + d' - 2 times the sum of squared canonical correlations."""
    for rep in (pair.a, pair.b):
        if pair.n < rep.d or rep.rank + _dead_neurons(rep) < rep.d:
            raise UndefinedError(
                f"the reference's GULP is undefined for {pair}: {rep.name} has {rep.d} neurons that span "
                f"{rep.rank} dimensions on {pair.n} inputs. Use the default variant."
            )
    square = pair.a.d + pair.b.d - 2 * float(torch.linalg.vector_norm(pair.overlap)) ** 2
    if square < pair.close(1e-6) * (pair.a.d + pair.b.d):
        pair.a.require_double()
    return max(0.0, square)


@quantity(permuted="same")
def _dead_neurons(rep: Representation) -> int:
    """How many neurons give the same for every input."""
    return int((rep.values == rep.values[0]).all(dim=0).sum())


@measure(
    name="riemann",
    aliases=("riemannian", "airm"),
    larger_is="less alike",
    bounds=(0, None),
    shared_variance=0.6,
    identity=0,
    invariant_to={ROTATION, SCALE, SHIFT},
    metric=True,
    cost="n·d² + d³",
    limits={"shrinkage": (1e-6, 1)},
    source="Shahbazi et al. 2021, doi:10.1016/j.neuroimage.2021.118271",
)
def riemann(pair: Pair, *, shrinkage: float = 0.1) -> float:
    """The shortest path between two networks' similarity matrices among positive definite matrices.

    sqrt(sum log² λ), λ the generalised eigenvalues of K and L, the centred Gram matrices scaled to trace n
    and shrunk towards the identity, (1 - s) K + s I, so that they are invertible. 0: equal up to rotation
    and scale. The affine-invariant metric.

    Options:
        shrinkage: The share s of the identity in either matrix.

    Example:
        >>> f"{likewise.measures.riemann(x, x + noise):.3f}"
        '18.224'
    """
    # Outside the span of both networks K and L are both s I and add nothing: work inside it,
    # unless it is about all there is.
    bases = [rep.principal_basis for rep in (pair.a, pair.b)]
    if bases[0].shape[1] + bases[1].shape[1] < pair.n:
        joint, scales, _ = svd(torch.cat(bases, dim=1))
        joint = joint[:, scales > pair.close(1e-10) * scales[0]]
        bases = [joint.T @ basis for basis in bases]
    shrunk = []
    for rep, basis in zip((pair.a, pair.b), bases, strict=True):
        factors = basis * (rep.spectrum[0] * math.sqrt(pair.n) / rep.size)
        identity = torch.eye(basis.shape[0], dtype=basis.dtype, device=basis.device)
        shrunk.append(((1 - shrinkage) * factors @ factors.T + shrinkage * identity).cpu().double().numpy())
    distance = float(np.linalg.norm(_log_eigenvalues(*shrunk)))
    if distance < CLOSE * math.sqrt(pair.n):
        pair.a.require_double()
    return distance


def _log_eigenvalues(k: np.ndarray, l: np.ndarray) -> np.ndarray:
    """Logarithms of the generalised eigenvalues of two positive definite matrices."""
    values = scipy.linalg.eigh(k, l, eigvals_only=True)
    if values[0] > 1e-8 * values[-1]:
        return np.asarray(np.log(values))
    # Rounding is a share of the largest: those below 1 are the large ones of the swapped problem.
    back = scipy.linalg.eigh(l, k, eigvals_only=True)[::-1]
    return np.log(np.where(values > 1, values, 1)) - np.log(np.where(values > 1, 1, back))


@measure(
    name="pnka",
    aliases=("PNKA",),
    larger_is="more alike",
    bounds=(-1, 1),
    identity=1,
    invariant_to={ROTATION, SCALE, SHIFT},
    cost="n²·d",
    source="Kolling et al. 2023, arXiv:2305.05281",
)
def pnka(pair: Pair) -> float:
    """How alike two networks place each single input among the others, on average.

    The mean over inputs of `likewise.pointwise(x, y)`: the cosine between row i of the centred Gram matrices of X
    and Y. 1: every input keeps its place; 0: unrelated. An input at the mean of both networks keeps it.

    Example:
        >>> f"{likewise.measures.pnka(x, x + noise):.3f}"
        '0.529'
    """
    return float(pnka_points(pair).mean())


def _at_the_mean(rep: Representation) -> Tensor:
    """Which inputs differ from the mean by rounding only, and so have no direction from it."""
    return rep.squares.sqrt() <= CONSTANT * (rep.norms + rep.norm / rep.n**0.5)


def pnka_points(pair: Pair) -> Tensor:
    """PNKA of every input, (n,)."""
    pair.refuse_constant()
    points = []
    for start, stop in pair.a.blocks(4):
        k, l = pair.a.gram_rows(start, stop), pair.b.gram_rows(start, stop)
        x, y = (inverse_of(lengths(rows, dim=1))[:, None] for rows in (k, l))
        if max(float(x.max()), float(y.max())) < large(k.dtype):
            cosines = (k * l).sum(dim=1) * (x * y)[:, 0]
        else:  # products of rows this small would be lost
            cosines = ((k * x) * (l * y)).sum(dim=1)
        a, b = (_at_the_mean(rep)[start:stop] for rep in (pair.a, pair.b))
        points.append(torch.where(a | b, (a & b).to(cosines.dtype), cosines))
    return torch.cat(points)
