"""Batches added up: what is counted, refused and left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from likewise.classes import (
    Inspector,
)
from likewise.errors import InputError, LikewiseError
from tests.classes.helpers import (
    LABELS,
    LOGITS,
    NAMES,
    WEIGHTS,
    confused,
    refused,
    reported,
    warned,
)

SENTENCES: dict[str, tuple[type[LikewiseError], Callable[[], Any]]] = {
    "a batch is logits (n, 3) or predictions (n,) with labels (n,), got (4, 2) and (4,).": (
        InputError,
        lambda: confused(LOGITS[:, :2], LABELS),
    ),
    "a batch is logits (n, 3) or predictions (n,) with labels (n,), got (4, 3) and (3,).": (
        InputError,
        lambda: confused(LOGITS, LABELS[:3]),
    ),
    "predictions must be 4 whole numbers from 0 to 2, got float64 of shape (4,). Give one class index per input.": (
        InputError,
        lambda: confused(LABELS / 2, LABELS),
    ),
    "labels must be 4 whole numbers from 0 to 2, got numbers from 1 to 4. Give one class index per input.": (
        InputError,
        lambda: confused(LOGITS, [1, 2, 4, 1]),
    ),
    "predictions must be 4 whole numbers from 0 to 2, got numbers from 0 to 5. Give one class index per input.": (
        InputError,
        lambda: confused([0, 1, 2, 5], LABELS),
    ),
    "features must be (inputs, width) with one row per label, got (3, 2) for 4 labels.": (
        InputError,
        lambda: confused(LOGITS, LABELS, np.ones((3, 2))),
    ),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_an_error_is_a_sentence(sentence: str) -> None:
    error, act = SENTENCES[sentence]
    assert refused(error, act) == sentence


@pytest.mark.parametrize(
    "batch",
    [
        (LOGITS, LABELS + 1),
        (LOGITS, LABELS[:2]),
        (LOGITS, LABELS, np.ones((3, 2))),
    ],
    ids=["labels", "lengths", "rows of features"],
)
def test_a_refused_batch_leaves_no_trace(batch: tuple[Any, ...]) -> None:
    inspector, other = reported(None, epochs=1), reported(None, epochs=1)
    with pytest.raises(InputError):
        inspector.update(*batch, split="train")
    for one in (inspector, other):
        one.update(LOGITS, LABELS, WEIGHTS[LABELS])
    with pytest.raises(InputError):
        inspector.update(*batch, split="test")
    for one in (inspector, other):
        one.update(LOGITS, LABELS, WEIGHTS[LABELS])
        one.report(WEIGHTS)
    pd.testing.assert_frame_equal(inspector.curves(), other.curves())
    assert inspector.curves().loc[2, "samples"] == 8


def test_features_of_another_layer_are_refused() -> None:
    inspector = Inspector(NAMES)
    inspector.update(LOGITS, LABELS, np.ones((4, 2)))
    assert refused(InputError, inspector.update, LOGITS, LABELS, np.ones((4, 5))) == (
        "features are 5 wide, and those of the batches before 2. Give those of one layer."
    )
    assert inspector.report()["samples"] == 4


def test_outputs_that_are_nan_are_left_out_and_counted() -> None:
    inspector = Inspector(NAMES)
    logits = np.array(LOGITS)
    logits[[0, 3], 1] = np.nan  # of the four, the first is right and the last is wrong
    features = np.array(WEIGHTS[LABELS])
    features[[0, 3]] = np.nan
    inspector.update(LOGITS, LABELS, WEIGHTS[LABELS])
    _, said = warned(inspector.update, logits, LABELS, features)
    assert said == ["2 of 4 outputs of a batch are NaN: they are left out of this epoch."]
    report = inspector.report(WEIGHTS)
    assert (report["left_out"], report["samples"], report["errors"]) == (2, 6, 1)
    assert np.isfinite(inspector.matrices(1)["features"].values).all()
    inspector.update(LOGITS, LABELS)
    assert "left_out" not in inspector.report(WEIGHTS)


def test_an_infinite_logit_is_an_answer() -> None:
    inspector = Inspector(NAMES)
    inspector.update(np.where(LOGITS == 1, np.inf, LOGITS), LABELS)
    assert inspector.report()["accuracy"] == 0.75


def test_arrays_that_cannot_be_written_are_counted() -> None:
    inspector = Inspector(NAMES)
    logits = LOGITS.copy()
    logits.setflags(write=False)
    inspector.update(logits, LABELS)
    assert inspector.report()["accuracy"] == 0.75
