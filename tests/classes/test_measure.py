"""Networks compared by what they find alike."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import pearsonr

import likewise
from likewise import classes, measures
from likewise.errors import InputError, UndefinedError
from likewise.views import Activations, Outputs

DRAW = np.random.default_rng(0)
LABELS = np.arange(120) % 6
KINSHIP = np.kron(np.eye(2), np.ones((3, 3)))  # two families of three classes
LOGITS = DRAW.normal(size=(120, 2))[:, [0, 0, 0, 1, 1, 1]] + DRAW.normal(size=(120, 6))
OTHER = DRAW.normal(size=(120, 2))[:, [0, 0, 0, 1, 1, 1]] + DRAW.normal(size=(120, 6))
OFF = ~np.eye(6, dtype=bool)


def test_it_is_the_correlation_of_the_class_correlations() -> None:
    expected = pearsonr(np.corrcoef(LOGITS.T)[OFF], np.corrcoef(OTHER.T)[OFF])[0]
    assert measures.class_alignment(LOGITS, OTHER) == pytest.approx(expected, abs=1e-12)


def test_networks_with_the_same_kinships_are_alike_though_they_see_different_inputs() -> None:
    noise = DRAW.normal(size=(120, 6))
    matrix = likewise.compare({"a": LOGITS, "b": OTHER, "noise": noise}, "class-alignment", progress=False)
    assert matrix["a", "b"] > 0.8
    assert abs(matrix["a", "noise"]) < 0.5


def test_features_and_confusion_need_the_labels_and_use_them() -> None:
    features = DRAW.normal(size=(6, 5))[LABELS] + DRAW.normal(size=(120, 5))
    views = [
        Activations(features + shift, outputs=Outputs(logits, LABELS))
        for shift, logits in ((0.0, LOGITS), (0.5, OTHER))
    ]
    by_features = float(likewise.compare(*views, measures.get("class-alignment", of="features")))
    a, b = (classes.from_features(view.values, LABELS) for view in views)
    assert by_features == pytest.approx(float(classes.alignment(a, b, "pearson")), abs=1e-12)
    by_mistakes = measures.get("class-alignment", of="confusion", metric="cosine", labels=LABELS)
    a, b = (classes.from_confusion(LABELS, logits.argmax(1)) for logits in (LOGITS, OTHER))
    assert by_mistakes(LOGITS, OTHER) == pytest.approx(float(classes.alignment(a, b)), abs=1e-12)


def test_unknown_labels_are_asked_for() -> None:
    with pytest.raises(InputError) as error:
        measures.get("class-alignment", of="features")(LOGITS, OTHER)
    assert str(error.value) == (
        "the true labels of 'x' and 'y' are not known. Pass labels=..., or views with Outputs(logits, labels)."
    )


def test_two_classes_have_nothing_to_align() -> None:
    with pytest.raises(UndefinedError) as error:
        measures.class_alignment(LOGITS[:, :2], OTHER[:, :2])
    assert str(error.value) == ("class alignment is undefined for 'x' and 'y': 2 classes have one similarity only.")


def test_classes_that_are_all_equally_alike_have_no_alignment() -> None:
    rng = np.random.default_rng(0)
    simplex = (np.eye(10) - 0.1) @ np.linalg.qr(rng.normal(size=(64, 64)))[0][:10]
    other = rng.random((10, 10))
    alike = likewise.classes.from_weights(simplex)
    reference = likewise.classes.ClassSimilarity((other + other.T) / 2)
    assert math.isnan(float(likewise.classes.alignment(alike, reference)))


N = 24


def related():
    rng = np.random.default_rng(0)
    x = np.maximum(rng.normal(size=(N, 5)), -0.3)
    return x, x @ rng.normal(size=(5, 6)) + 0.3 * rng.normal(size=(N, 6))


@pytest.mark.parametrize("power", [-900, 900])
def test_classes_of_logits_of_any_scale_are_alike(power) -> None:
    x, y = related()
    measure = measures.get("class-alignment")
    far = math.ldexp(1.0, power)
    assert measure(x * far, y[:, :5]) == pytest.approx(measure(x, y[:, :5]), rel=1e-12)
    crowded = x + 1e15  # digits that a division would round away
    assert measure(crowded * far, y[:, :5]) == measure(crowded, y[:, :5])
    tiny = x * np.where(np.arange(5) == 2, 1e-160, 1.0)
    assert measure(tiny, y[:, :5]) == pytest.approx(measure(x, y[:, :5]), rel=1e-12)
