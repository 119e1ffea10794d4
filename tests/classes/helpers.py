"""Three classes, a network's weights and answers, and what the tests of refusals share."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st

from likewise.classes import ClassSimilarity, Inspector, from_weights, from_wordnet
from likewise.data import Data
from likewise.errors import InputError, LikewiseError

METRICS = ("cosine", "ssim", "mse", "mae", "pearson", "spearman")
NAMES = ("cat", "dog", "ship")
WEIGHTS = np.array([[1.0, 0.2, 0.1], [0.9, 0.3, 0.3], [-1.0, 0.0, 0.5]])
NET = from_weights(WEIGHTS, NAMES)
PATHS = from_wordnet(["cat.n.01", "dog.n.01", "ship.n.01"], names=NAMES)
LOGITS, LABELS = np.eye(3)[[0, 1, 2, 0]], np.array([0, 1, 2, 1])
IMAGES = Data("three", "image", torch.rand(3, 1, 4, 4), [0, 1, 2], NAMES)
TEXTS = Data("words", "text", ["a", "b", "c"], [0, 1, 2], NAMES)
EYE = np.eye(3, dtype=int)
few = settings(deadline=None, max_examples=30)
seeds = st.integers(0, 10**6)
SYNSETS = ("cat.n.01", "dog.n.01", "frog.n.01", "ship.n.01", "truck.n.01")
TEN = from_wordnet("cifar10")
ORDER = TEN.order()


def refusals(*cases: tuple[Any, ...]) -> Callable[..., None]:
    """A test that every call is refused by its sentence, from (call, sentence) or (call, sentence, error)."""

    @pytest.mark.parametrize(("act", "sentence", "error"), [(*case, InputError)[:3] for case in cases])
    def test(act: Callable[[], Any], sentence: str, error: type[LikewiseError]) -> None:
        message = refused(error, act)
        assert message == sentence, message

    return test


def refused(error: type[LikewiseError], act: Callable[..., Any], *given: Any, **named: Any) -> str:
    with pytest.raises(error) as caught:
        act(*given, **named)
    return str(caught.value)


def warned(act: Callable[..., Any], *given: Any, **named: Any) -> tuple[Any, list[str]]:
    """What it gives, and its warnings, all of which must point here."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = act(*given, **named)
    assert {warning.filename for warning in caught} == {__file__}
    return found, [str(warning.message) for warning in caught]


def confused(*given: Any, **named: Any) -> None:
    Inspector(3).update(*given, **named)


def reported(out: Path | None, epochs: int = 2) -> Inspector:
    inspector = Inspector(NAMES, reference=PATHS, out=out)
    for _ in range(epochs):
        inspector.update(LOGITS, LABELS)
        inspector.report(WEIGHTS)
    return inspector


def watched(epochs: int, classes_: Any = "cifar10", features: bool = False) -> Inspector:
    inspector = Inspector(classes_)
    count = len(inspector.classes)
    for epoch in range(epochs):
        draw = np.random.default_rng(epoch)
        truth = np.arange(8 * count) % count
        answers = np.where(draw.random(len(truth)) < 0.5, truth, draw.integers(0, count, len(truth)))
        seen = draw.normal(size=(len(truth), 3)) if features else None
        inspector.update(answers, truth, seen)
        inspector.report(draw.normal(size=(count, 6)))
    return inspector


def noise(count: int, seed: int = 0, width: int = 64, like: ClassSimilarity | None = None) -> ClassSimilarity:
    rows = np.random.default_rng(seed).normal(size=(count, width))
    return from_weights(rows, None if like is None else like.classes)


def matrix(count: int, seed: int, symmetric: bool = True, levels: int = 1000) -> ClassSimilarity:
    """Random similarities; of few levels, so that there are ties."""
    values = np.random.default_rng(seed).integers(0, levels, (count, count)) / levels
    values = np.triu(values, 1) + np.triu(values, 1).T if symmetric else values
    np.fill_diagonal(values, 1)
    return ClassSimilarity(values)


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def cosine_loop(x: list[float], y: list[float]) -> float:
    dot = sum(a * b for a, b in zip(x, y, strict=True))
    return dot / math.sqrt(sum(a * a for a in x) * sum(b * b for b in y))


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def hollow(values: np.ndarray) -> np.ndarray:
    values = np.array(values)
    np.fill_diagonal(values, np.nan)
    return values
