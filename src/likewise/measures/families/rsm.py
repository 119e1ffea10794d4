"""Similarity-matrix measures: two networks are alike if they find the same inputs alike.

Each network is seen through the n x n matrix of its inputs' distances or correlations. Most are inner products
of such matrices, so over many networks all pairs come from one product.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from scipy.linalg.blas import dsymv
from scipy.sparse.linalg import LinearOperator, eigsh
from torch import Tensor

from likewise._base.arrays import Array
from likewise.measures.facts import ROTATION, SCALE, SHIFT
from likewise.measures.numerics.kernels import Distance, Products, roots
from likewise.measures.numerics.ranks import CorrelationRanks
from likewise.measures.pair import Pair
from likewise.measures.registry import measure
from likewise.measures.representation import Representation
from likewise.measures.workspace import quantity


@measure(
    name="distance-correlation",
    aliases=("DistCorr",),
    larger_is="more alike",
    bounds=(0, 1),
    identity=1,
    invariant_to={ROTATION, SCALE, SHIFT},
    cost="n²·d",
    kernels=lambda o: (Distance(),),
    matrix=lambda p: np.sqrt(np.maximum(p.centred, 0) / roots(p.left.centred, p.right.centred)),
    source="Székely et al. 2007, arXiv:0803.4101",
    shapes="flatten",
)
def distance_correlation(pair: Pair) -> float:
    """How far distances between inputs in one network correlate with those in the other.

    With A, B the Euclidean distance matrices, centred by rows and columns: the root of
    mean(A B) / sqrt(mean(A A) mean(B B)). 1: equal up to rotation and scale; 0 only in the limit of many
    inputs: independent noise scores 0.98 at n = 100, d = 512.

    Example:
        >>> f"{likewise.measures.distance_correlation(x, x + noise):.3f}"
        '0.817'
    """
    pair.refuse_constant()
    table = pair.table(Distance())
    sizes = table.centred(pair.a, pair.a) * table.centred(pair.b, pair.b)
    return math.sqrt(max(0.0, table.centred(pair.a, pair.b)) / math.sqrt(sizes))


@measure(
    name="rsa",
    aliases=("RSA",),
    larger_is="more alike",
    bounds=(-1, 1),
    identity=1,
    invariant_to={"permutation", SCALE},
    cost="n²·log n",
    rows=3,
    kernels=lambda o: (CorrelationRanks(),),
    matrix=lambda p: p.dot,
    always_double=True,
    source="Kriegeskorte et al. 2008, doi:10.3389/neuro.06.004.2008",
    shapes="flatten",
)
def rsa(pair: Pair) -> float:
    """Whether two networks order pairs of inputs alike, from most to least correlated.

    Spearman correlation over pairs i < j of the Pearson correlations between rows i and j of X and of Y.
    1: same order; 0: unrelated; -1: reversed. Rows are centred over neurons, so a rotation changes it.

    Example:
        >>> f"{likewise.measures.rsa(x, x + noise):.3f}"
        '0.418'
    """
    return pair.table(CorrelationRanks()).dot(pair.a, pair.b)


@measure(
    name="rsm-difference",
    aliases=("RSMDiff",),
    larger_is="less alike",
    bounds=(0, None),
    shared_variance=-1.0,  # skewed: large scores stray further than left-out inputs show
    identity=0,
    invariant_to={ROTATION, SHIFT},
    metric=True,
    cost="n²·d",
    kernels=lambda o: (Distance(),),
    matrix=lambda p: _differences(p),
    source="Yin & Shen 2018, arXiv:1812.04224",
    shapes="flatten",
)
def rsm_difference(pair: Pair) -> float:
    """How much distances between inputs differ, in the units of the activations.

    Frobenius norm of D - D', the Euclidean distance matrices of X and Y. 0: equal up to rotation and shift;
    it grows with scale and with n.

    Example:
        >>> f"{likewise.measures.rsm_difference(x, x + noise):.3f}"
        '260.385'
    """
    pair = pair.on_one_scale
    table, a, b = pair.table(Distance()), pair.a, pair.b
    both = table.dot(a, a) + table.dot(b, b)
    square = both - 2 * table.dot(a, b)
    if square > pair.close(1e-6) * both:
        return pair.in_units(math.sqrt(square))
    a.require_double()
    exact = (a.distance_rows(i, j) - b.distance_rows(i, j) for i, j in a.blocks(3))
    length = math.sqrt(sum(float(torch.linalg.vector_norm(block)) ** 2 for block in exact))
    return pair.in_units(length)


def _differences(products: Products) -> Array:
    """The same of many pairs; NaN where the scale is extreme, or little is left of the squares."""
    both = np.add.outer(products.left.dot, products.right.dot)
    square = both - 2 * products.dot
    extreme = np.logical_or.outer(products.left.exponents != 0, products.right.exponents != 0)
    return np.sqrt(np.where(extreme | (square <= products.close(1e-6) * both), np.nan, square))


@rsm_difference.variant(
    "resi",
    deviation="The spectral norm of D - D', not the Frobenius norm.",
    kernels=None,
    matrix=None,
    cost="n²·iterations",
    always_double=True,
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
    start = _row_sums(pair, product)
    if not start.any():
        start = product(np.random.default_rng(0).normal(size=n))
        if not start.any():
            return 0.0
    # the error of an eigenvalue is the square of its vector's, so a short iteration does
    operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
    [value] = eigsh(operator, k=1, v0=start, ncv=4, tol=1e-6, return_eigenvectors=False)
    return float(abs(value))


def _row_sums(pair: Pair, product: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """The row sums of D - D'; each network's are kept with its distances."""
    a, b = pair.a, pair.b
    if a.keeps_distances and b.keeps_distances:
        return np.asarray((_distance_sums(a) - _distance_sums(b)).cpu().numpy())
    return product(np.ones(pair.n))


def _difference_product(pair: Pair) -> Callable[[np.ndarray], np.ndarray]:
    """Multiplication of D - D' by a vector, from both matrices where they are kept and differ beyond rounding."""
    a, b = pair.a, pair.b
    if a.keeps_distances and b.keeps_distances and pair.n >= 64:
        sums = _distance_sums(a)
        if float((sums - _distance_sums(b)).norm()) > pair.close(1e-4) * float(sums.norm()):
            return lambda vector: _symmetric_product(a.distances, vector) - _symmetric_product(b.distances, vector)
    n, single = pair.n, not a.workspace.keeps_squares(pair.n)
    a.workspace.reserve(n * n * (4 if single else 8))
    kind = torch.float32 if single else a.values.dtype
    difference = torch.empty(n, n, dtype=kind, device=a.values.device)
    for i, j in a.blocks(4):
        torch.sub(a.distance_rows(i, j), b.distance_rows(i, j), out=difference[i:j])
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
