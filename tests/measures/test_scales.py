"""Scales from the smallest to the largest float, and inputs far larger than the rest."""

import math

import numpy as np
import pytest
import torch

import likewise
from likewise import measures
from likewise.errors import LikewiseError, UndefinedError
from likewise.measures.pair import Pair
from likewise.measures.registry import registry
from likewise.measures.representation import Representation
from likewise.measures.resampling import Permuted, Subset
from likewise.views import Activations

N = 24
LENGTHS = [
    "procrustes-size",
    "permutation-procrustes",
    "soft-matching",
    "rsm-difference",
    "magnitude-difference",
]
EVERY = [
    v.bind(confounder=np.random.default_rng(3).normal(size=(N, 3))) if v.missing_options else v
    for m in registry
    if m.info.on == "representation"
    for v in (m, *m.variants.values())
]


def related():
    rng = np.random.default_rng(0)
    x = np.maximum(rng.normal(size=(N, 5)), -0.3)
    return x, x @ rng.normal(size=(5, 6)) + 0.3 * rng.normal(size=(N, 6))


@pytest.mark.parametrize("measure", EVERY, ids=lambda m: m.key)
@pytest.mark.parametrize("power", [-1000, -500, -150, -66, 66, 260, 500, 1000])
def test_a_power_of_two_is_taken_out_exactly(measure, power):
    x, y = related()
    expected = measure(x, y)
    far = math.ldexp(1.0, power)
    if "scale" in measure.info.invariant_to:
        assert measure(x * far, y) == pytest.approx(expected, rel=1e-12, abs=1e-13)
        assert measure(x * far, y / far) == pytest.approx(expected, rel=1e-12, abs=1e-13)
    elif measure.name in LENGTHS:
        assert measure(x * far, y * far) == pytest.approx(expected * far, rel=1e-13)


@pytest.mark.parametrize("name", LENGTHS)
def test_of_scales_far_apart_the_larger_side_is_the_distance(name):
    x, y = related()
    measure = measures.get(name)
    alone = measure(np.zeros_like(x), y) * 1e200
    assert measure(x * 1e-200, y * 1e200) == pytest.approx(alone, rel=1e-12)
    assert measure(y * 1e200, x * 1e-200) == pytest.approx(alone, rel=1e-12)


def test_a_distance_no_float_can_hold_is_refused():
    x, y = related()
    with pytest.raises(UndefinedError) as refusal:
        measures.rsm_difference(x, y / np.abs(y).max() * 1.7e308)
    assert str(refusal.value) == (
        "the distance between 'x' and 'y' is more than a float can hold. Scale the activations."
    )


@pytest.mark.parametrize("scale", [1e-44, 1e-38, 1e37])
def test_the_ends_of_single_precision_are_no_ends(scale):
    x, y = (v.astype("f4") for v in related())
    coarse = (x * np.float32(scale)).astype("f8") / np.float64(np.float32(scale))
    for name in ("cka", "distance-correlation", "pnka", "cknna", "cka-minibatch"):
        measure = measures.get(name)
        assert measure(x * np.float32(scale), y) == pytest.approx(measure(coarse, y), rel=1e-4)


@pytest.mark.parametrize("name", ["cka", "rsm-difference", "jaccard", "procrustes-size", "gulp"])
def test_shuffled_and_drawn_inputs_stand_on_the_scale_of_all(name):
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


def test_a_function_of_two_arrays_sees_them_as_they_were_given():
    x, y = related()
    measures.register(lambda a, b: float(np.abs(a).max()), name="peak")
    try:
        assert likewise.compare(x * 1e-200, y, "peak") == np.abs(x).max() * 1e-200
    finally:
        measures.unregister("peak")


def with_a_large_row(size):
    x, y = related()
    x[3] *= size
    return x, y


@pytest.mark.parametrize("measure", EVERY, ids=lambda m: m.key)
@pytest.mark.parametrize("size", [1e4, 1e8, 1e12, 1e100])
def test_one_input_far_larger_than_the_rest_is_right_or_refused(measure, size):
    x, y = with_a_large_row(size)
    try:
        itself, there, back = measure(x, x), measure(x, y), measure(y, x)
    except LikewiseError:
        return
    length = 1e-6 * max(1.0, np.abs(x).max()) if measure.name in LENGTHS else 1e-6
    if measure.info.identity is not None:
        assert itself == pytest.approx(measure.info.identity, abs=length)
    if measure.info.symmetric:
        assert there == pytest.approx(back, rel=1e-6, abs=1e-6)


def test_a_rotation_lost_to_one_large_input_is_refused():
    x, _ = with_a_large_row(1e12)
    with pytest.raises(UndefinedError) as refusal:
        measures.aligned_cosine(x, x)
    assert str(refusal.value) == (
        "aligned-cosine is undefined for 'x' and 'y': some inputs are so much larger than others that "
        "rounding decides how the others are turned. Scale the rows, or leave those out."
    )


def test_inputs_that_vanish_beside_others_are_refused():
    x, y = with_a_large_row(1e300)
    x[5] *= 1e-30
    with pytest.raises(UndefinedError) as refusal:
        measures.cka(x, y)
    assert str(refusal.value) == (
        "the rows of 'x' lie too far apart: 1 of 24 vanish beside the largest in any arithmetic. "
        "Scale them, or leave them out."
    )


@pytest.mark.parametrize("bandwidth", [1e-3, 0.5, 30.0, 1e3])
def test_a_wide_bandwidth_leaves_all_digits(bandwidth):
    x, y = related()
    measure = measures.get("cka-rbf", bandwidth=bandwidth)
    assert measure(x, x) == pytest.approx(1, abs=1e-12)
    assert 0 <= measure(x, y) <= 1
    if bandwidth == 1e3:  # exp(-t) is 1 - t, so that only squared distances are left
        assert measure(x, y) == pytest.approx(measures.cka(x, y), abs=1e-4)


def test_the_references_noise_is_the_same_either_way_and_makes_no_claim_of_zero():
    x, y = related()
    noisy = measures.get("imd", variant="resi", mode="stochastic", vectors=20)
    assert noisy(x, y) == noisy(y, x)
    assert noisy(x, x) > 0
    assert noisy.info.identity is None


def test_the_references_gulp_makes_no_claim_of_zero_for_dead_neurons():
    x, _ = related()
    x[:, 2] = 0
    measure = measures.get("gulp", variant="resi")
    assert measure(x, x) == pytest.approx(2)
    assert measure.info.identity is None


@pytest.mark.parametrize("scale", [2.0**-90, 2.0**90])
def test_single_precision_that_is_fast_for_large_inputs_stays_in_its_range(scale):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 1200, 60)).astype("f4")
    assert measures.cka(x * np.float32(scale), y) == pytest.approx(measures.cka(x, y), rel=1e-4)


@pytest.mark.parametrize("name", ["cka-debiased", "cka-minibatch"])
def test_an_unbiased_estimate_lost_to_one_large_input_is_refused(name):
    x, y = with_a_large_row(1e9)
    with pytest.raises(UndefinedError) as refusal:
        measures.get(name)(x, y)
    assert str(refusal.value) == (
        "the unbiased estimate of the similarity of 'x' with itself is lost to rounding: some inputs are "
        "far larger than others. Scale the rows, or leave those out."
    )
    x, y = with_a_large_row(1e4)  # of extended precision: 14 digits of it
    rows = (x - x.mean(axis=0)).astype(np.longdouble), (y - y.mean(axis=0)).astype(np.longdouble)
    k, l = (v @ v.T * (1 - np.eye(N)) for v in rows)

    def hsic(k, l):
        whole = k.sum() * l.sum() / ((N - 1) * (N - 2))
        return (k * l).sum() + whole - 2 / (N - 2) * (k.sum(axis=0) @ l.sum(axis=0))

    expected = float(hsic(k, l) / np.sqrt(hsic(k, k) * hsic(l, l)))
    assert measures.get(name)(x, y) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("power", [-900, 900])
def test_classes_of_logits_of_any_scale_are_alike(power):
    x, y = related()
    measure = measures.get("class-alignment")
    far = math.ldexp(1.0, power)
    assert measure(x * far, y[:, :5]) == pytest.approx(measure(x, y[:, :5]), rel=1e-12)
    crowded = x + 1e15  # digits that a division would round away
    assert measure(crowded * far, y[:, :5]) == measure(crowded, y[:, :5])
    tiny = x * np.where(np.arange(5) == 2, 1e-160, 1.0)
    assert measure(tiny, y[:, :5]) == pytest.approx(measure(x, y[:, :5]), rel=1e-12)


@pytest.mark.parametrize("name", LENGTHS)
def test_a_network_that_is_zero_does_not_hide_a_tiny_one(name):
    x, _ = related()
    measure = measures.get(name)
    expected = measure(np.zeros_like(x), x)
    tiny = math.ldexp(1.0, -900)
    assert measure(np.zeros_like(x), x * tiny) / tiny == pytest.approx(expected, rel=1e-12)


def test_the_references_pwcca_keeps_its_digits_beside_a_large_input():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(24, 8))
    x[5] *= 1e8
    assert measures.get("pwcca", variant="resi")(x, x) == pytest.approx(1, abs=1e-6)


def test_neurons_whose_squares_vanish_still_correlate():
    x, y = related()
    tiny = x * np.where(np.arange(5) == 1, 1e-160, 1.0)
    other = y * np.where(np.arange(6) == 2, 1e-160, 1.0)
    for name in ("hard-correlation", "soft-correlation"):
        measure = measures.get(name)
        assert measure(tiny, other) == pytest.approx(measure(x, y), rel=1e-9)


def test_the_riemannian_distance_is_the_same_either_way_with_little_shrinkage():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 2)) * [1, 1e-6], rng.normal(size=(20, 15))
    measure = measures.get("riemann", shrinkage=1e-6)
    assert measure(x, y) == pytest.approx(measure(y, x), rel=1e-9)


def test_an_input_at_the_mean_of_both_networks_keeps_its_place():
    line = np.linspace(1, 2, 5)[:, None]  # the third is the mean, up to rounding
    x, y = line * [1.3, -0.7, 2.1], line * [0.2, 5.1]
    assert measures.pnka(x, y) == pytest.approx(1, abs=1e-12)
    assert likewise.pointwise(x, y)[2] == 1


def test_distances_between_small_rows_keep_their_digits_beside_a_large_one():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 30, 6))
    x[4] *= 1e7
    distances = np.sqrt(((x[:, None] - x).astype(np.longdouble) ** 2).sum(axis=-1))
    others = np.sqrt(((y[:, None] - y).astype(np.longdouble) ** 2).sum(axis=-1))
    kernels = []
    for d in (distances, others):
        width = 0.5 * np.median(d[np.triu_indices(30, 1)])
        k = np.exp(-(d**2) / (2 * width**2))
        kernels.append(k - k.mean(axis=0) - k.mean(axis=1)[:, None] + k.mean())
    k, l = kernels
    expected = float((k * l).sum() / np.sqrt((k * k).sum() * (l * l).sum()))
    assert measures.cka_rbf(x, y) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["procrustes", "angular-shape", "nbs", "procrustes-size", "cka"])
def test_a_wide_network_on_a_huge_mean_is_itself(name):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 9)) + 1e12 * rng.normal(size=9)
    y = rng.normal(size=(4, 9))
    measure = measures.get(name)
    assert measure(x, x) == pytest.approx(measure.info.identity, abs=1e-6)
    centred = x - x.mean(axis=0)
    assert measure(x, y) == pytest.approx(measure(centred, y), rel=1e-6)
