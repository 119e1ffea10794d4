"""Topological measures: two networks are alike if the shapes of their point clouds are.

IMD compares heat traces of neighbour graphs; a heat trace is a network's own, so it is computed once
however many pairs are asked for. RTD follows holes that one cloud has and the other fills.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sparse
import torch
from scipy.special import factorial
from torch import Tensor

from likewise._base.optional import Library
from likewise.errors import UndefinedError
from likewise.measures.facts import ROTATION, SCALE, SHIFT
from likewise.measures.numerics.distances import ROUNDING
from likewise.measures.numerics.neighbor_lists import neighbor_lists
from likewise.measures.pair import Pair
from likewise.measures.registry import measure
from likewise.measures.representation import Representation
from likewise.measures.workspace import quantity

NEIGHBORS = 5
EXACT_UP_TO = 2000  # inputs for which all eigenvalues are computed
TIMES = np.logspace(-1, 1, 256)
MOMENTS = 8  # powers of the graph whose traces are taken exactly
STEPS = 10  # of the Lanczos iteration
RIPSER = Library("ripser", extra="measures", to="compute rtd")
TSITSULIN = "Tsitsulin et al. 2020, arXiv:1905.11141"

IMD_LIMITS: dict[str, Any] = {"mode": ("auto", "exact", "stochastic"), "vectors": (1, None), "seed": (0, None)}


def _imd(trace: np.ndarray, other: np.ndarray, n: int) -> float:
    weights = np.exp(-2 * (TIMES + 1 / TIMES))
    return float(1e6 / n * (weights * np.abs(trace - other)).max())


@measure(
    name="imd",
    aliases=("IMD",),
    larger_is="less alike",
    bounds=(0, None),
    identity=0,
    invariant_to={ROTATION, SCALE, SHIFT},
    metric=True,
    paired=False,
    cost="n²·d, then n³ up to 2,000 inputs",
    rows=NEIGHBORS + 1,
    limits=IMD_LIMITS,
    always_double=True,
    source=TSITSULIN,
)
def imd(pair: Pair, *, mode: str = "auto", vectors: int = 64, seed: int = 0) -> float:
    """How differently heat spreads on the neighbour graphs of two networks.

    h(t) = tr exp(-t L), L the normalised Laplacian of the graph of 5 Euclidean neighbours (united); then the
    largest of exp(-2 (t + 1/t)) |h(t) - h'(t)| 1e6 / n over 256 times t from 0.1 to 10. 0: the same graph up to the
    order of inputs. Exact (eigenvalues) up to 2,000 inputs; above, exact in the first eight powers of the graph
    and stochastic Lanczos, seeded, for the rest.

    Options:
        mode: "exact", "stochastic", or by the number of inputs.
        vectors: How many random vectors stochastic Lanczos starts from.
        seed: Of the random draws.

    Example:
        >>> f"{likewise.measures.imd(x, x + noise):.3f}"
        '21.064'
    """
    a, b = (heat_trace(rep, mode, vectors, seed) for rep in (pair.a, pair.b))
    return _imd(a, b, pair.n)


@imd.variant(
    "resi",
    identity=None,
    metric=False,
    deviation="In stochastic mode 8,000 vectors, 5 repetitions and noise per side, so above 0 for equal inputs.",
    version=3,
)
def imd_resi(pair: Pair, *, mode: str = "auto", vectors: int = 8000, seed: int = 0) -> float:
    """The same; mode="stochastic" repeats the reference's estimator, with a seed."""
    if _exact(pair.a, mode):
        return _imd(heat_trace(pair.a, "exact"), heat_trace(pair.b, "exact"), pair.n)
    # in an order of their own, so that each graph meets the same noise on either side
    graphs = sorted(map(_graph, (pair.a, pair.b)), key=lambda g: g.indices.tobytes(), reverse=True)
    scores = []
    for repetition in range(5):
        traces = [
            _lanczos_trace(graph, vectors, (seed, repetition, side), moments=1) for side, graph in enumerate(graphs)
        ]
        scores.append(_imd(traces[0], traces[1], pair.n))
    return float(np.mean(scores))


def _exact(rep: Representation, mode: str) -> bool:
    return mode == "exact" or (mode == "auto" and rep.n <= EXACT_UP_TO)


def heat_trace(rep: Representation, mode: str, vectors: int = 64, seed: int = 0) -> np.ndarray:
    """tr exp(-t L) at the times of IMD, (256,)."""
    return _exact_trace(rep) if _exact(rep, mode) else _estimated_trace(rep, vectors, seed)


@quantity(permuted="same")
def _estimated_trace(rep: Representation, vectors: int, seed: int) -> np.ndarray:
    return _lanczos_trace(_graph(rep), vectors, (seed,), moments=MOMENTS)


@quantity
def _graph(rep: Representation) -> sparse.csr_array:
    """The neighbour graph, weights scaled to D^-1/2 A D^-1/2, so that L = I - it."""
    lists = neighbor_lists(rep, NEIGHBORS, "euclidean").cpu().numpy()
    rows = np.repeat(np.arange(rep.n), NEIGHBORS)
    graph = sparse.csr_array((np.ones(rows.size), (rows, lists.ravel())), shape=(rep.n, rep.n))
    graph = graph.maximum(graph.T)
    scale = sparse.diags_array(1 / np.sqrt(graph.sum(axis=1)))
    return sparse.csr_array(scale @ graph @ scale)


@quantity(permuted="same")
def _exact_trace(rep: Representation) -> np.ndarray:
    laplacian = torch.eye(rep.n, dtype=torch.float64) - torch.from_numpy(_graph(rep).toarray())
    eigenvalues = torch.linalg.eigvalsh(laplacian).numpy()
    return np.asarray(np.exp(-np.outer(TIMES, eigenvalues)).sum(axis=1))


def _lanczos_trace(graph: sparse.csr_array, vectors: int, seed: tuple[int, ...], *, moments: int) -> np.ndarray:
    """Stochastic Lanczos quadrature, with the first powers of the graph counted exactly.

    exp(-t L) = exp(-t) (I + t A + t² A² / 2 + ...). The first powers' traces are cheap and exact for a
    sparse graph A; only what remains of the series is left to chance, which is little.
    """
    nodes, weights = _quadrature(graph, vectors, np.random.default_rng(seed))
    order = np.arange(moments + 1)
    series = TIMES[:, None] ** order / factorial(order)
    exact = series @ _power_traces(graph, moments)
    rest = np.zeros_like(TIMES)
    for power_sums, weight in zip(nodes, weights, strict=True):
        tail = np.exp(np.outer(TIMES, power_sums)) - series @ (power_sums ** order[:, None])
        rest += tail @ weight
    return np.asarray(np.exp(-TIMES) * (exact + graph.shape[0] * rest / len(nodes)))


def _power_traces(graph: sparse.csr_array, moments: int) -> np.ndarray:
    """tr A^0 ... tr A^moments, some columns of the powers at a time: tr A^(i+j) = <A^i, A^j>."""
    n = graph.shape[0]
    traces = np.zeros(moments + 1)
    traces[0] = n
    step = max(1, (1 << 21) // n)
    for start in range(0, n, step):
        powers = [np.eye(n, min(step, n - start), -start), graph[:, start : start + step].toarray()]
        while 2 * (len(powers) - 1) < moments:
            powers.append(graph @ powers[-1])
        for i in range(1, moments + 1):
            traces[i] += np.vdot(powers[i // 2], powers[i - i // 2])
    return traces


def _quadrature(graph: sparse.csr_array, vectors: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Gauss quadrature for each start vector, (vectors, steps) each."""
    nodes, weights = [], []
    for first in range(0, vectors, 256):
        count = min(256, vectors - first)
        v = rng.standard_normal((graph.shape[0], count))
        v /= np.linalg.norm(v, axis=0)
        steps = min(STEPS, graph.shape[0])
        basis = np.empty((steps, *v.shape))
        triangle = np.zeros((count, steps, steps))
        for j in range(steps):
            basis[j] = v
            v = graph @ v
            triangle[:, j, j] = (basis[j] * v).sum(axis=0)
            for _ in range(2):  # twice is enough to keep the basis orthogonal
                v -= np.einsum("jnc,jc->nc", basis[: j + 1], np.einsum("jnc,nc->jc", basis[: j + 1], v))
            length = np.linalg.norm(v, axis=0)
            if j + 1 < steps:
                triangle[:, j, j + 1] = triangle[:, j + 1, j] = np.where(length > 1e-10, length, 0)
                v = np.where(length > 1e-10, v / np.maximum(length, 1e-300), 0)
        values, turned = np.linalg.eigh(triangle)
        nodes.append(values)
        weights.append(turned[:, 0, :] ** 2)
    return np.concatenate(nodes), np.concatenate(weights)


@measure(
    name="rtd",
    aliases=("RTD",),
    larger_is="less alike",
    bounds=(0, None),
    identity=0,
    invariant_to={ROTATION, SCALE, SHIFT},
    cost="trials·batch³",
    rows=4,
    limits={"batch": (4, None), "trials": (1, None), "seed": (0, None)},
    shared_variance=0.65,
    needs=RIPSER,
    always_double=True,
    source="Barannikov et al. 2022, arXiv:2201.00058",
    version=3,
)
def rtd(pair: Pair, *, batch: int = 500, trials: int = 1, seed: int = 0) -> float:
    """How long holes of one network's point cloud stay open while the other has them filled.

    Representation topology divergence: total length of the bars of dimension 1 of the R-cross-barcode, of X
    against Y and of Y against X, averaged; distances divided by their 0.9 quantile; mean over `trials` random sets of
    `batch` inputs (all inputs, once, if there are no more). 0: the same topology at every scale.

    The sum grows with `batch`, so only scores of one batch compare; 500 is the authors'. They average ten
    trials, which takes ten times as long: one set of inputs strays by about 4 % from that mean. A pair takes about a
    second, and minutes where one network holds together what the other spreads out: take a smaller `batch` then.

    Options:
        batch: How many inputs are compared at a time.
        trials: How many random sets of inputs are averaged.
        seed: Of the random draws.

    Example:
        >>> f"{likewise.measures.rtd(x, x + noise):.3f}"
        '6.363'
    """
    ripser = RIPSER.load().ripser
    totals = []
    for number in range(len(pair.a.random_sets(batch, trials, seed))):
        x, y = (_cloud(rep, batch, trials, seed, number) for rep in (pair.a, pair.b))
        totals.append((_bars(ripser, x, y) + _bars(ripser, y, x)) / 2)
    return float(np.mean(totals))


@quantity
def _cloud(rep: Representation, batch: int, trials: int, seed: int, number: int) -> tuple[Tensor, Tensor]:
    """Distances among one random set of inputs, (n, n), and the edges of its relative neighbour graph, (2, edges).

    An edge (i, k) stays if no third input is nearer to both i and k than they are to each other.
    """
    rep.refuse_constant(closely=True)
    rows = rep.random_sets(batch, trials, seed)[number]
    points = rep.centred[torch.from_numpy(rows).to(rep.values.device)]
    # Duplicates in the gap between rounding and truth would open holes of no size.
    distances = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist").cpu().numpy()
    scale = float(np.quantile(distances, 0.9))
    if scale <= ROUNDING * torch.finfo(points.dtype).eps * rep.norm / rep.n**0.5:
        raise UndefinedError(
            f"nine in ten pairs of inputs are equal in {rep.name}, so its distances have no scale. "
            "Use imd or cka, or show the networks inputs that differ."
        )
    distances = np.asarray(distances / scale)
    stays = ~np.tri(len(rows), dtype=bool)
    for row in distances:
        stays &= np.maximum(row[:, None], row) >= distances
    return torch.from_numpy(distances), torch.from_numpy(np.stack(np.nonzero(stays)))


def _bars(ripser: Any, cloud: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> float:
    """Total length of bars of dimension 1 of the complex of the smaller distances, relative to that of X alone.

    The authors' graph has 2 n points: n with the smaller of both distances, a copy of them at distance 0 of each
    other, and i and j across at X's distance for i <= j. Across, the edges of X's relative neighbour graph are enough:
    any other closes a triangle of X with two shorter ones, so it dies with them at the latest. The copies need the same
    edges alone if one more point at distance 0 joins them. The bars are the same, from a third of the edges.
    """
    x, (i, k) = cloud[0].numpy(), cloud[1].numpy()
    n = x.shape[0]
    every = np.arange(n)
    graph = np.full((2 * n + 1, 2 * n + 1), np.inf)
    graph[:n, :n] = np.minimum(x, other[0].numpy())
    graph[i, n + k] = x[i, k]
    graph[every, n + every] = graph[n + i, n + k] = graph[n:, 2 * n] = 0
    graph = np.minimum(graph, graph.T)
    np.fill_diagonal(graph, 0)
    radius = np.float32(x.max(axis=1).min())  # from here on one input is near to all: no holes are left
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a matrix with as many rows as columns is meant here
        limit = float(np.nextafter(radius, np.float32(np.inf)))
        bars = ripser(graph, distance_matrix=True, maxdim=1, thresh=limit)["dgms"][1]
    finite = bars[np.isfinite(bars).all(axis=1)]
    return float((finite[:, 1] - finite[:, 0]).sum())
