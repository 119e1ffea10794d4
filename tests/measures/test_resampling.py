"""Permuted rows and subsets take matrices by index: values are those of computing anew, on the scale of all rows."""

import time

import numpy as np
import pytest
import torch

import likewise
from likewise import measures
from likewise.comparison.null import null_draws
from likewise.measures.numerics.kernels import Distance, Gaussian, InnerProducts
from likewise.measures.pair import Pair
from likewise.measures.registry import select
from likewise.measures.representation import Representation
from likewise.measures.resampling import Permuted, Subset, permuted_networks
from likewise.measures.workspace import Workspace
from likewise.views import Activations

BY_KERNELS = [m for m in select("all") if m.kernels]


def networks(n=60, widths=(12, 9, 80)):
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(n, 4))
    return [hidden @ rng.normal(size=(4, d)) + rng.normal(size=(n, d)) for d in widths]


@pytest.mark.parametrize("measure", BY_KERNELS, ids=lambda m: m.key)
def test_shuffled_products_equal_computing_anew(measure) -> None:
    arrays = networks()
    workspace = Workspace(networks=3, resampled=True)
    reps = [Representation(Activations(v), workspace) for v in arrays]
    tables: dict[object, InnerProducts] = {}
    for i, j in ((0, 1), (0, 2), (1, 2)):
        measure.score(Pair(reps[i], reps[j], tables))
    order = np.random.default_rng(1).permutation(60)
    moved, shared = permuted_networks(measure.kernels, tables, reps, reps, torch.from_numpy(order))
    assert set(shared) == set(measure.kernels)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        kernel = measure.kernels[0]
        assert (reps[i].key, moved[j].key) in shared[kernel].inner
        found = measure.score(Pair(reps[i], moved[j], shared))
        assert found == pytest.approx(measure(arrays[i], arrays[j][order]), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", ["distance-correlation", "rsm-difference", "cka-rbf", "rsa", "second-order-cosine"])
@pytest.mark.parametrize("call", ["calibrate", "score"])
def test_a_shuffled_pair_makes_no_distances_or_cosines_again(monkeypatch, name, call) -> None:
    made = []
    for quantity in ("squared_distance_rows", "cosine_rows", "correlation_rows", "gram_rows"):
        original = getattr(Representation, quantity)

        def counted(self, *args, _original=original, _name=quantity, **options):
            made.append(_name)
            return _original(self, *args, **options)

        monkeypatch.setattr(Representation, quantity, counted)
    x, y, _ = networks()

    def calls(count):
        made.clear()
        if call == "calibrate":
            likewise.calibrate(x, y, name, permutations=count)
        else:
            pair = Pair(*(Representation(Activations(v), Workspace(once=True)) for v in (x, y)))
            list(null_draws(pair, measures.get(name), count, 0))
        return len(made)

    assert calls(2) == calls(12)


def test_a_network_that_is_undefined_stays_so() -> None:
    x, y, _ = networks()
    result = likewise.calibrate(
        {"a": x, "b": y, "dead": np.ones((60, 3))}, measure="distance-correlation", permutations=5
    )
    assert np.isnan(result.p[0, 2])
    assert result.p[0, 1] == pytest.approx(1 / 6)


def test_kernels_too_large_to_keep_are_computed_as_before() -> None:
    x, y, _ = networks(n=400)
    small = Workspace(10**7, resampled=True)
    assert not small.keeps_squares(400)
    a, b = (Representation(Activations(v), small) for v in (x, y))
    back = torch.arange(400).flip(0)
    tables = {Distance(): InnerProducts(), Gaussian(0.5): InnerProducts()}
    [moved], shared = permuted_networks(tuple(tables), tables, [a], [b], back)
    assert shared == {}
    value = measures.distance_correlation.score(Pair(a, moved))
    assert value == pytest.approx(measures.distance_correlation(x, y[::-1].copy()))


@pytest.mark.parametrize(("name", "limit"), [("cka", 6.0), ("distance-correlation", 3.0)])
def test_a_shuffle_costs_about_what_plain_numpy_takes(name, limit) -> None:
    """Ratio to recomputing with numpy at n = 50, where 9 times was usual; the best of five runs of each."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 50, 20))
    orders = [rng.permutation(50) for _ in range(100)]

    def plain():
        for order in orders:
            (naive_cka if name == "cka" else naive_distance_correlation)(x, y[order])

    def ours():
        likewise.calibrate(x, y, name, permutations=100)

    assert min(map(cpu, [ours] * 5)) < limit * min(map(cpu, [plain] * 5))


def cpu(work):
    start = time.process_time()
    work()
    return time.process_time() - start


def naive_cka(x, y):
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    cross, own, other = (np.linalg.norm(m) for m in (x.T @ y, x.T @ x, y.T @ y))
    return cross**2 / (own * other)


def naive_distance_correlation(x, y):
    def centred(v):
        squares = (v**2).sum(axis=1)
        d = np.sqrt(np.maximum(squares[:, None] + squares - 2 * v @ v.T, 0))
        return d - d.mean(axis=0) - d.mean(axis=1)[:, None] + d.mean()

    a, b = centred(x), centred(y)
    return np.sqrt((a * b).mean() / np.sqrt((a * a).mean() * (b * b).mean()))


N = 24


def related():
    rng = np.random.default_rng(0)
    x = np.maximum(rng.normal(size=(N, 5)), -0.3)
    return x, x @ rng.normal(size=(5, 6)) + 0.3 * rng.normal(size=(N, 6))


@pytest.mark.parametrize("name", ["cka", "rsm-difference", "jaccard", "procrustes-size", "gulp"])
def test_shuffled_and_drawn_inputs_stand_on_the_scale_of_all(name) -> None:
    x, y = related()
    order = torch.from_numpy(np.random.default_rng(1).permutation(N))
    measure = measures.get(name)
    a, b = (Representation(Activations(v * s)) for v, s in ((x, 1e-170), (y, 1e-160)))
    measure.score(Pair(a, b))
    half = order[:14].sort().values
    for found, direct in (
        (Pair(a, Permuted(b, order)), (x * 1e-170, y[order] * 1e-160)),
        (Pair(Subset(a, half), Subset(b, half)), (x[half] * 1e-170, y[half] * 1e-160)),
    ):
        assert measure.score(found) == pytest.approx(measure(*direct), rel=1e-9)


def test_shuffled_single_precision_follows_the_shuffle_though_the_whole_was_never_asked_for() -> None:
    x = np.random.default_rng(0).normal(size=(400, 200)).astype(np.float32)
    order = torch.randperm(400, generator=torch.Generator().manual_seed(0))
    shuffled, whole = Permuted(Representation(Activations(x)), order), Representation(Activations(x))
    assert shuffled.float32_centred.shape == x.shape
    assert torch.equal(shuffled.float32_centred, whole.float32_centred[order])
    assert torch.equal(shuffled.float32_squares, whole.float32_squares[order])
