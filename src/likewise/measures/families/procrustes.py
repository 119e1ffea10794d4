"""Rotation measures: two networks are alike if one can be turned onto the other.

Of the family `alignment`. All read the singular values of the cross-covariance, which a pair has once.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from likewise.measures.facts import PERMUTATION, ROTATION, SCALE, SHIFT
from likewise.measures.pair import Pair, nuclear_norm, polar
from likewise.measures.registry import measure
from likewise.measures.representation import Representation
from likewise.measures.saturation import Sizes, either_wide, ranks
from likewise.measures.values import CONSTANT

SCHOENEMANN = "Schönemann 1966, doi:10.1007/BF02289451; Ding et al. 2021, arXiv:2108.01661"
WILLIAMS = "Williams et al. 2021, arXiv:2110.14739"


def _procrustes(pair: Pair, a: float, b: float) -> float:
    """The least |X Q / a - Y / b| over rotations Q, X and Y centred."""
    both = (pair.a.size / a) ** 2 + (pair.b.size / b) ** 2
    square = both - 2 * pair.nuclear / (a * b)
    if square > pair.close(1e-4) * both:
        return math.sqrt(square)
    # Near zero the difference above is rounding: turn one onto the other and look.
    pair.a.require_double()
    x, y, turn = pair.a.centred / a, pair.b.centred / b, pair.rotation
    residual = x @ turn - y if turn.shape[0] <= turn.shape[1] else x - y @ turn.T
    return float(torch.linalg.vector_norm(residual))


@measure(
    name="procrustes",
    aliases=("OrthProc", "orthogonal-procrustes"),
    shared_variance=0.4,
    larger_is="less alike",
    bounds=(0, math.sqrt(2)),
    identity=0,
    invariant_to={ROTATION, SCALE, SHIFT},
    metric=True,
    cross=True,
    source=SCHOENEMANN,
)
def procrustes(pair: Pair) -> float:
    """How far apart two networks stay after the best rotation, at equal size.

    min over rotations Q of |X Q - Y|, X and Y centred and divided by their Frobenius norm; the narrower is
    padded with zeros. 0: equal up to rotation and scale; sqrt 2: nothing in common.

    Example:
        >>> f"{likewise.measures.procrustes(x, x + noise):.3f}"
        '0.753'
    """
    return _procrustes(pair, pair.a.size, pair.b.size)


@measure(
    name="procrustes-size",
    aliases=("ProcDist", "bures", "size-and-shape"),
    larger_is="less alike",
    bounds=(0, None),
    identity=0,
    invariant_to={ROTATION, SHIFT},
    metric=True,
    cross=True,
    source=f"{WILLIAMS}; as Bures distance: Harvey et al. 2023, arXiv:2311.11436",
)
def procrustes_size(pair: Pair) -> float:
    """How far apart two networks stay after the best rotation, in the units of the activations.

    min over rotations Q of |X Q - Y|, X and Y centred. 0: equal up to rotation. The same number as the
    Bures distance of the centred Gram matrices, sqrt(tr K + tr L - 2 tr (K½ L K½)½).

    Example:
        >>> f"{likewise.measures.procrustes_size(x, x + noise):.3f}"
        '38.812'
    """
    pair = pair.on_one_scale
    sizes = pair.a.spread, pair.b.spread
    if min(sizes) <= CONSTANT * max(pair.a.norm, pair.b.norm):  # one side is a point: nothing to turn
        return pair.in_units(max(sizes))
    return pair.in_units(_procrustes(pair, 1.0, 1.0))


@measure(
    name="angular-shape",
    aliases=("AngShape",),
    larger_is="less alike",
    shared_variance=0.4,
    bounds=(0, math.pi / 2),
    identity=0,
    invariant_to={ROTATION, SCALE, SHIFT},
    metric=True,
    cross=True,
    source=WILLIAMS,
)
def angular_shape(pair: Pair) -> float:
    """The angle between two networks after the best rotation.

    arccos of the largest <X Q, Y> over rotations Q, X and Y centred and of Frobenius norm 1. 0: equal up to
    rotation and scale; pi/2: nothing in common.

    Example:
        >>> f"{likewise.measures.angular_shape(x, x + noise):.3f}"
        '0.773'
    """
    return 2 * math.asin(min(1.0, _procrustes(pair, pair.a.size, pair.b.size) / 2))


@measure(
    name="shape",
    aliases=("shape-metric",),
    larger_is="less alike",
    bounds=(0, math.pi / 2),
    identity=0,
    invariant_to={ROTATION, SHIFT},
    metric=True,
    cross=True,
    limits={"alpha": (0.0, 1.0)},
    source=WILLIAMS,
    shared_variance=0.3,
    saturates=lambda o: None if o["alpha"] else either_wide(_whitened_angle),
    version=3,
)
def shape(pair: Pair, *, alpha: float = 0.5) -> float:
    """The angle between two partly whitened networks: from CCA (alpha 0) to Procrustes (alpha 1).

    The angle after the best rotation between X (alpha I + (1 - alpha) (Xᵀ X)^-1/2) and the same of Y, both
    centred: of X = U S Vᵀ the singular values become alpha S + 1 - alpha. 0: the same shape; pi/2:
    nothing in common. Between 0 and 1, alpha means more whitening the smaller the activations are:
    multiplied by ten, or with a hundred times as many inputs, networks score nearer to alpha 1.
    variant="scale-free" takes the size out.

    Options:
        alpha: From 0, fully whitened, to 1, not whitened.

    Example:
        >>> f"{likewise.measures.shape(x, x + noise):.3f}"
        '0.772'
    """
    return _shape(pair, [_partly_whitened(rep, alpha) for rep in (pair.a, pair.b)])


def _whitened_angle(sizes: Sizes) -> float:
    low, high = ranks(sizes)
    return math.acos(math.sqrt(low / high))


def _partly_whitened(rep: Representation, alpha: float) -> Tensor:
    """Singular values alpha S + 1 - alpha, up to a factor, which an angle does not notice."""
    if alpha == 1:  # nothing is added to them, so their scale is such a factor, and small ones keep their digits
        return rep.spectrum[0]
    limit = 1000 if rep.dtype == torch.float64 else 60  # beyond, one of the two is lost beside the other
    power = max(-limit, min(rep.exponent, limit))
    return alpha * 2.0 ** min(power, 0) * rep.spectrum[0] + (1 - alpha) * 2.0 ** -max(power, 0)


@shape.variant(
    "scale-free",
    deviation="Singular values become alpha S / |S| + (1 - alpha) / sqrt(rank), so that scale and the number "
    "of inputs do not matter.",
    invariant_to=frozenset({PERMUTATION, ROTATION, SCALE, SHIFT}),
)
def shape_scale_free(pair: Pair, *, alpha: float = 0.5) -> float:
    """The angle between two partly whitened networks, both parts at the same size.

    With X = U S Vᵀ centred the singular values become alpha S / |S| + (1 - alpha) / sqrt(rank), so that the
    part left as it is and the whitened part both have norm 1; then the angle after the best rotation.
    """
    weights = [alpha * rep.spectrum[0] / rep.size + (1 - alpha) / math.sqrt(rep.rank) for rep in (pair.a, pair.b)]
    return _shape(pair, weights)


def _shape(pair: Pair, weights: list[Tensor]) -> float:
    """The angle after the best rotation of U x and V y, U and V the left singular vectors."""
    x, y = (weight / weight.max() for weight in weights)  # first, since squares of weights may be out of range
    x, y = x / x.norm(), y / y.norm()
    cross = x[:, None] * pair.principal_overlap() * y
    cosine = nuclear_norm(cross)
    if cosine < 1 - pair.close(1e-4):
        return math.acos(cosine)
    # Near zero the cosine is rounding: turn one onto the other and look.
    pair.a.require_double()
    turn, u, v = polar(cross), pair.a.principal_basis * x, pair.b.principal_basis * y
    residual = u @ turn - v if turn.shape[0] <= turn.shape[1] else u - v @ turn.T
    return 2 * math.asin(min(1.0, float(torch.linalg.vector_norm(residual)) / 2))


@measure(
    name="nbs",
    aliases=("normalized-bures",),
    larger_is="more alike",
    bounds=(0, 1),
    shared_variance=0.4,
    identity=1,
    invariant_to={ROTATION, SCALE, SHIFT},
    cross=True,
    source="Tang et al. 2020, arXiv:2003.11498",
)
def nbs(pair: Pair) -> float:
    """Normalised Bures similarity: how well one network turns into the other.

    |Xᵀ Y|* / (|X| |Y|): nuclear norm over Frobenius norms, X and Y centred; the cosine of `angular-shape`. 1:
    equal up to rotation and scale; above 0 for unrelated networks.

    Example:
        >>> f"{likewise.measures.nbs(x, x + noise):.3f}"
        '0.716'
    """
    return min(1.0, pair.nuclear / (pair.a.size * pair.b.size))
