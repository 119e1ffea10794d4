"""Similarity-matrix measures: two networks are alike if they find the same inputs alike.

Each network is seen through the n x n matrix of its inputs' inner products, distances or correlations.
Most are inner products of such matrices, so over many networks all pairs come from one product.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import torch
from scipy.linalg.blas import dsymv
from scipy.sparse.linalg import LinearOperator, eigsh
from torch import Tensor

from likewise.errors import UndefinedError
from likewise.measures.algebra import inverse_of, lengths
from likewise.measures.facts import LINEAR, ROTATION, SCALE, SHIFT
from likewise.measures.kernels import Distance, Gaussian, Linear
from likewise.measures.minibatch import SMALLEST_BATCH, MinibatchCKA
from likewise.measures.pair import Pair, pair_of
from likewise.measures.ranks import Ranks
from likewise.measures.registry import measure
from likewise.measures.representation import Representation
from likewise.measures.saturation import Sizes, either_wide, ranks
from likewise.measures.values import CONSTANT
from likewise.measures.workspace import quantity
from likewise.views import Activations

COARSE = 1e-3  # share of the terms of an estimate below which they must be exact
LOST = 1e-9  # share below which doubles are not exact enough either
SMALLEST = 1e-280  # below, doubles lose digits
KORNBLITH = "Kornblith et al. 2019, arXiv:1905.00414"


@measure(
    name="cka",
    family="rsm",
    aliases=("CKA", "linear-cka"),
    larger_is="more alike",
    bounds=(0, 1),
    identity=1,
    invariant_to={ROTATION, SCALE, SHIFT},
    cross=True,
    kernels=lambda o: (Linear(),),
    source=KORNBLITH,
    shapes="flatten",
)
def cka(pair: Pair) -> float:
    """How far two networks agree on which inputs are alike, by the biased estimator.

    |Xᵀ Y|² / (|Xᵀ X| |Yᵀ Y|) with X (n, d) and Y (n, d') centred by columns and | | the Frobenius norm.
    0: no direction of one goes with any of the other; 1: equal up to rotation and scale. Biased upwards
    when n is not much larger than d (0.84 for independent noise at n = 100, d = 512): then read
    `cka-debiased`.
    """
    pair.refuse_constant()
    table = pair.table(Linear())
    own = table.dot(pair.a, pair.a), table.dot(pair.b, pair.b)
    return table.dot(pair.a, pair.b) / (math.sqrt(own[0]) * math.sqrt(own[1]))


def _debiased(pair: Pair) -> float:
    table = pair.table(Linear())
    shares = [table.unbiased(rep, rep) / table.dot(rep, rep) for rep in (pair.a, pair.b)]
    if min(shares) < COARSE:  # single precision might not do
        table = pair.table(Linear(exact=True))
    own = [table.unbiased(rep, rep) for rep in (pair.a, pair.b)]
    for rep, value in zip((pair.a, pair.b), own, strict=True):
        _refuse_lost(rep, value, table.dot(rep, rep), "Show the networks more inputs.")
    return table.unbiased(pair.a, pair.b) / (math.sqrt(own[0]) * math.sqrt(own[1]))


def _refuse_lost(rep: Representation, own: float, terms: float, remedy: str) -> None:
    """Refuse an unbiased estimate that is below zero, or a small rest of the terms it is made of."""
    if abs(own) <= LOST * terms or terms < SMALLEST:
        raise UndefinedError(
            f"the unbiased estimate of the similarity of {rep.name} with itself is lost to rounding: some "
            "inputs are far larger than others. Scale the rows, or leave those out."
        )
    if own < 0:
        raise UndefinedError(
            f"the unbiased estimate of the similarity of {rep.name} with itself is not positive. {remedy}"
        )


@measure(
    name="cka-debiased",
    family="rsm",
    aliases=("debiased-cka", "cka-unbiased"),
    larger_is="more alike",
    bounds=(None, 1),
    identity=1,
    invariant_to={ROTATION, SCALE, SHIFT},
    rows=4,
    cross=True,
    kernels=lambda o: (Linear(),),
    source="Song et al. 2012, JMLR 13; Murphy et al. 2024, arXiv:2405.01012",
)
def cka_debiased(pair: Pair) -> float:
    """How far two networks agree on which inputs are alike, about 0 for unrelated ones whatever n and d.

    CKA with the unbiased estimator of HSIC (HSIC1): the diagonals of the Gram matrices are left out and
    their means corrected for. 0: unrelated (a little below is chance); 1: equal up to rotation and scale.
    """
    pair.refuse_constant()
    return _debiased(pair)


@measure(
    name="cka-minibatch",
    family="rsm",
    aliases=("minibatch-cka",),
    larger_is="more alike",
    bounds=(None, 1),
    identity=1,
    invariant_to={ROTATION, SCALE, SHIFT},
    rows=lambda o: 4,
    cost="n·b·d",
    limits={"batch": (4, None)},
    source="Nguyen et al. 2021, arXiv:2010.15327",
)
def cka_minibatch(pair: Pair, *, batch: int = 256) -> float:
    """Debiased CKA from small batches, for activations that never stand in memory together.

    Sum over batches of HSIC1(X_b, Y_b), each weighted by its rows, divided by the root of the product of
    the sums of HSIC1(X_b, X_b) and HSIC1(Y_b, Y_b): a ratio of sums, never a mean of ratios. Batches are
    taken in the order of the inputs; a last one of fewer than four rows is left out. Approaches
    `cka-debiased` as batches grow.
    """
    pair.refuse_constant()
    sums = MinibatchCKA()
    for start, stop in pair.a.batches(batch):
        if stop - start >= SMALLEST_BATCH:
            sums.add(*([rep.centred_neurons[start:stop]] for rep in (pair.a, pair.b)))
    score = float(sums.cross)
    for rep, (own, terms) in zip((pair.a, pair.b), sums.own, strict=True):
        _refuse_lost(rep, float(own), float(terms), "Use larger batches.")
        score /= math.sqrt(float(own))
    return score


@measure(
    name="cka-rbf",
    family="rsm",
    aliases=("rbf-cka",),
    larger_is="more alike",
    bounds=(0, 1),
    identity=1,
    invariant_to={ROTATION, SCALE, SHIFT},
    cost="n²·d",
    kernels=lambda o: (Gaussian(o["bandwidth"]),),
    limits={"bandwidth": (1e-3, 1e3)},
    rows=3,
    source=KORNBLITH,
)
def cka_rbf(pair: Pair, *, bandwidth: float = 0.5) -> float:
    """How far two networks agree on which inputs are near each other, with a Gaussian kernel.

    CKA of K_ij = exp(-|x_i - x_j|² / 2 s²), s = bandwidth times the median distance over all pairs of inputs,
    centred, biased. 0: unrelated; 1: the same neighbourhoods. Small bandwidths look at near inputs only.
    Undefined where more than half of the pairs are equal.
    """
    table = pair.table(Gaussian(bandwidth))
    return table.centred(pair.a, pair.b) / math.sqrt(table.centred(pair.a, pair.a) * table.centred(pair.b, pair.b))


@measure(
    name="cka-deconfounded",
    family="rsm",
    aliases=("deconfounded-cka", "dcka"),
    larger_is="more alike",
    bounds=(-1, 1),
    identity=1,
    invariant_to={ROTATION, SCALE, SHIFT},
    cross=True,
    source="Cui et al. 2022, arXiv:2202.00095",
)
def cka_deconfounded(pair: Pair, *, confounder: Any) -> float:
    """CKA without what the inputs themselves already have in common.

    `confounder` (n, p) holds the inputs, or their features. With centred Gram matrices K, L and C, what C
    explains of K and L by least squares is taken off, K - C <K, C> / <C, C>, and CKA taken of the rest.
    1: equal beyond the inputs; 0: nothing in common but the inputs.
    """
    if not isinstance(confounder, Activations):
        confounder = Activations(confounder, name="confounder")
    third = pair_of(confounder, pair.a.view).a
    pair.refuse_constant()
    kl, kc, lc = (
        Pair(x, y).table(Linear(exact=True)).dot(x, y) for x, y in ((pair.a, pair.b), (pair.a, third), (pair.b, third))
    )
    kk, ll, cc = pair.a.energy**2, pair.b.energy**2, third.energy**2
    left, right = kk - kc**2 / cc, ll - lc**2 / cc
    if min(left / kk, right / ll) < 1e-9:
        raise UndefinedError(f"the confounder explains all of one side of {pair}; nothing is left.")
    return (kl - kc * lc / cc) / math.sqrt(left * right)


@measure(
    name="distance-correlation",
    family="rsm",
    aliases=("DistCorr",),
    larger_is="more alike",
    bounds=(0, 1),
    identity=1,
    invariant_to={ROTATION, SCALE, SHIFT},
    cost="n²·d",
    kernels=lambda o: (Distance(),),
    source="Székely et al. 2007, arXiv:0803.4101",
    shapes="flatten",
)
def distance_correlation(pair: Pair) -> float:
    """How far distances between inputs in one network go with those in the other.

    With A, B the Euclidean distance matrices, centred by rows and columns: the root of
    mean(A B) / sqrt(mean(A A) mean(B B)). 1: equal up to rotation and scale; 0 only in the limit of many
    inputs: independent noise scores 0.98 at n = 100, d = 512.
    """
    pair.refuse_constant()
    table = pair.table(Distance())
    own = table.centred(pair.a, pair.a) * table.centred(pair.b, pair.b)
    return math.sqrt(max(0.0, table.centred(pair.a, pair.b)) / math.sqrt(own))


@measure(
    name="rsa",
    family="rsm",
    aliases=("RSA",),
    larger_is="more alike",
    bounds=(-1, 1),
    identity=1,
    invariant_to={"permutation", SCALE},
    cost="n²·log n",
    rows=3,
    kernels=lambda o: (Ranks(),),
    source="Kriegeskorte et al. 2008, doi:10.3389/neuro.06.004.2008",
    shapes="flatten",
)
def rsa(pair: Pair) -> float:
    """Whether two networks order pairs of inputs alike, from most to least correlated.

    Spearman correlation over pairs i < j of the Pearson correlations between rows i and j of X and of Y.
    1: same order; 0: unrelated; -1: reversed. Rows are centred over neurons, so a rotation changes it.
    """
    return pair.table(Ranks()).dot(pair.a, pair.b)


@measure(
    name="rsm-difference",
    family="rsm",
    aliases=("RSMDiff",),
    larger_is="less alike",
    bounds=(0, None),
    joint=-1.0,  # skewed: large scores stray further than left-out inputs show
    identity=0,
    invariant_to={ROTATION, SHIFT},
    metric=True,
    cost="n²·d",
    kernels=lambda o: (Distance(),),
    source="Yin & Shen 2018, arXiv:1812.04224",
    shapes="flatten",
)
def rsm_difference(pair: Pair) -> float:
    """How much distances between inputs differ, in the units of the activations.

    Frobenius norm of D - D', the Euclidean distance matrices of X and Y. 0: equal up to rotation and shift;
    it grows with scale and with n.
    """
    pair = pair.on_one_scale
    table, a, b = pair.table(Distance()), pair.a, pair.b
    own = table.dot(a, a) + table.dot(b, b)
    square = own - 2 * table.dot(a, b)
    if square > 1e-6 * own:
        return pair.in_units(math.sqrt(square))
    exact = (a.kept_distance_rows(i, j) - b.kept_distance_rows(i, j) for i, j in a.blocks(3))
    length = math.sqrt(sum(float(torch.linalg.vector_norm(block)) ** 2 for block in exact))
    return pair.in_units(length)


@rsm_difference.variant(
    "resi",
    differs="The spectral norm of D - D', not the Frobenius norm.",
    kernels=None,
    cost="n²·iterations",
)
def rsm_difference_resi(pair: Pair) -> float:
    """The largest eigenvalue, by size, of the difference of the distance matrices.

    Found by Lanczos iteration: the matrix is only ever multiplied by vectors.
    """
    pair = pair.on_one_scale
    return pair.in_units(_spectral_difference(pair))


def _spectral_difference(pair: Pair) -> float:
    n, product = pair.n, _difference_product(pair)
    if n < 64:
        columns = np.stack([product(column) for column in np.eye(n)])
        return float(np.abs(np.linalg.eigvalsh(columns)).max())
    start = product(np.ones(n))
    if not start.any():
        start = product(np.random.default_rng(0).normal(size=n))
        if not start.any():
            return 0.0
    # the error of an eigenvalue is the square of its vector's, so a short iteration does
    operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
    found = eigsh(operator, k=1, v0=start, ncv=6, tol=1e-8, return_eigenvectors=False)
    return float(abs(found[0]))


def _difference_product(pair: Pair) -> Callable[[np.ndarray], np.ndarray]:
    """Multiplication of D - D' by a vector, from both matrices where they are kept and differ beyond rounding."""
    a, b = pair.a, pair.b
    if a.keeps_distances and b.keeps_distances and pair.n >= 64:
        sums = _distance_sums(a)
        if float((sums - _distance_sums(b)).norm()) > 1e-4 * float(sums.norm()):
            return lambda vector: _symmetric_product(a.distances, vector) - _symmetric_product(b.distances, vector)
    n, single = pair.n, not a.workspace.keeps_squares(pair.n)
    a.workspace.reserve(n * n * (4 if single else 8))
    kind = torch.float32 if single else a.values.dtype
    difference = torch.empty(n, n, dtype=kind, device=a.values.device)
    for i, j in a.blocks(4):
        torch.sub(a.kept_distance_rows(i, j), b.kept_distance_rows(i, j), out=difference[i:j])
    if not single:
        return lambda vector: _symmetric_product(difference, vector)

    def product(vector: np.ndarray) -> np.ndarray:
        v = torch.from_numpy(vector.ravel()).to(difference.device)
        return torch.cat([difference[i:j].double() @ v for i, j in a.blocks(4)]).cpu().numpy()

    return product


@quantity(permuted="rows")
def _distance_sums(rep: Representation) -> Tensor:
    """The sum of the distances of each input to all others, (n,)."""
    return rep.distances.sum(dim=1)


def _symmetric_product(matrix: Tensor, vector: np.ndarray) -> np.ndarray:
    if matrix.device.type == "cpu" and matrix.dtype == torch.float64:
        # reads one half of the matrix, and reading it is what takes the time
        return dsymv(1.0, matrix.numpy().T, vector.ravel())
    v = torch.from_numpy(vector.ravel()).to(matrix)
    return (matrix @ v).cpu().numpy()


@measure(
    name="eos",
    family="rsm",
    aliases=("EOS", "eigenspace-overlap"),
    larger_is="more alike",
    bounds=(0, 1),
    joint=0.6,
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
    """
    shared = float(torch.linalg.vector_norm(pair.raw_overlap)) ** 2
    return min(1.0, shared / max(pair.raw_overlap.shape))


def _eos_of_sizes(sizes: Sizes) -> float:
    n, a, b = sizes
    return min(a, b, n) / n


@eos.variant(
    "resi",
    differs="Divided by the larger width, not the larger rank.",
    identity=None,
    saturates=lambda o: either_wide(lambda sizes: min(sizes) / max(sizes[1:]), less=0),
)
def eos_resi(pair: Pair) -> float:
    """|Uᵀ V|² / max(d, d')."""
    return float(torch.linalg.vector_norm(pair.raw_overlap)) ** 2 / max(pair.a.d, pair.b.d)


@measure(
    name="gulp",
    family="rsm",
    aliases=("GULP",),
    larger_is="less alike",
    bounds=(0, None),
    identity=0,
    joint=1.0,
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
    """
    if not ridge:
        square = sum(pair.overlap.shape) - 2 * float(torch.linalg.vector_norm(pair.overlap)) ** 2
        if square > 1e-6 * sum(pair.overlap.shape):
            return math.sqrt(square)
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
    differs="The square of the distance, with widths for ranks: above 0 for a network with dead neurons and itself.",
    metric=False,
    identity=None,
    saturates=lambda o: either_wide(lambda sizes: _gulp_of_sizes(sizes) ** 2),
)
def gulp_resi(pair: Pair) -> float:
    """d + d' - 2 times the sum of squared canonical correlations."""
    for rep in (pair.a, pair.b):
        dead = int((rep.values == rep.values[0]).all(dim=0).sum())
        if pair.n < rep.d or rep.rank + dead < rep.d:
            raise UndefinedError(
                f"the reference's GULP is undefined for {pair}: {rep.name} has {rep.d} neurons that span "
                f"{rep.rank} dimensions on {pair.n} inputs. Use the default variant."
            )
    shared = float(torch.linalg.vector_norm(pair.overlap)) ** 2
    return max(0.0, pair.a.d + pair.b.d - 2 * shared)


@measure(
    name="riemann",
    family="rsm",
    aliases=("riemannian", "airm"),
    larger_is="less alike",
    bounds=(0, None),
    joint=0.6,
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
    """
    # Outside the span of both networks K and L are both s I and add nothing: work inside it,
    # unless it is about all there is.
    bases = [rep.principal_basis for rep in (pair.a, pair.b)]
    if bases[0].shape[1] + bases[1].shape[1] < pair.n:
        joint, scales, _ = torch.linalg.svd(torch.cat(bases, dim=1), full_matrices=False)
        joint = joint[:, scales > 1e-10 * scales[0]]
        bases = [joint.T @ basis for basis in bases]
    shrunk = []
    for rep, basis in zip((pair.a, pair.b), bases, strict=True):
        factors = basis * (rep.spectrum[0] * math.sqrt(pair.n) / rep.size)
        identity = torch.eye(basis.shape[0], dtype=basis.dtype, device=basis.device)
        shrunk.append(((1 - shrinkage) * factors @ factors.T + shrinkage * identity).cpu().numpy())
    return float(np.linalg.norm(_log_eigenvalues(*shrunk)))


def _log_eigenvalues(k: np.ndarray, l: np.ndarray) -> np.ndarray:
    """Logarithms of the generalised eigenvalues of two positive definite matrices."""
    found = scipy.linalg.eigh(k, l, eigvals_only=True)
    if found[0] > 1e-8 * found[-1]:
        return np.asarray(np.log(found))
    # Rounding is a share of the largest: those below 1 are found as the large ones the other way round.
    back = scipy.linalg.eigh(l, k, eigvals_only=True)[::-1]
    return np.log(np.where(found > 1, found, 1)) - np.log(np.where(found > 1, 1, back))


@measure(
    name="pnka",
    family="rsm",
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
        if max(float(x.max()), float(y.max())) < 1e100:
            found = (k * l).sum(dim=1) * (x * y)[:, 0]
        else:  # products of rows this small would be lost
            found = ((k * x) * (l * y)).sum(dim=1)
        a, b = (_at_the_mean(rep)[start:stop] for rep in (pair.a, pair.b))
        points.append(torch.where(a | b, (a & b).to(found.dtype), found))
    return torch.cat(points)
