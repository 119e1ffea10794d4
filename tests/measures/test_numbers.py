"""Numbers at the edges: half precision, large means, dead neurons, scales far apart, few inputs."""

import math

import numpy as np
import pytest
import torch

import likewise
from likewise import measures
from likewise.errors import InputError, UndefinedError
from likewise.views import Activations, Outputs

SPACES = ["mean-cca", "svcca", "pwcca", "gulp", "shape", "linear-regression"]


def dependent(n=300):
    """Twenty neurons of rank ten, and fifteen others."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(n, 10))
    x = np.hstack([x, x @ rng.normal(size=(10, 10))])
    return x, rng.normal(size=(n, 15)) + 0.5 * x[:, :15]


@pytest.mark.parametrize("name", [*SPACES, "eos"])
@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
def test_rounding_is_no_direction_whatever_the_precision(name, kind):
    x, y = dependent()
    given = torch.tensor(x).to(getattr(torch, kind))
    rough = {"float32": 1e-5, "float16": 1e-3, "bfloat16": 1e-2}[kind]
    for one, other, exact in ((given, y, (x, y)), (y, given, (y, x))):
        assert measures.get(name)(one, other) == pytest.approx(measures.get(name)(*exact), rel=rough)


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize(("kind", "offset"), [("f4", 1e5), ("f8", 1e3), ("f8", 1e6)])
def test_a_large_mean_adds_no_direction(name, kind, offset):
    x, y = dependent()
    moved = (x + offset).astype(kind)
    rough = 0.02 if kind == "f4" else 1e-6
    assert measures.get(name)(moved, y) == pytest.approx(measures.get(name)(x, y), rel=rough)


@pytest.mark.parametrize("offset", [0, 30, 100, 300, 1000])
def test_wide_networks_span_everything_but_the_mean(offset):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 90)), rng.normal(size=(40, 60))
    assert measures.gulp(x + offset, y) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("name", ["linear-regression", "gulp", "riemann", "eos", "mean-cca", "shape"])
def test_a_neuron_far_larger_than_the_others_hides_none(name):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 10))
    y = x[:, :6] + rng.normal(size=(300, 6))
    constant = np.hstack([x, np.full((300, 1), 1e8)]).astype("f4")
    huge = x.astype("f4")
    huge[:, 0] *= 1e8
    for z in (constant, huge):
        assert measures.get(name)(y, z) == pytest.approx(measures.get(name)(y, z.astype("f8")), rel=1e-5)


@pytest.mark.parametrize("name", [*SPACES, "eos", "riemann"])
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("size", [10, 100, 300, 900, 3000])
def test_a_large_neuron_in_half_precision_hides_none(name, kind, size):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(500, 24))
    y = x @ rng.normal(size=(24, 20)) / 5 + rng.normal(size=(500, 20))
    x[:, 0] *= size
    given = torch.tensor(x).to(getattr(torch, kind))
    assert measures.get(name)(given, y) == pytest.approx(measures.get(name)(given.double(), y), rel=1e-6)


@pytest.mark.parametrize("name", ["cka", "mean-cca", "svcca", "shape", "linear-regression", "jaccard"])
def test_rows_that_differ_by_rounding_alone_are_constant(name):
    rng = np.random.default_rng(0)
    x = np.full((50, 64), 100, "f4")
    x[rng.random(x.shape) < 0.3] = np.nextafter(np.float32(100), np.float32(1000))
    with pytest.raises(UndefinedError, match="all 50 rows are the same up to rounding"):
        measures.get(name)(rng.normal(size=(50, 4)), x)


def test_directions_of_small_rows_keep_their_digits():
    a = np.abs(np.random.default_rng(0).normal(size=(200, 16)))
    for factor in (1e-4, 1e-8, 1e-12):
        b = a.copy()
        b[:100] *= factor
        assert measures.jaccard(a, b) == 1
        assert measures.rsa(a, b) == pytest.approx(1, abs=1e-9)
        assert measures.uniformity_difference(a, b) == pytest.approx(0, abs=1e-9)


def test_a_short_last_batch_weighs_as_little_as_it_holds():
    rng = np.random.default_rng(516)
    x = rng.normal(size=(516, 30))
    y = x @ rng.normal(size=(30, 30)) / 5 + rng.normal(size=(516, 30))
    assert measures.cka_minibatch(x, y) == pytest.approx(measures.cka_debiased(x, y), abs=0.01)


@pytest.mark.parametrize("name", ["cka", "cka-debiased"])
@pytest.mark.parametrize("scale", [1e-42, 3e38])
def test_numbers_near_the_ends_of_a_float_are_compared(name, scale):
    x = np.random.default_rng(0).uniform(-1, 1, (500, 20)) * scale
    assert measures.get(name)(x, x.copy()) == pytest.approx(1)


def test_neurons_left_over_are_counted_without_loss():
    x = np.random.default_rng(0).normal(size=(50, 4))
    assert measures.permutation_procrustes(x, np.hstack([x, np.zeros((50, 1))])) == 0
    assert measures.permutation_procrustes(np.hstack([x, np.ones((50, 1))]), x) == pytest.approx(math.sqrt(50))


def test_soft_matching_scales_with_the_activations():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(100, 4)), rng.normal(size=(100, 6))
    small = measures.soft_matching(1e-9 * x, 1e-9 * y)
    assert small == pytest.approx(1e-9 * measures.soft_matching(x, y), rel=1e-9)


def test_the_largest_eigenvalue_is_found_though_its_rows_sum_to_nothing():
    x = 2 * np.eye(2)[np.repeat([0, 1], 40)]
    y = 2 * np.eye(2)[np.tile([0, 1], 40)]
    gap = np.linalg.norm(x[:, None] - x, axis=2) - np.linalg.norm(y[:, None] - y, axis=2)
    expected = np.abs(np.linalg.eigvalsh(gap)).max()
    assert measures.get("rsm-difference", variant="resi")(x, y) == pytest.approx(expected)


def test_jsd_tells_networks_apart_that_nearly_agree():
    logits = np.random.default_rng(0).normal(size=(200, 5)).astype("f4")
    near = logits.astype("f8") + 1e-4 * np.random.default_rng(1).normal(size=logits.shape)
    p, q = (np.exp(v) / np.exp(v).sum(1, keepdims=True) for v in (logits.astype("f8"), near))
    mid = (p + q) / 2
    exact = (p * np.log2(p / mid) + q * np.log2(q / mid)).sum(1).mean() / 2
    views = [Activations(v, outputs=Outputs(v)) for v in (logits, near)]
    assert measures.jsd(*views) == pytest.approx(exact, rel=1e-3)


def test_shuffles_without_a_score_do_not_count():
    labels = np.arange(60) % 6
    a, b = labels.copy(), labels.copy()
    a[:4], b[3:7] = (labels[:4] + 1) % 6, (labels[3:7] + 2) % 6
    views = [Activations(np.eye(6)[v], outputs=Outputs(np.eye(6)[v], labels)) for v in (a, b)]
    result = likewise.calibrate(*views, "same-mistake", permutations=99)
    assert (result.value, result.p) == (0, 1)
    assert math.isfinite(result.null_mean)


@pytest.mark.parametrize("name", ["procrustes-size", "rsm-difference", "permutation-procrustes"])
def test_chance_does_not_depend_on_the_unit_of_measure(name):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 5))
    y = x + 0.3 * rng.normal(size=(80, 5))
    plain, small = (likewise.calibrate(s * x, s * y, name, permutations=49) for s in (1, 1e-12))
    assert small.p == plain.p == 0.02
    assert small.calibrated == pytest.approx(plain.calibrated)


def test_a_confounder_is_drawn_with_its_inputs_and_named_apart():
    rng = np.random.default_rng(0)
    x, y, inputs, others = rng.normal(size=(4, 60, 5))
    one, two = (measures.get("cka-deconfounded", confounder=c) for c in (inputs, others))
    interval = likewise.bootstrap(x, y, one, groups=20)
    assert interval.low < interval.value < interval.high
    assert len(likewise.compare({"a": x, "b": y}, [one, two])) == 2


def test_classes_that_are_all_equally_alike_have_no_alignment():
    rng = np.random.default_rng(0)
    simplex = (np.eye(10) - 0.1) @ np.linalg.qr(rng.normal(size=(64, 64)))[0][:10]
    other = rng.random((10, 10))
    alike = likewise.classes.from_weights(simplex)
    reference = likewise.classes.ClassSimilarity((other + other.T) / 2)
    assert math.isnan(float(likewise.classes.alignment(alike, reference)))


def test_masked_arrays_are_refused_and_long_doubles_taken():
    with pytest.raises(InputError, match="Fill it, or leave those rows or columns out"):
        Activations(np.ma.masked_array(np.ones((4, 3))))
    assert Activations(np.ones((4, 3), np.longdouble)).values.dtype == torch.float64


@pytest.mark.parametrize("stored", [False, True])
def test_half_precision_of_a_network_is_remembered(tmp_path, stored):
    net = torch.nn.Sequential(torch.nn.Linear(5, 5), torch.nn.Linear(5, 12), torch.nn.ReLU())
    store = tmp_path if stored else None
    x = torch.randn(200, 5)
    view = likewise.extract(net.bfloat16(), x, "1", store=store)
    assert view.values.dtype == torch.float32
    assert view.eps == torch.finfo(torch.bfloat16).eps
    assert likewise.extract(net.float(), x, "1", store=store).eps == torch.finfo(torch.float32).eps
    # five inputs and a bias: rank five, not the twelve that rounding would make of it
    other = np.random.default_rng(0).normal(size=(200, 12))
    assert measures.gulp(view, other) < math.sqrt(5 + 12)
