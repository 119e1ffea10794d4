"""Precision and scale: from the smallest to the largest float, and inputs far larger than the rest."""

import math

import numpy as np
import pytest
import torch

import likewise
from likewise import measures
from likewise.errors import LikewiseError, UndefinedError
from likewise.measures import get
from likewise.measures.registry import MEASURES
from likewise.measures.representation import Representation
from tests.measures.helpers import ROWS, WIDTH, activations


@pytest.mark.parametrize("name", ["cka", "mean-cca", "svcca", "shape", "linear-regression", "jaccard"])
def test_rows_that_differ_by_rounding_alone_are_constant(name) -> None:
    rng = np.random.default_rng(0)
    x = np.full((50, 64), 100, "f4")
    x[rng.random(x.shape) < 0.3] = np.nextafter(np.float32(100), np.float32(1000))
    with pytest.raises(UndefinedError, match="all 50 rows are the same up to rounding"):
        measures.get(name)(rng.normal(size=(50, 4)), x)


def test_directions_of_small_rows_keep_their_digits() -> None:
    a = np.abs(np.random.default_rng(0).normal(size=(200, 16)))
    for factor in (1e-4, 1e-8, 1e-12):
        b = a.copy()
        b[:100] *= factor
        assert measures.jaccard(a, b) == 1
        assert measures.rsa(a, b) == pytest.approx(1, abs=1e-9)
        assert measures.uniformity_difference(a, b) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("name", ["cka", "cka-debiased"])
@pytest.mark.parametrize("scale", [1e-42, 3e38])
def test_numbers_near_the_ends_of_a_float_are_compared(name, scale) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (500, 20)) * scale
    assert measures.get(name)(x, x.copy()) == pytest.approx(1)


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
    for m in MEASURES
    if m.info.on == "representation"
    for v in (m, *m.variants.values())
]


def related():
    rng = np.random.default_rng(0)
    x = np.maximum(rng.normal(size=(N, 5)), -0.3)
    return x, x @ rng.normal(size=(5, 6)) + 0.3 * rng.normal(size=(N, 6))


@pytest.mark.parametrize("measure", EVERY, ids=lambda m: m.key)
@pytest.mark.parametrize("power", [-1000, -500, -150, -66, 66, 260, 500, 1000])
def test_a_power_of_two_is_taken_out_exactly(measure, power) -> None:
    x, y = related()
    expected = measure(x, y)
    far = math.ldexp(1.0, power)
    if "scale" in measure.info.invariant_to:
        assert measure(x * far, y) == pytest.approx(expected, rel=1e-12, abs=1e-13)
        assert measure(x * far, y / far) == pytest.approx(expected, rel=1e-12, abs=1e-13)
    elif measure.name in LENGTHS:
        assert measure(x * far, y * far) == pytest.approx(expected * far, rel=1e-13)


@pytest.mark.parametrize("name", LENGTHS)
def test_of_scales_far_apart_the_larger_side_is_the_distance(name) -> None:
    x, y = related()
    measure = measures.get(name)
    alone = measure(np.zeros_like(x), y) * 1e200
    assert measure(x * 1e-200, y * 1e200) == pytest.approx(alone, rel=1e-12)
    assert measure(y * 1e200, x * 1e-200) == pytest.approx(alone, rel=1e-12)


def test_a_distance_no_float_can_hold_is_refused() -> None:
    x, y = related()
    with pytest.raises(UndefinedError) as refusal:
        measures.rsm_difference(x, y / np.abs(y).max() * 1.7e308)
    assert str(refusal.value) == (
        "the distance between 'x' and 'y' is more than a float can hold. Scale the activations."
    )


@pytest.mark.parametrize("scale", [1e-44, 1e-38, 1e37])
def test_the_ends_of_single_precision_are_no_ends(scale) -> None:
    x, y = (v.astype("f4") for v in related())
    coarse = (x * np.float32(scale)).astype("f8") / np.float64(np.float32(scale))
    for name in ("cka", "distance-correlation", "pnka", "cknna", "cka-minibatch"):
        measure = measures.get(name)
        assert measure(x * np.float32(scale), y) == pytest.approx(measure(coarse, y), rel=1e-4)


def with_a_large_row(size):
    x, y = related()
    x[3] *= size
    return x, y


@pytest.mark.parametrize("measure", EVERY, ids=lambda m: m.key)
@pytest.mark.parametrize("size", [1e4, 1e8, 1e12, 1e100])
def test_one_input_far_larger_than_the_rest_is_right_or_refused(measure, size) -> None:
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


def test_inputs_that_vanish_beside_others_are_refused() -> None:
    x, y = with_a_large_row(1e300)
    x[5] *= 1e-30
    with pytest.raises(UndefinedError) as refusal:
        measures.cka(x, y)
    assert str(refusal.value) == (
        "the rows of 'x' lie too far apart: 1 of 24 vanish beside the largest in any arithmetic. "
        "Scale them, or leave them out."
    )


@pytest.mark.parametrize("scale", [2.0**-90, 2.0**90])
def test_single_precision_that_is_fast_for_large_inputs_stays_in_its_range(scale) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 1200, 60)).astype("f4")
    assert measures.cka(x * np.float32(scale), y) == pytest.approx(measures.cka(x, y), rel=1e-4)


@pytest.mark.parametrize("name", LENGTHS)
def test_a_network_that_is_zero_does_not_hide_a_tiny_one(name) -> None:
    x, _ = related()
    measure = measures.get(name)
    expected = measure(np.zeros_like(x), x)
    tiny = math.ldexp(1.0, -900)
    assert measure(np.zeros_like(x), x * tiny) / tiny == pytest.approx(expected, rel=1e-12)


def test_distances_between_small_rows_keep_their_digits_beside_a_large_one() -> None:
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
def test_a_wide_network_on_a_huge_mean_is_itself(name) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 9)) + 1e12 * rng.normal(size=9)
    y = rng.normal(size=(4, 9))
    measure = measures.get(name)
    assert measure(x, x) == pytest.approx(measure.info.identity, abs=1e-6)
    centred = x - x.mean(axis=0)
    assert measure(x, y) == pytest.approx(measure(centred, y), rel=1e-6)


@pytest.mark.parametrize("name", ["cka", "cka-debiased"])
@pytest.mark.parametrize(("mean", "scale"), [(0, 1), (1e3, 1), (0, 1e-30), (0, 1e30), (0, 1e-12), (3e4, 1e9)])
def test_single_precision_agrees_with_double(name: str, mean: float, scale: float) -> None:
    x, y = activations(1, mean=mean, scale=scale), activations(2, mean=-mean)
    wide = get(name)(x.astype(np.float64), y.astype(np.float64))
    assert get(name)(x, y) == pytest.approx(wide, abs=3e-7)


def test_large_float32_activations_are_multiplied_in_float32_and_small_ones_are_not() -> None:
    large = Representation(likewise.Activations(activations(1)))
    small = Representation(likewise.Activations(activations(1)[:100]))
    given = Representation(likewise.Activations(activations(1).astype(np.float64)))
    huge = Representation(likewise.Activations(activations(1, scale=1e25)))
    assert large.float32_centred.dtype == torch.float32
    assert large.float32_centred.shape == (ROWS, WIDTH)
    for rep in (small, given, huge):
        assert not rep.float32_centred.numel()


@pytest.mark.parametrize("name", ["cka", "cka-debiased"])
def test_a_network_with_itself_scores_one_in_single_precision(name: str) -> None:
    x = activations(1)
    assert get(name)(x, x.copy()) == pytest.approx(1, abs=1e-9)
    assert get(name)(x, 4 * x) == pytest.approx(1, abs=1e-9)
    assert get(name)(x, x) <= 1


def test_a_constant_float32_network_is_refused_for_its_rounding_too() -> None:
    x = np.full((ROWS, WIDTH), 1e6, dtype=np.float32)
    x[:, 0] += np.float32(0.06)
    with pytest.raises(UndefinedError, match=r"'x' is constant: all 1500 rows are the same"):
        get("cka")(x, activations(1))
