"""Templates of classes, and how far mistakes are from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise import classes
from likewise.classes import (
    templates,
)
from likewise.errors import InputError, LikewiseError
from tests.classes.helpers import LABELS, LOGITS, refused

few = settings(deadline=None, max_examples=30)


seeds = st.integers(0, 10**6)


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def cosine_loop(x: list[float], y: list[float]) -> float:
    dot = sum(a * b for a, b in zip(x, y, strict=True))
    return dot / math.sqrt(sum(a * a for a in x) * sum(b * b for b in y))


SENTENCES: dict[str, tuple[type[LikewiseError], Callable[[], Any]]] = {
    "predictions must be 4 whole numbers from 0, got int64 of shape (3,). Give one class index per input.": (
        InputError,
        lambda: classes.templates(LOGITS, LABELS, LABELS[:3]),
    ),
}


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


@pytest.mark.parametrize("sentence", SENTENCES)
def test_an_error_is_a_sentence(sentence: str) -> None:
    error, act = SENTENCES[sentence]
    assert refused(error, act) == sentence
