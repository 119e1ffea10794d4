"""Indices of mistakes: IDM, steps through WordNet, intervals over samples, and templates of classes."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from likewise import classes
from likewise.classes import from_wordnet, hierarchical_distance, idm, interval, ranks, templates
from tests.classes.helpers import (
    EYE,
    LABELS,
    LOGITS,
    NET,
    PATHS,
    cosine_loop,
    few,
    matrix,
    mean,
    noise,
    refusals,
    seeds,
)


def rank_loop(row: np.ndarray, truth: int, answer: int) -> float:
    """The mean place of the answer among the others, over all orders of equals."""
    if truth == answer:
        return 0.0
    others = [j for j in range(len(row)) if j not in (truth, answer)]
    more = sum(row[j] > row[answer] for j in others)
    equal = sum(row[j] == row[answer] for j in others)
    return 1 + more + equal / 2


def accuracy(table: np.ndarray) -> float:
    return float(np.trace(table) / table.sum())


test_an_error_is_a_sentence = refusals(
    (
        lambda: classes.idm(np.eye(3), NET),
        "an array of shape (3, 3) is no class similarity. Give ClassSimilarity(values, names), or one that "
        "from_weights, from_confusion or from_wordnet make.",
    ),
    (
        lambda: classes.idm(NET, [[1, 1], [1, 1]]),
        "the similarity is over 3 classes and the confusion matrix over 2. Both must hold the same classes.",
    ),
    (
        lambda: classes.hierarchical_distance(LOGITS, LABELS, NET),
        "steps can be counted in a path similarity only, and this is NCSM. Give from_wordnet(..., measure='path').",
    ),
    (
        lambda: classes.hierarchical_distance(LOGITS[:, :2], LABELS, PATHS),
        "logits must be (inputs, 3), got (4, 2). Give one row per input.",
    ),
    (lambda: classes.hierarchical_distance(LOGITS, LABELS, PATHS, k=4), "k is 4. Give 1 to 3, the number of classes."),
    (lambda: classes.interval(np.zeros((2, 2)), np.trace), "no sample was counted, so there is nothing to draw from."),
    (
        lambda: classes.interval(EYE, np.trace, level=1.5),
        "level is 1.5 and resamples 500. Give 0 < level < 1 and at least 1.",
    ),
    (
        lambda: classes.templates(LOGITS, LABELS, LABELS[:3]),
        "predictions must be 4 whole numbers from 0, got int64 of shape (3,). Give one class index per input.",
    ),
)


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
