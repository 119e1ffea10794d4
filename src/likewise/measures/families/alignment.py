"""Alignment measures: two networks are alike if inputs or neurons of one can be turned or matched to the other's."""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from likewise._base.optional import Library
from likewise.errors import UndefinedError
from likewise.measures.facts import PERMUTATION, ROTATION, SCALE, SHIFT
from likewise.measures.numerics.algebra import inverse_of, large, lengths, ridge_factors, svd, symmetric
from likewise.measures.pair import Pair
from likewise.measures.registry import measure
from likewise.measures.representation import Representation
from likewise.measures.saturation import second_wide
from likewise.measures.values import CONSTANT
from likewise.measures.workspace import quantity

WEAK = 2e-5  # share of the largest square below which products of two singular values cost their vectors digits
SLANT = 1e-6  # cosines between columns that should be orthogonal, whose squares are lost in a score
LOST = 1e-5  # the error of a mean cosine above which it is not given
OT = Library("ot", extra="measures", to="compute soft-matching between different widths")
WILLIAMS = "Williams et al. 2021, arXiv:2110.14739"


@measure(
    name="aligned-cosine",
    aliases=("AlignCos",),
    always_double=True,
    larger_is="more alike",
    bounds=(-1, 1),
    identity=1,
    invariant_to={ROTATION, SCALE},
    cross=True,
    source="Hamilton et al. 2016, arXiv:1605.09096",
    version=3,
)
def aligned_cosine(pair: Pair) -> float:
    """How well each input points the same way in both networks, after the best rotation.

    Mean over inputs of cos(x_i Q, y_i), Q the rotation nearest to taking X onto Y, neither centred nor
    scaled. Inputs that are zero in either network have no direction and are left out. 1: equal up to
    rotation and a scale for each input; independent noise scores 0.95 at n = 100, d = 512. Refused where a
    few inputs are so much larger than the rest that their rounding decides how the rest is turned.

    Example:
        >>> f"{likewise.measures.aligned_cosine(x, x + noise):.3f}"
        '0.702'
    """
    a, b = pair.a, pair.b
    directed = a.directed & b.directed
    if not bool(directed.any()):
        raise UndefinedError(f"no input has a direction in both networks of {pair}: rows are zero.")
    products = _unit_rows(a).T @ _unit_rows(b)  # the sum of the cosines is <Q, Σ x_i y_iᵀ>, rows at length 1
    return float((products * _turn(pair, directed)).sum()) / int(directed.sum())


@quantity(permuted="rows")
def _unit_rows(rep: Representation) -> Tensor:
    """The rows at length 1, zero where they have no direction."""
    return rep.compact * inverse_of(rep.norms)[:, None]


def _turn(pair: Pair, directed: Tensor) -> Tensor:
    """The rotation of X nearest to Y, refused if it is lost for the directions of the inputs."""
    noise = torch.finfo(pair.raw_cross.dtype).eps * pair.a.norm * pair.b.norm
    turn = _turn_from_squares(_level_peak(pair.raw_cross), (1e6 * noise) ** 2)
    if turn is not None:
        return turn
    left, sizes, right = svd(pair.raw_cross)
    if float(sizes[-1]) < 1e6 * noise:
        # turning i into j is off by noise / (size i + size j); how much do inputs have of both?
        x, y = (rep.compact[directed] / rep.norms[directed, None] for rep in (pair.a, pair.b))
        shared = (x @ left).abs().T @ (y @ right.T).abs() / x.shape[0]
        unsure = (noise / (sizes[:, None] + sizes).clamp(min=noise)) * shared
        if float(unsure.sum()) > LOST:
            raise UndefinedError(
                f"aligned-cosine is undefined for {pair}: some inputs are so much larger than others "
                "that rounding decides how the others are turned. Scale the rows, or leave those out."
            )
    return left @ right


def _turn_from_squares(cross: Tensor, noise: float) -> Tensor | None:
    """The rotation nearest to a matrix, by the eigenvectors V of its squares S²; None where squares left too little.

    Weak directions come out of squares as columns B = A V / S that are not quite orthonormal, BᵀB = I + E. To first
    order in E, the polar factor of B S is B (I - K) with K_ij = E_ij s_i / (s_i + s_j). E_ij is about
    eps s² / s_i s_j with s the largest: of strong directions it is left alone.
    """
    squares, right = torch.linalg.eigh(symmetric(cross.T))
    if cross.shape[0] != cross.shape[1] or float(squares[0]) <= max(1e-13 * float(squares[-1]), noise):
        return None
    sizes = squares.sqrt()
    left = cross @ (right / sizes)
    weak = int((sizes * sizes[0] < WEAK * sizes[-1] ** 2).sum())
    columns, s = left[:, :weak], sizes[:weak]
    error = symmetric(columns.T)
    error.diagonal().sub_(1)
    if weak and not float(error.abs().max()) < SLANT:
        return None
    columns -= columns @ error.mul_(s[:, None] / (s[:, None] + s))
    return left @ right.T


def _level_peak(matrix: Tensor) -> Tensor:
    """The matrix with its largest singular value, where that is far above the rest, reduced to their average.

    Activations are mostly positive, so uncentred products have one direction, that of the means, many times
    larger than all others. The singular vectors stay, and so does the nearest rotation, but squares of
    the rest keep more of their digits.
    """
    right = matrix.sum(dim=0)
    for _ in range(8):
        left = matrix @ right
        left /= torch.linalg.vector_norm(left)
        right = matrix.T @ left
        peak = torch.linalg.vector_norm(right)
        right /= peak
    gap = float(torch.linalg.vector_norm(matrix @ right - peak * left))
    square = float(torch.linalg.vector_norm(matrix)) ** 2 - float(peak) ** 2
    level = math.sqrt(max(square, 0.0) / max(min(matrix.shape) - 1, 1))  # of the rest, on average
    if not 0 < level < float(peak) / 4 or not gap < 1e-13 * float(peak):
        return matrix  # no singular value is far above the rest, or more than one is
    return torch.addr(matrix, left, right, alpha=level - float(peak))


@measure(
    name="permutation-procrustes",
    aliases=("PermProc",),
    larger_is="less alike",
    bounds=(0, None),
    identity=0,
    invariant_to={PERMUTATION},
    metric=True,
    cost="n·d² + d³",
    cross=True,
    shared_variance=0.3,
    source=WILLIAMS,
)
def permutation_procrustes(pair: Pair) -> float:
    """How far apart two networks stay after the best one-to-one matching of neurons.

    min over permutations P of |X P - Y|, neither centred nor scaled; neurons left over are matched with
    zeros. 0: equal up to the order of neurons.

    Example:
        >>> f"{likewise.measures.permutation_procrustes(x, x + noise):.3f}"
        '40.662'
    """
    pair = pair.on_one_scale
    a, b = pair.a, pair.b
    products = torch.addr(pair.neuron_cross, a.mean, b.mean, alpha=pair.n)
    rows, columns = _assignment(products)
    both = a.norm**2 + b.norm**2
    square = both - 2 * float(products[rows, columns].sum())
    if square > pair.close(1e-4) * both:
        return pair.in_units(math.sqrt(square))
    # Near zero the difference above is rounding: match the neurons and look.
    a.require_double()
    x = a.values if a.d <= b.d else a.values[:, rows]  # rows are listed in order
    y = b.values[:, columns]
    wider, matched = (a, rows) if a.d > b.d else (b, columns)
    alone = torch.ones(wider.d, dtype=torch.bool, device=x.device)
    alone[matched] = False
    return pair.in_units(math.sqrt(_square(y.sub_(x)) + _square(wider.values[:, alone])))


def _square(values: Tensor) -> float:
    return float(torch.linalg.vector_norm(values)) ** 2


def _assignment(gains: Tensor) -> tuple[Tensor, Tensor]:
    """The matching with the largest sum; what a neuron loses against its best partner leads there sooner."""
    array = gains.cpu().double().numpy()
    if array.shape[0] > array.shape[1]:
        columns, rows = _assignment(gains.T)
        order = rows.argsort()
        return rows[order], columns[order]
    losses = array.max(axis=1, keepdims=True) - array
    if array.shape[0] == array.shape[1]:  # all columns are matched, so what all of one lose does not matter
        losses -= losses.min(axis=0)
    rows, columns = linear_sum_assignment(losses)
    return torch.from_numpy(rows).to(gains.device), torch.from_numpy(columns).to(gains.device)


@quantity
def _correlations(pair: Pair) -> Tensor:
    """Pearson correlations between neurons, 0 for a neuron that never varies."""
    pair.refuse_constant()
    x, y = (_inverse_spreads(rep) for rep in (pair.a, pair.b))
    if max(float(x.max()), float(y.max())) < large(x.dtype):
        return x[:, None] * pair.neuron_cross * y
    # products of neurons this small would be lost
    return (pair.a.centred_neurons * x).T @ (pair.b.centred_neurons * y)


@quantity(permuted="same")
def _inverse_spreads(rep: Representation) -> Tensor:
    # some rows at a time: torch's norm down long columns is ten times slower
    sums = [rows.square().sum(dim=0) for rows in torch.split(rep.centred_neurons, 256)]
    spread = torch.stack(sums).sum(dim=0).sqrt_()
    if float(spread.min()) < 1 / large(spread.dtype):
        spread = lengths(rep.centred_neurons, dim=0)
    rounding = max(CONSTANT, rep.view.eps) * math.sqrt(rep.n) * rep.mean.abs()
    return torch.where(spread > rounding, spread, torch.inf).reciprocal()


@measure(
    name="hard-correlation",
    aliases=("HardCorr",),
    larger_is="more alike",
    shared_variance=0.3,
    bounds=(-1, 1),
    identity=None,
    invariant_to={PERMUTATION, SCALE, SHIFT},
    cost="n·d² + d³",
    cross=True,
    source="Li et al. 2015, arXiv:1511.07543",
)
def hard_correlation(pair: Pair) -> float:
    """How well neurons of two networks pair off one to one.

    Mean Pearson correlation over the matching of neurons with the largest sum; surplus neurons of the wider
    network are ignored, a neuron that never varies has correlation 0. 1: the same neurons up to order.

    Example:
        >>> f"{likewise.measures.hard_correlation(x, x + noise):.3f}"
        '0.686'
    """
    gains = _correlations(pair)
    rows, columns = _assignment(gains)
    return float(gains[rows, columns].mean())


@measure(
    name="soft-correlation",
    aliases=("SoftCorr",),
    larger_is="more alike",
    shared_variance=0.3,
    bounds=(-1, 1),
    identity=None,
    invariant_to={PERMUTATION, SCALE, SHIFT},
    cross=True,
    source="Li et al. 2015, arXiv:1511.07543",
)
def soft_correlation(pair: Pair) -> float:
    """How well each neuron finds a partner in the other network, partners shared if need be.

    Mean over neurons of X of the best Pearson correlation with any neuron of Y, the same from Y to X, and
    the mean of both. 1: every neuron has a twin.

    Example:
        >>> f"{likewise.measures.soft_correlation(x, x + noise):.3f}"
        '0.686'
    """
    gains = _correlations(pair)
    return float((gains.amax(dim=1).mean() + gains.amax(dim=0).mean()) / 2)


@measure(
    name="soft-matching",
    aliases=("soft-matching-distance",),
    larger_is="less alike",
    bounds=(0, None),
    identity=0,
    invariant_to={PERMUTATION, SHIFT},
    metric=True,
    cost="n·d² + d³·log d",
    shared_variance=0.25,
    cross=True,
    needs=lambda sizes: OT if sizes[1] != sizes[2] else None,
    source="Khosla & Williams 2024, arXiv:2311.09466",
)
def soft_matching(pair: Pair) -> float:
    """How far apart neurons stay after the best matching, split between partners if widths differ.

    sqrt of the least sum of T_ij |x_i - y_j|² over transport plans T between neurons of equal weight, x_i and
    y_j centred neurons. 0: the same neurons up to order (and doubling).

    Example:
        >>> f"{likewise.measures.soft_matching(x, x + noise):.3f}"
        '10.107'
    """
    pair = pair.on_one_scale
    x, y = pair.a.centred_neurons, pair.b.centred_neurons
    if pair.a.d == pair.b.d:
        rows, columns = _assignment(pair.neuron_cross)
        weights = torch.full((pair.a.d,), 1 / pair.a.d, dtype=x.dtype, device=x.device)
    else:
        ot = OT.load()
        squares = [v.square().sum(dim=0) for v in (x, y)]
        costs = (squares[0][:, None] + squares[1] - 2 * pair.neuron_cross).clamp(min=0)
        uniform = [np.full(rep.d, 1 / rep.d) for rep in (pair.a, pair.b)]
        costs /= costs.max().clamp(min=torch.finfo(costs.dtype).tiny)  # the solver's tolerance is not relative
        plan = torch.from_numpy(ot.emd(*uniform, costs.cpu().double().numpy(), numItermax=10**7)).to(x)
        rows, columns = plan.nonzero(as_tuple=True)
        weights = plan[rows, columns]
    square = float(weights @ (x[:, rows] - y[:, columns]).square().sum(dim=0))
    if square < pair.close(1e-6) * (pair.a.spread**2 / pair.a.d + pair.b.spread**2 / pair.b.d):
        pair.a.require_double()
    return pair.in_units(math.sqrt(square))


@measure(
    name="linear-regression",
    aliases=("LinReg",),
    larger_is="more alike",
    shared_variance=0.5,
    bounds=(0, 1),
    identity=1,
    symmetric=False,
    invariant_to={ROTATION, SCALE, SHIFT},
    cross=True,
    saturates=lambda o: second_wide(),
    source="Li et al. 2015, arXiv:1511.07543; Kornblith et al. 2019, arXiv:1905.00414",
)
def linear_regression(pair: Pair) -> float:
    """How much of the first network is a linear function of the second, on the same inputs.

    |Vᵀ X|² / |X|², V an orthonormal basis of the columns of Y, both centred: the share of the variance of X
    that Y explains in sample. 1: all of it, always so if Y is as wide as there are inputs; `ridge-predictivity` is
    the out-of-sample form.

    Example:
        >>> f"{likewise.measures.linear_regression(x, x + noise):.3f}"
        '0.554'
    """
    return min(1.0, (float(torch.linalg.vector_norm(pair.projection)) / pair.a.size) ** 2)


@measure(
    name="ridge-predictivity",
    aliases=("predictivity", "ridge"),
    larger_is="more alike",
    bounds=(None, 1),
    symmetric=False,
    invariant_to={ROTATION, SCALE, SHIFT},
    cost="folds·n·d²",
    rows=lambda o: 2 * int(o["folds"]),
    limits={"folds": (2, None), "seed": (0, None)},
    shared_variance=0.0,
    always_double=True,
    source="Schrimpf et al. 2018, doi:10.1101/407007",
)
def ridge_predictivity(pair: Pair, *, folds: int = 5, seed: int = 0) -> float:
    """How well the first network can be predicted linearly from the second, on inputs not fitted.

    Pooled R² of ridge regression of X on Y over shuffled folds, the penalty chosen inside each fold by
    generalised cross-validation. 1: perfectly; 0: no better than the mean; below 0: worse.

    Options:
        folds: How many folds the inputs are split into.
        seed: Of the order in which inputs are split.

    Example:
        >>> f"{likewise.measures.ridge_predictivity(x, x + noise):.3f}"
        '0.371'
    """
    pair.refuse_constant()
    target, source = pair.a.compact, pair.b.compact
    order = torch.from_numpy(pair.a.random_order(seed)).to(target.device)
    error = total = 0.0
    for test in order.tensor_split(folds):
        train = torch.ones(pair.n, dtype=torch.bool, device=target.device)
        train[test] = False
        mean = target[train].mean(dim=0)
        guess = mean + _ridge(source[train], target[train] - mean, source[test])
        error += _square(target[test] - guess)
        total += _square(target[test] - mean)
    return 1 - error / total


def _ridge(source: Tensor, target: Tensor, new: Tensor) -> Tensor:
    """Predictions at `new`, with the penalty of least generalised cross-validation error."""
    rows, weights = ridge_factors(source, target)
    return (new - source.mean(dim=0)) @ rows @ weights
