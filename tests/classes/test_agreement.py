"""SAI, how far two matrices agree: plain loops, levels of chance, and what must not matter."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from likewise.classes import ClassSimilarity, alignment, from_confusion, from_weights, from_wordnet
from likewise.errors import InputError, UnknownNameError
from tests.classes.helpers import (
    METRICS,
    NET,
    PATHS,
    WEIGHTS,
    cosine_loop,
    few,
    matrix,
    mean,
    noise,
    refusals,
    refused,
    seeds,
)

CIFAR100 = from_wordnet("cifar100")


def pairs(similarity: ClassSimilarity) -> list[float]:
    c = len(similarity)
    return [float(similarity.values[i, j]) for i in range(c) for j in range(c) if i != j]


def unit(values: list[float]) -> list[float]:
    low, high = min(values), max(values)
    return [(value - low) / (high - low) for value in values]


def pearson_loop(x: list[float], y: list[float]) -> float:
    return cosine_loop([a - mean(x) for a in x], [b - mean(y) for b in y])


LOOPS = {
    "cosine": cosine_loop,
    "pearson": pearson_loop,
    "mse": lambda x, y: mean([(a - b) ** 2 for a, b in zip(x, y, strict=True)]),
    "mae": lambda x, y: mean([abs(a - b) for a, b in zip(x, y, strict=True)]),
}


def shuffled(names: tuple[str, ...], seed: int) -> list[str]:
    return [str(name) for name in np.random.default_rng(seed).permutation(names)]


test_an_error_is_a_sentence = refusals(
    (
        lambda: alignment(NET, NET.values),
        "an array of shape (3, 3) is no class similarity. Give ClassSimilarity(values, names), or one that "
        "from_weights, from_confusion or from_wordnet make.",
    ),
    (
        lambda: alignment(NET, PATHS.only(["ship", "cat", "dog"])),
        "NCSM and SCSM hold the same classes in different orders. Put them in one: b.only(a.classes).",
    ),
    (
        lambda: alignment(NET, PATHS.only(["cat", "dog"])),
        "NCSM is over 3 classes and SCSM over 2. Only matrices of the same classes can be compared; choose "
        "them with .only(classes).",
    ),
    (
        lambda: alignment(NET, ClassSimilarity(np.eye(3), ["cat", "dog", "car"], "wordnet")),
        "NCSM and SCSM are over different classes: 'ship' is in one only. Only matrices of the same classes "
        "can be compared.",
    ),
    (
        lambda: alignment(NET, PATHS, "spaerman"),
        "no metric named 'spaerman'. Did you mean 'spearman'? There are cosine, ssim, mse, mae, pearson, spearman.",
        UnknownNameError,
    ),
    (lambda: alignment(NET, PATHS, permutations=0), "permutations is 0. Give at least 1."),
)


@few
@given(seeds, st.integers(3, 8), st.booleans(), st.booleans(), st.sampled_from(sorted(LOOPS)))
def test_alignment_is_that_of_a_plain_loop(seed: int, count: int, first: bool, second: bool, metric: str) -> None:
    a, b = matrix(count, seed, first), matrix(count, seed + 1, second)
    expected = LOOPS[metric](unit(pairs(a)), unit(pairs(b)))
    assert alignment(a, b, metric) == pytest.approx(expected, abs=1e-9)


@few
@given(seeds, st.integers(3, 12), st.booleans(), st.booleans(), st.sampled_from([4, 1000]))
def test_spearman_is_scipys_with_ties_and_without(
    seed: int, count: int, first: bool, second: bool, levels: int
) -> None:
    a, b = matrix(count, seed, first, levels), matrix(count, seed + 1, second, levels)
    if len(set(pairs(a))) == 1 or len(set(pairs(b))) == 1:
        assert math.isnan(alignment(a, b, "spearman"))
        return
    expected = stats.spearmanr(pairs(a), pairs(b)).statistic
    assert alignment(a, b, "spearman") == pytest.approx(expected, abs=1e-9)


def test_spearman_takes_entries_that_differ_in_their_last_digit_for_ties() -> None:
    a, b = matrix(6, 0, levels=4), matrix(6, 1, levels=4)
    shaken = a.values + 1e-13 * np.random.default_rng(0).normal(size=(6, 6))
    assert alignment(ClassSimilarity(shaken), b, "spearman") == pytest.approx(
        float(alignment(a, b, "spearman")), abs=1e-9
    )


@few
@given(seeds, st.integers(3, 8), st.sampled_from(METRICS))
def test_full_agreement_is_at_the_end_of_the_scale(seed: int, count: int, metric: str) -> None:
    a = matrix(count, seed, symmetric=False)
    scaled = ClassSimilarity(0.3 * a.values - 2)  # each matrix is scaled by itself
    best = 0 if metric in ("mse", "mae") else 1
    assert alignment(a, scaled, metric) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("metric", METRICS)
def test_the_diagonal_and_the_order_of_the_two_do_not_matter(metric: str) -> None:
    a, b = matrix(12, 0, symmetric=False), matrix(12, 1, symmetric=False)
    other = a.values.copy()
    np.fill_diagonal(other, -50)
    found = float(alignment(a, b, metric))
    assert alignment(ClassSimilarity(other), b, metric) == found
    assert alignment(b, a, metric) == pytest.approx(found, abs=1e-12)


@pytest.mark.parametrize("metric", [metric for metric in METRICS if metric != "ssim"])
def test_the_order_of_the_classes_does_not_matter(metric: str) -> None:
    a, b = matrix(20, 0, symmetric=False), matrix(20, 1)
    order = shuffled(a.classes, 0)
    moved = alignment(a.only(order), b.only(order), metric)
    assert moved == pytest.approx(float(alignment(a, b, metric)), abs=1e-12)


def test_ssim_knows_no_order_where_meanings_are_known_and_depends_on_it_elsewhere() -> None:
    shaken = CIFAR100.values + 0.03 * np.random.default_rng(0).normal(size=(100, 100))
    known = ClassSimilarity(shaken, CIFAR100.classes)
    order = shuffled(CIFAR100.classes, 0)
    found = float(alignment(known, CIFAR100, "ssim"))
    assert alignment(known.only(order), CIFAR100.only(order), "ssim") == pytest.approx(found)
    nameless = ClassSimilarity(CIFAR100.values, CIFAR100.classes)
    moved = alignment(known.only(order), nameless.only(order), "ssim")
    assert abs(moved - found) > 0.03


@pytest.mark.parametrize(("name", "random", "constant"), [("cifar100", 0.735, 0.759), ("imagenet1k", 0.793, 0.812)])
def test_the_published_index_is_high_for_random_weights_and_calibrated_is_not(
    name: str, random: float, constant: float
) -> None:
    reference = from_wordnet(name)
    found = alignment(noise(len(reference), 7, 512, like=reference), reference)
    assert found == pytest.approx(random, abs=0.01)
    assert found.chance.random == pytest.approx(random, abs=0.01)
    assert found.chance.constant == pytest.approx(constant, abs=0.0005)
    assert found.calibrated == pytest.approx(0, abs=0.05)
    # a constant scores what a cosine with ones scores
    x = unit(pairs(reference))
    assert found.chance.constant == pytest.approx(cosine_loop(x, [1.0] * len(x)), abs=1e-9)


@pytest.mark.parametrize("metric", METRICS)
def test_noise_is_not_told_from_permuted_classes(metric: str) -> None:
    drawn = (noise(100, seed, like=CIFAR100) for seed in range(4))
    found = [alignment(one, CIFAR100, metric, permutations=60) for one in drawn]
    assert abs(np.mean([one.z for one in found])) < 1.5
    assert max(one.p for one in found) > 0.2
    assert min(one.p for one in found) > 0.05
    assert abs(np.mean([one.calibrated for one in found])) < 0.05


@pytest.mark.parametrize("metric", METRICS)
def test_a_noisy_copy_is_told_from_permuted_classes(metric: str) -> None:
    shaken = CIFAR100.values + 0.03 * np.random.default_rng(0).normal(size=(100, 100))
    found = alignment(ClassSimilarity(shaken, CIFAR100.classes), CIFAR100, metric, permutations=60)
    assert found.z > 10
    assert found.p == 1 / 61  # no permutation is as good; this one counts itself
    assert 0.3 < found.calibrated < 1
    turned = alignment(found.b, found.a, metric, permutations=60)
    assert turned.z == pytest.approx(found.z)
    assert turned.calibrated == pytest.approx(found.calibrated)


def test_an_alignment_says_what_it_is() -> None:
    b = from_wordnet("cifar10")
    a = noise(10, like=b)
    found = alignment(a, b)
    assert str(found) == (
        f"{float(found):.3f} (cosine of NCSM with SCSM; random weights give "
        f"{found.chance.random:.3f}, calibrated {found.calibrated:.3f}, p = {found.p:.2g})"
    )
    perfect = from_confusion(np.eye(10, dtype=int), classes=b.classes)
    assert str(alignment(perfect, b)) == (
        "undefined (cosine of CCSM-test with SCSM: one of them is constant or has undefined classes)"
    )
    assert math.isnan(alignment(perfect, b).p)


def test_classes_without_names_are_not_laid_over_named_ones() -> None:
    nameless = from_weights(WEIGHTS)
    assert refused(InputError, lambda: alignment(nameless, PATHS)) == (
        "the classes of NCSM have no names and those of SCSM do, first 'cat'. Position does not say "
        "which is which: name them where it is made, as in from_weights(net, classes=...)."
    )
    assert alignment(nameless, from_weights(WEIGHTS)) == pytest.approx(1)
