"""Heat traces and holes: by full decomposition, and on clouds whose shape is known."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from likewise import measures
from likewise.errors import UndefinedError
from tests.measures.families.oracles import X, Y


def imd_by_hand(x, y):
    traces = []
    for v in (x, y):
        gaps = cdist(v, v)
        np.fill_diagonal(gaps, np.inf)
        graph = np.zeros_like(gaps)
        for i, row in enumerate(gaps):
            graph[i, np.argsort(row)[:5]] = 1
        graph = np.maximum(graph, graph.T)
        root = np.diag(graph.sum(axis=1) ** -0.5)
        eigenvalues = np.linalg.eigvalsh(np.eye(len(v)) - root @ graph @ root)
        traces.append([np.exp(-t * eigenvalues).sum() for t in np.logspace(-1, 1, 256)])
    times = np.logspace(-1, 1, 256)
    weights = np.exp(-2 * (times + 1 / times))
    return 1e6 / len(x) * max(weights * abs(np.subtract(*traces)))


def test_imd_is_the_same_twice_and_equals_the_full_decomposition() -> None:
    assert measures.imd(X, Y) == pytest.approx(imd_by_hand(X, Y), rel=1e-9)
    stochastic = measures.get("imd", mode="stochastic", seed=3)
    assert stochastic(X, Y) == stochastic(X, Y)
    assert stochastic(X, Y) == pytest.approx(imd_by_hand(X, Y), rel=1e-2)


def test_rtd_takes_up_to_500_inputs_as_its_authors_do() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 130, 3))
    alone = measures.get("rtd", batch=130)(x, y)
    assert measures.rtd(x, y) == alone  # all of them, once
    assert measures.rtd.defaults["batch"] == 500
    few = measures.get("rtd", batch=40, trials=3)
    assert few(x, y) < alone / 2  # the sum of bars grows with the inputs


def test_rtd_sees_a_ring_that_the_other_network_fills() -> None:
    pytest.importorskip("ripser")
    angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    arcs = np.stack([np.cos(angle / 2), np.sin(angle / 2)], axis=1)  # half a ring: no hole
    assert measures.rtd(ring, ring) == pytest.approx(0, abs=1e-6)
    shaken = ring + 0.01 * np.random.default_rng(0).normal(size=ring.shape)
    assert measures.rtd(ring, arcs) > 5 * measures.rtd(ring, shaken)


N = 24


def related():
    rng = np.random.default_rng(0)
    x = np.maximum(rng.normal(size=(N, 5)), -0.3)
    return x, x @ rng.normal(size=(5, 6)) + 0.3 * rng.normal(size=(N, 6))


def test_the_references_noise_is_the_same_either_way_and_makes_no_claim_of_zero() -> None:
    x, y = related()
    noisy = measures.get("imd", variant="resi", mode="stochastic", vectors=20)
    assert noisy(x, y) == noisy(y, x)
    assert noisy(x, x) > 0
    assert noisy.info.identity is None


def turn(rng, d):
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


def test_one_outlier_does_not_blind_imd() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 300, 8))
    near = measures.imd(x, y)
    x[7, 2] += 1e7
    assert measures.imd(x, y) == pytest.approx(near, abs=5)  # blind, it gives hundreds


def test_rtd_without_a_scale_is_refused() -> None:
    pytest.importorskip("ripser")
    rng = np.random.default_rng(0)
    z = np.repeat(np.eye(2), [97, 3], axis=0)
    for x in (z, z @ turn(rng, 2)):
        with pytest.raises(UndefinedError) as refusal:
            measures.rtd(x, rng.normal(size=(100, 2)))
        assert str(refusal.value) == (
            "nine in ten pairs of inputs are equal in 'x', so its distances have no scale. "
            "Use imd or cka, or show the networks inputs that differ."
        )


def rtd_by_hand(x, y):
    """The authors' matrix: 2 n points, those across at X's distance for i <= j."""
    ripser = pytest.importorskip("ripser").ripser
    x, y = (cdist(v, v) / np.quantile(cdist(v, v), 0.9) for v in (x, y))
    n, total = len(x), 0
    for a, b in ((x, y), (y, x)):
        across = np.where(np.tri(n, k=-1, dtype=bool), np.inf, a)
        graph = np.block([[np.zeros((n, n)), across.T], [across, np.minimum(a, b)]])
        bars = ripser(graph, distance_matrix=True, maxdim=1)["dgms"][1]
        finite = bars[np.isfinite(bars).all(axis=1)]
        total += (finite[:, 1] - finite[:, 0]).sum() / 2
    return total


@pytest.mark.filterwarnings("ignore:The input matrix")
@pytest.mark.parametrize("seed", range(8))
def test_rtd_equals_the_matrix_of_its_authors(seed) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(10, 80))
    x, y = rng.normal(size=(n, 3)), rng.normal(size=(n, 2))
    if seed % 2:  # ties and duplicates
        x, y = np.round(2 * x), np.round(y)
    elif seed % 4 == 0:
        y = x[:, :2] + 0.3 * y
    assert measures.rtd(x, y) == pytest.approx(rtd_by_hand(x, y), rel=1e-5, abs=1e-5)
