"""Canonical measures: two networks are alike if directions of one can be matched with those of the other.

All three read the overlap of the networks' orthonormal bases, whose singular values are the canonical
correlations.
"""

from __future__ import annotations

import torch
from torch import Tensor

from likewise.errors import UndefinedError
from likewise.measures.facts import LINEAR, PERMUTATION, ROTATION, SCALE, SHIFT
from likewise.measures.numerics.algebra import numpy_svd
from likewise.measures.pair import Pair
from likewise.measures.registry import measure
from likewise.measures.representation import Representation
from likewise.measures.saturation import either_wide
from likewise.measures.workspace import quantity


@measure(
    name="mean-cca",
    aliases=("cca-mean",),
    larger_is="more alike",
    bounds=(0, 1),
    identity=1,
    shared_variance=0.65,
    invariant_to={LINEAR, SHIFT},
    cross=True,
    saturates=lambda o: either_wide(),
    source="Raghu et al. 2017, arXiv:1706.05806",
)
def mean_cca(pair: Pair) -> float:
    """How well, on average, each direction of the smaller network is found in the other.

    Mean of the canonical correlations of X and Y, centred, over the smaller rank. 1: equal up to an
    invertible linear map; 0: unrelated in the limit of many inputs. With n <= d it is 1 for any data.

    Example:
        >>> f"{likewise.measures.mean_cca(x, x + noise):.3f}"
        '0.705'
    """
    return float(pair.correlations.mean())


@measure(
    name="svcca",
    aliases=("SVCCA",),
    larger_is="more alike",
    bounds=(0, 1),
    identity=1,
    shared_variance=0.2,
    invariant_to={ROTATION, SCALE, SHIFT},
    cross=True,
    limits={"variance": (0.01, 1.0)},
    saturates=lambda o: either_wide() if o["variance"] == 1 else None,
    source="Raghu et al. 2017, arXiv:1706.05806",
)
def svcca(pair: Pair, *, variance: float = 0.99) -> float:
    """Mean canonical correlation of the directions that matter.

    Each side keeps its first principal components that explain 99 % of the variance; then the mean of
    their canonical correlations. 1: the same main directions; 0: unrelated in the limit of many inputs.

    Options:
        variance: The share of variance that the kept components explain.

    Example:
        >>> f"{likewise.measures.svcca(x, x + noise):.3f}"
        '0.705'
    """
    k, l = (_component_count(rep, variance) for rep in (pair.a, pair.b))
    return float(torch.linalg.svdvals(pair.principal_overlap(k, l)).clamp(max=1).mean())


def _component_count(rep: Representation, share: float) -> int:
    explained = rep.spectrum[0].square().cumsum(0)
    return int((explained < share * explained[-1] * (1 - rep.close(1e-12))).sum()) + 1


@svcca.variant(
    "resi",
    invariant_to=frozenset({PERMUTATION, ROTATION, SHIFT}),
    saturates=None,
    deviation="One component a side if the squared norm is above 1.01: fractions are compared with 99 % of it.",
)
def svcca_resi(pair: Pair) -> float:
    """Mean canonical correlation of the components the reference keeps."""
    parts = [_reference_components(rep) for rep in (pair.a, pair.b)]
    (k, x), (l, y) = parts
    return float(torch.linalg.svdvals(x[:, None] * pair.principal_overlap(k, l) * y).mean())


def _reference_components(rep: Representation) -> tuple[int, Tensor]:
    """How many components, and what a ridge of 1e-10 of the first leaves of each."""
    squares = rep.spectrum[0].square()
    total = rep.size**2 * 4.0 ** max(-500, min(rep.exponent, 500))  # beyond, it is 0 or out of reach
    enough = squares.cumsum(0) / rep.size**2 >= 0.99 * total
    k = int(enough.int().argmax()) + 1
    scaled = squares[:k] / squares[0]
    scaled = scaled[scaled >= 1e-10]
    return int(scaled.numel()), (scaled / (scaled + 1e-10)).sqrt()


@measure(
    name="pwcca",
    aliases=("PWCCA",),
    larger_is="more alike",
    bounds=(0, 1),
    identity=1,
    shared_variance=0.15,
    symmetric=False,
    invariant_to={PERMUTATION, SCALE, SHIFT},
    cross=True,
    saturates=lambda o: either_wide(),
    version=3,
    source="Morcos et al. 2018, arXiv:1806.05759",
)
def pwcca(pair: Pair) -> float:
    """Canonical correlations weighted by how much of the network each direction carries.

    Sum of a_i rho_i, with a_i = sum over neurons j of |<h_i, x_j>| made to sum to 1, h_i the canonical
    variates of the side with fewer neurons (the first if equal) and x_j its centred neurons. 1: every
    canonical direction, of which there are as many as the smaller rank, is the same in both. With fewer inputs than
    neurons of both together, some correlations are 1 for any networks and rounding decides which directions have them:
    the third digit of the score is then by chance. Show more inputs.

    Example:
        >>> f"{likewise.measures.pwcca(x, x + noise):.3f}"
        '0.720'
    """
    for rep in (pair.a, pair.b):
        rep.refuse_constant(closely=True)
    if any(rep.d >= pair.n - 1 and rep.rank == pair.n - 1 for rep in (pair.a, pair.b)):
        return 1.0  # it expresses anything on these inputs, so every correlation is 1
    left, rho, right = pair.canonical
    rep, directions = (pair.a, left) if pair.a.d <= pair.b.d else (pair.b, right)
    weights = (directions.T @ _loadings(rep)).abs().sum(dim=1)
    return float((weights * rho).sum() / weights.sum())


def _loadings(rep: Representation) -> Tensor:
    """Inner products of the basis with each centred neuron, (rank, d)."""
    if rep.wide:
        return rep.basis().T @ rep.centred_neurons
    white = rep.whitening()
    return white.T @ rep.covariance if white.numel() else rep.basis().T @ rep.centred


@pwcca.variant(
    "resi",
    invariant_to=frozenset({SCALE}),
    bounds=(0, None),
    deviation="Weights from unwhitened directions with the means added back, against uncentred neurons.",
    version=4,
)
def pwcca_resi(pair: Pair) -> float:
    """Sum of a_i rho_i with the reference's weights.

    The means are added to directions whose sign is arbitrary, so the sign LAPACK gives matters: the
    same matrix is decomposed by the same routine, of LAPACK as numpy has it, for each direction anew.
    """
    a, b = pair.a, pair.b
    if a.d >= pair.n or a.d > b.d or a.rank < a.d or b.rank < b.d:
        raise UndefinedError(
            f"the reference's PWCCA is undefined for {pair}: it needs more rows than neurons, no dead "
            "or dependent neuron, and no more neurons on the first side than on the second. "
            "Use the default variant."
        )
    white = _white_cross(pair)
    directions, rho, _ = map(torch.from_numpy, numpy_svd(white.cpu().numpy()))
    u = directions.to(a.values)
    # Q of the QR decomposition of the projections M, without M itself: MᵀM = RᵀR.
    turned = (a.covariance @ u).T
    moment = (turned @ u).addr_(a.mean, a.mean, alpha=pair.n)
    triangle, failed = torch.linalg.cholesky_ex(moment)
    if failed:  # squares of scales this far apart are lost to rounding, the scales are not
        projections = torch.linalg.qr(a.centred @ u + a.mean).Q
        products = projections.T @ a.values
    else:
        turned.addr_(a.mean, a.mean, alpha=pair.n)
        products = torch.linalg.solve_triangular(triangle, turned, upper=False)
    weights = products.abs().sum(dim=1).cpu()
    return float(weights @ rho / weights.sum())


@quantity(swapped="transposed")
def _white_cross(pair: Pair) -> Tensor:
    """The cross-covariance of both networks whitened without a turn."""
    (_, v, u), (_, w, p) = pair.a.spectrum, pair.b.spectrum
    if u.numel() or p.numel():  # products of the values would have lost digits
        return v @ pair.principal_overlap() @ w.T
    return _whitening(pair.a) @ pair.cross @ _whitening(pair.b)


@quantity(permuted="same")
def _whitening(rep: Representation) -> Tensor:
    """The symmetric inverse root of the covariance."""
    scales, vectors, _ = rep.spectrum
    return (vectors / scales) @ vectors.T
