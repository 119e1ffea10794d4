"""Descriptive measures: one number per network, compared by difference.

They need no correspondence between inputs, and say little of similarity: equal numbers do not make equal
networks.
"""

from __future__ import annotations

import math

import torch

from likewise.errors import UndefinedError
from likewise.measures.facts import PERMUTATION, ROTATION, SCALE, SHIFT
from likewise.measures.pair import Pair
from likewise.measures.registry import measure
from likewise.measures.representation import Representation
from likewise.measures.workspace import quantity

WANG = "Wang et al. 2022, arXiv:2012.11311"


@measure(
    name="magnitude-difference",
    aliases=("MagDiff",),
    larger_is="less alike",
    bounds=(0, None),
    identity=0,
    invariant_to={ROTATION},
    paired=False,
    always_double=True,  # a difference of two numbers that may be nearly the same
    cost="n·d",
    source=WANG,
    shapes="flatten",
)
def magnitude_difference(pair: Pair) -> float:
    """How differently long the mean activations of two networks are.

    | |mean of X| - |mean of Y| |, means over inputs, Euclidean norms. 0: equally long.

    Example:
        >>> f"{likewise.measures.magnitude_difference(x, x + noise):.3f}"
        '0.245'
    """
    pair = pair.on_one_scale
    a, b = (float(torch.linalg.vector_norm(rep.mean)) for rep in (pair.a, pair.b))
    return pair.in_units(abs(a - b))


@measure(
    name="concentricity-difference",
    aliases=("ConcDiff",),
    larger_is="less alike",
    bounds=(0, 2),
    identity=0,
    invariant_to={ROTATION, SCALE},
    paired=False,
    always_double=True,  # a difference of two numbers that may be nearly the same
    cost="n·d",
    source=WANG,
    shapes="flatten",
)
def concentricity_difference(pair: Pair) -> float:
    """How differently tight two networks' activations gather around their mean direction.

    The difference of mean over inputs of cos(x_i, mean of X); a zero row counts as 0. 0: equally tight.

    Example:
        >>> f"{likewise.measures.concentricity_difference(x, x + noise):.3f}"
        '0.014'
    """
    return abs(concentricity(pair.a) - concentricity(pair.b))


@quantity(permuted="same")
def concentricity(rep: Representation) -> float:
    """Mean cosine of the rows with the mean row."""
    length = float(torch.linalg.vector_norm(rep.mean))
    if rep.norm and length <= rep.close(1e-12) * rep.norm / math.sqrt(rep.n):
        raise UndefinedError(
            f"the mean of {rep.name} is zero up to rounding, so no row has an angle with it. "
            "Concentricity is for activations that are not centred."
        )
    cosines = torch.where(rep.norms > 0, rep.values @ rep.mean / rep.norms, 0.0)
    return float(cosines.mean()) / length if length else 0.0


@measure(
    name="uniformity-difference",
    aliases=("UnifDiff",),
    larger_is="less alike",
    bounds=(0, 8),
    identity=0,
    invariant_to={ROTATION, SCALE},
    paired=False,
    always_double=True,  # a difference of two numbers that may be nearly the same
    cost="n²·d",
    source=f"{WANG}; Wang & Isola 2020, arXiv:2005.10242",
)
def uniformity_difference(pair: Pair) -> float:
    """How differently evenly two networks spread the inputs over the directions they have.

    The difference of log mean over i != j of exp(-2 |x_i - x_j|²), rows scaled to length 1 (zero rows left
    out). 0: equally even.

    Example:
        >>> f"{likewise.measures.uniformity_difference(x, x + noise):.3f}"
        '0.001'
    """
    return abs(uniformity(pair.a) - uniformity(pair.b))


@quantity(permuted="same")
def uniformity(rep: Representation) -> float:
    """log mean over pairs of exp(-2 squared distance) on the unit sphere: 0 for a point, at least -8."""
    directed = rep.directed.double()
    count = int(directed.sum())
    if count < 2:
        raise UndefinedError(f"fewer than two rows of {rep.name} have a direction.")
    total = -float(count)  # each row with itself: exp(0)
    for start, stop in rep.blocks(3):
        block = rep.cosine_rows(start, stop).sub_(1).mul_(4)
        block.diagonal(start).zero_()
        total += float(directed[start:stop] @ block.exp_().double() @ directed)
    return math.log(max(total, 0.0) / (count * (count - 1))) if total > 0 else -8.0


@uniformity_difference.variant(
    "resi",
    bounds=(0, None),
    invariant_to=frozenset({PERMUTATION, ROTATION, SHIFT}),
    deviation="Rows as they are, and i = j counted: about 0 for any wide layer.",
)
def uniformity_difference_resi(pair: Pair) -> float:
    """The same on unscaled rows, each row also with itself."""
    a, b = (_raw_uniformity(rep) for rep in (pair.a, pair.b))
    return abs(a - b)


@quantity(permuted="same")
def _raw_uniformity(rep: Representation) -> float:
    # below exp(-700) numbers lose their digits, and the processor its speed
    square = 4.0 ** max(-500, min(rep.exponent, 500))  # beyond, everything is equal or far apart
    blocks = (rep.squared_distance_rows(i, j).mul_(-2 * square).clamp_(min=-700).exp_() for i, j in rep.blocks(3))
    return math.log(sum(float(block.sum()) for block in blocks) / rep.n**2)
