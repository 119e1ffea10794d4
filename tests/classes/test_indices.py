"""Indices of class similarity: plain loops, levels of chance, and what must not matter."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from likewise.classes import (
    ClassSimilarity,
    alignment,
    from_confusion,
    from_weights,
    from_wordnet,
    hierarchical_distance,
    idm,
    interval,
    phases,
    ranks,
    templates,
    wsi,
)

METRICS = ("cosine", "ssim", "mse", "mae", "pearson", "spearman")
CIFAR100 = from_wordnet("cifar100")
few = settings(deadline=None, max_examples=30)
seeds = st.integers(0, 10**6)


def noise(count: int, seed: int = 0, width: int = 64, like: ClassSimilarity | None = None) -> ClassSimilarity:
    rows = np.random.default_rng(seed).normal(size=(count, width))
    return from_weights(rows, None if like is None else like.classes)


def matrix(count: int, seed: int, symmetric: bool = True, levels: int = 1000) -> ClassSimilarity:
    """Random similarities; of few levels, so that there are ties."""
    values = np.random.default_rng(seed).integers(0, levels, (count, count)) / levels
    values = np.triu(values, 1) + np.triu(values, 1).T if symmetric else values
    np.fill_diagonal(values, 1)
    return ClassSimilarity(values)


def pairs(similarity: ClassSimilarity) -> list[float]:
    c = len(similarity)
    return [float(similarity.values[i, j]) for i in range(c) for j in range(c) if i != j]


def unit(values: list[float]) -> list[float]:
    low, high = min(values), max(values)
    return [(value - low) / (high - low) for value in values]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


# Alignment


def cosine_loop(x: list[float], y: list[float]) -> float:
    dot = sum(a * b for a, b in zip(x, y, strict=True))
    return dot / math.sqrt(sum(a * a for a in x) * sum(b * b for b in y))


def pearson_loop(x: list[float], y: list[float]) -> float:
    return cosine_loop([a - mean(x) for a in x], [b - mean(y) for b in y])


LOOPS = {
    "cosine": cosine_loop,
    "pearson": pearson_loop,
    "mse": lambda x, y: mean([(a - b) ** 2 for a, b in zip(x, y, strict=True)]),
    "mae": lambda x, y: mean([abs(a - b) for a, b in zip(x, y, strict=True)]),
}


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


def shuffled(names: tuple[str, ...], seed: int) -> list[str]:
    return [str(name) for name in np.random.default_rng(seed).permutation(names)]


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


# Chance


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


# Inverse dissimilarity


def rank_loop(row: np.ndarray, truth: int, answer: int) -> float:
    """The mean place of the answer among the others, over all orders of equals."""
    if truth == answer:
        return 0.0
    others = [j for j in range(len(row)) if j not in (truth, answer)]
    more = sum(row[j] > row[answer] for j in others)
    equal = sum(row[j] == row[answer] for j in others)
    return 1 + more + equal / 2


@few
@given(seeds, st.integers(2, 7), st.sampled_from([3, 1000]))
def test_idm_of_a_confusion_matrix_is_the_mean_over_its_samples(seed: int, count: int, levels: int) -> None:
    similarity = matrix(count, seed, symmetric=False, levels=levels)
    draw = np.random.default_rng(seed)
    samples = draw.integers(0, count, (30, 2))
    table = np.zeros((count, count), int)
    for truth, answer in samples:
        table[truth, answer] += 1
    shift = {(int(t), int(a)): rank_loop(similarity.values[t], t, a) for t, a in samples}
    each = [shift[int(t), int(a)] for t, a in samples]
    wrong = [rank for rank, (t, a) in zip(each, samples, strict=True) if t != a]
    found = idm(similarity, table)
    assert found == pytest.approx(1 - mean(each) / (count - 1), abs=1e-12)
    assert found.accuracy == pytest.approx(1 - len(wrong) / 30, abs=1e-12)
    only = idm(similarity, table, errors_only=True)
    assert only == pytest.approx(1 - mean(wrong) / (count - 1), abs=1e-12)


def test_equals_share_their_mean_rank() -> None:
    row = [1, 0.5, 0.9, 0.5, 0.5, 0.1]  # after one better one, three equals: (2 + 3 + 4) / 3
    assert ranks(np.array([row] * 6))[0].tolist() == [0, 3, 1, 3, 3, 5]


@pytest.mark.parametrize("right", [0, 3])
@pytest.mark.parametrize("count", [2, 3, 10])
def test_chance_is_the_mean_over_all_mistakes_and_the_ceiling_that_of_the_nearest(count: int, right: int) -> None:
    similarity = matrix(count, 3, symmetric=False, levels=10**6)
    every = np.ones((count, count), int)
    np.fill_diagonal(every, right)
    nearest, farthest = (right * np.eye(count, dtype=int) for _ in range(2))
    for i in range(count):
        by = sorted((j for j in range(count) if j != i), key=lambda j: similarity.values[i, j])
        farthest[i, by[0]] += 1
        nearest[i, by[-1]] += 1
    for errors_only in (True, False):
        random = idm(similarity, every, errors_only=errors_only)
        best = idm(similarity, nearest, errors_only=errors_only)
        worst = idm(similarity, farthest, errors_only=errors_only)
        assert random == pytest.approx(random.chance, abs=1e-12)
        assert best == pytest.approx(best.ceiling, abs=1e-12)
        if count == 2:  # the only other class is the nearest and the farthest
            assert math.isnan(best.unit)
        else:
            assert best.unit == pytest.approx(1, abs=1e-12)
            assert worst.unit == pytest.approx(0, abs=1e-12)
    assert idm(similarity, every, errors_only=True).chance == pytest.approx((count - 2) / (2 * (count - 1)), abs=1e-12)


def test_idm_does_not_depend_on_the_order_of_the_classes() -> None:
    reference, draw = from_wordnet("cifar10"), np.random.default_rng(0)
    table = draw.integers(0, 9, (10, 10))
    order = draw.permutation(10)
    moved = reference.only([reference.classes[i] for i in order])
    expected = float(idm(reference, table, errors_only=True))
    found = idm(moved, table[np.ix_(order, order)], errors_only=True)
    assert found == pytest.approx(expected, abs=1e-12)


def test_without_mistakes_there_is_nothing_to_rank() -> None:
    found = idm(noise(4), np.eye(4, dtype=int), errors_only=True)
    assert math.isnan(found)
    whole = idm(noise(4), np.eye(4, dtype=int))
    assert (float(whole), whole.accuracy, whole.ceiling) == (1, 1, 1)
    assert math.isnan(whole.unit)
    assert repr(whole) == "Idm(1.0000, chance=1.0000, ceiling=1.0000)"


# WSI and steps through WordNet


def quantile(values: list[float], q: float) -> float:
    """Between the two values nearest to the place q (n - 1) of the sorted ones."""
    ordered, place = sorted(values), q * (len(values) - 1)
    low = math.floor(place)
    high = min(low + 1, len(values) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


@few
@given(seeds, st.integers(2, 30), st.sampled_from([0.5, 0.8, 0.95, 1.0]))
def test_wsi_is_that_of_a_plain_loop(seed: int, count: int, q: float) -> None:
    similarity = noise(count, seed, width=4)
    upper = [similarity.values[i, j] for i in range(count) for j in range(i + 1, count)]
    tops, ends = [], []
    for i in range(count):
        row = [float(similarity.values[i, j]) for j in range(count) if j != i]
        high, low = quantile(row, q), quantile(row, 1 - q)
        tops.append(mean([v for v in row if v >= high - 1e-12]))  # 27 classes, 0.8: 1 - q is not 0.2
        ends.append(mean([v for v in row if v <= low + 1e-12]))
    found = wsi(similarity, q)
    assert found == pytest.approx((mean(upper), mean(tops), mean(ends)), abs=1e-9)


@few
@given(seeds, st.sampled_from([1, 3]))
def test_steps_through_wordnet_are_those_of_a_plain_loop(seed: int, k: int) -> None:
    reference = from_wordnet("cifar10")
    draw = np.random.default_rng(seed)
    logits, labels = draw.normal(size=(12, 10)), draw.integers(0, 10, 12)
    every, wrong = [], []
    for row, label in zip(logits, labels, strict=True):
        likeliest = sorted(range(10), key=lambda j: -row[j])[:k]
        steps = mean([round(1 / reference.values[label, j] - 1) for j in likeliest])
        every.append(steps)
        if likeliest[0] != label:
            wrong.append(steps)
    expected = (mean(every), mean(wrong))
    assert hierarchical_distance(logits, labels, reference, k) == pytest.approx(expected)
    tensors = torch.from_numpy(logits), torch.from_numpy(labels)
    assert hierarchical_distance(*tensors, reference, k) == pytest.approx(expected)


def test_a_dog_taken_for_a_cat_is_four_steps_away() -> None:
    reference = from_wordnet(["dog.n.01", "cat.n.01"])
    found = hierarchical_distance([[0.0, 1.0], [1.0, 0.0]], [0, 0], reference)
    assert found == pytest.approx((2, 4))  # dog - canine - carnivore - feline - cat
    assert math.isnan(hierarchical_distance([[1.0, 0.0]], [0], reference).mistakes)


# Intervals


def accuracy(table: np.ndarray) -> float:
    return float(np.trace(table) / table.sum())


def test_an_interval_of_accuracy_is_the_binomial_one() -> None:
    table = np.array([[700, 100], [100, 100]])
    found = interval(table, accuracy, resamples=4000)
    wide = 1.96 * math.sqrt(0.8 * 0.2 / 1000)
    assert found == pytest.approx((0.8, 0.8 - wide, 0.8 + wide), abs=0.002)
    assert interval(table, accuracy) == interval(table, accuracy)
    assert interval(table, accuracy, seed=1) != interval(table, accuracy)


def test_an_interval_covers_the_truth_as_often_as_it_says() -> None:
    chances = np.array([0.3, 0.1, 0.2, 0.4])
    draw, covered = np.random.default_rng(0), 0
    for _ in range(200):
        table = draw.multinomial(150, chances).reshape(2, 2)
        found = interval(table, accuracy, level=0.9, resamples=150)
        covered += found.low <= 0.7 <= found.high
    assert covered / 200 == pytest.approx(0.9, abs=0.05)


def test_an_interval_of_what_is_undefined_is_undefined() -> None:
    perfect = np.eye(3, dtype=int)
    found = interval(perfect, lambda table: idm(noise(3), table, errors_only=True))
    assert all(math.isnan(part) for part in found)
    once = np.array([[20, 1, 0], [0, 20, 0], [0, 0, 20]])  # many draws have no mistake at all
    found = interval(once, lambda table: idm(noise(3), table, errors_only=True))
    assert found.low <= found.value <= found.high


# Phases

PARTS = np.concatenate([np.linspace(0, 1, 11), np.linspace(0.97, 0.7, 10), np.full(39, 0.7)])


def test_surge_refinement_and_rest_are_told_apart() -> None:
    # The median of three takes the peak down to 0.97: 95 % of that, 0.9215, is reached by epoch 10.
    # A tenth of the climb around 0.7 ends at 0.797: epoch 16 is at 0.82, epoch 17 at 0.79.
    found = phases(PARTS)
    assert (found.surge_end, found.refinement_end, found.clear) == (10, 16, True)
    assert str(found) == "surge to epoch 10, refinement to epoch 16, then rest"


@few
@given(st.floats(0.01, 100), st.floats(-10, 10))
def test_phases_do_not_depend_on_the_scale_of_the_curve(scale: float, shift: float) -> None:
    assert phases(scale * PARTS + shift) == phases(PARTS)


def test_phases_are_told_in_the_numbers_of_the_epochs() -> None:
    found = phases(PARTS, range(100, 100 + 2 * len(PARTS), 2))
    assert (found.surge_end, found.refinement_end) == (120, 132)
    holes = np.insert(PARTS, 5, np.nan)
    found = phases(holes, [0, 1, 2, 3, 4, 99, *range(5, 60)])
    assert found == phases(PARTS)


def test_one_odd_epoch_is_no_top() -> None:
    odd = PARTS.copy()
    odd[40] = 5.0
    assert phases(odd) == phases(PARTS)


def test_a_curve_that_only_climbs_and_stays_has_no_refinement() -> None:
    # 1 - exp(-x / 3) is 95 % of the way at x = 3 ln 20 = 8.99
    found = phases(1 - np.exp(-np.arange(60) / 3))
    assert (found.surge_end, found.refinement_end) == (9, 9)


@pytest.mark.parametrize("curve", [np.full(30, 0.4), np.linspace(1, 0, 30)], ids=["flat", "falling"])
def test_a_curve_that_does_not_climb_has_no_phases(curve: np.ndarray) -> None:
    found = phases(curve)
    assert (found.surge_end, found.refinement_end, found.clear) == (None, None, False)
    assert str(found) == "no clear phases: the curve does not climb from where it started"


@pytest.mark.parametrize("length", [8, 30, 100])
def test_noise_is_no_surge(length: int) -> None:
    draw = np.random.default_rng(0)
    found = [phases(draw.normal(size=length)).surge_end for _ in range(200)]
    assert sum(end is not None for end in found) < 0.05 * 200


def test_some_noise_does_not_hide_the_phases() -> None:
    for seed in range(20):
        noisy = PARTS + 0.01 * np.random.default_rng(seed).normal(size=len(PARTS))
        found = phases(noisy)
        assert found.surge_end == pytest.approx(10, abs=1)
        assert found.refinement_end == pytest.approx(16, abs=1)


@pytest.mark.parametrize(
    ("curve", "said"),
    [
        (PARTS[:7], "no clear phases: 7 epochs are too few, 8 are needed"),
        ([*PARTS[:7], np.nan, np.nan], "no clear phases: 7 epochs are too few, 8 are needed"),
        ([], "no clear phases: 0 epochs are too few, 8 are needed"),
        (
            np.linspace(0, 1, 40),
            "no clear phases: the curve was still climbing when the training ended",
        ),
        (
            [*PARTS[:11], *np.linspace(0.9, 0.1, 9)],
            "surge to epoch 9, then still changing when the training ended",
        ),
    ],
    ids=["short", "holes", "empty", "climbing", "falling at the end"],
)
def test_what_cannot_be_told_has_a_reason(curve: np.ndarray, said: str) -> None:
    found = phases(curve)
    assert str(found) == said
    assert found.clear is False


# Templates


@few
@given(seeds, st.integers(1, 4))
def test_templates_are_those_of_a_plain_loop(seed: int, count: int) -> None:
    draw = np.random.default_rng(seed)
    rows, labels = draw.normal(size=(25, 3)) + 0.5, draw.integers(0, count, 25)
    answers = np.where(draw.random(25) < 0.5, labels, draw.integers(0, 4, 25))

    def template(c: int, of: tuple[bool, ...]) -> list[float] | None:
        own = [r for r, y, a in zip(rows, labels, answers, strict=True) if y == c and (y == a) in of]
        return [mean(list(column)) for column in zip(*own, strict=True)] if own else None

    cosines = {True: [], False: []}
    for c, right in product(range(count), (True, False)):
        whole, part = template(c, (True, False)), template(c, (right,))
        if whole is not None and part is not None:
            cosines[right].append(cosine_loop(part, whole))
    away = [
        cosine_loop(list(r), template(y, (True, False)))
        for r, y, a in zip(rows, labels, answers, strict=True)
        if y != a
    ]
    found = templates(rows, labels, answers)
    for value, expected in ((found.right, cosines[True]), (found.wrong, cosines[False])):
        assert value == pytest.approx(mean(expected) if expected else math.nan, nan_ok=True)
    assert found.cosines.tolist() == pytest.approx(away)
    assert found.mistakes == len(away)
    tensors = [torch.from_numpy(part) for part in (rows, labels, answers)]
    assert templates(*tensors).wrong == pytest.approx(found.wrong, nan_ok=True)


def test_hard_samples_lie_away_from_their_template() -> None:
    found = templates([[1.0, 0.0]] * 9 + [[0.0, 1.0]], [0] * 10, [0] * 9 + [1])
    assert found.right == pytest.approx(9 / math.sqrt(82))  # the template is (0.9, 0.1)
    assert found.wrong == pytest.approx(1 / math.sqrt(82))
    assert math.isnan(templates([[1.0, 0.0]], [0], [0]).wrong)
