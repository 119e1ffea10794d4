"""Batches: the features that reach the classifier, and what is counted, refused and left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from likewise.classes import Inspector
from likewise.classes.batches import Tap
from likewise.errors import InputError
from tests.classes.helpers import LABELS, LOGITS, NAMES, WEIGHTS, confused, refusals, refused, reported, warned
from tests.views.helpers import NETS, ROWS, WRAPPERS, Backwards, TwoHeads

test_an_error_is_a_sentence = refusals(
    (
        lambda: confused(LOGITS[:, :2], LABELS),
        "a batch is logits (n, 3) or predictions (n,) with labels (n,), got (4, 2) and (4,).",
    ),
    (
        lambda: confused(LOGITS, LABELS[:3]),
        "a batch is logits (n, 3) or predictions (n,) with labels (n,), got (4, 3) and (3,).",
    ),
    (
        lambda: confused(LABELS / 2, LABELS),
        "predictions must be 4 whole numbers from 0 to 2, got float64 of shape (4,). Give one class index per input.",
    ),
    (
        lambda: confused(LOGITS, [1, 2, 4, 1]),
        "labels must be 4 whole numbers from 0 to 2, got numbers from 1 to 4. Give one class index per input.",
    ),
    (
        lambda: confused([0, 1, 2, 5], LABELS),
        "predictions must be 4 whole numbers from 0 to 2, got numbers from 0 to 5. Give one class index per input.",
    ),
    (
        lambda: confused(LOGITS, LABELS, np.ones((3, 2))),
        "features must be (inputs, width) with one row per label, got (3, 2) for 4 labels.",
    ),
)


@pytest.mark.parametrize(
    "batch",
    [(LOGITS, LABELS + 1), (LOGITS, LABELS[:2]), (LOGITS, LABELS, np.ones((3, 2)))],
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


@pytest.fixture(params=NETS)
def net(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(1)
    return NETS[request.param]().eval()


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("wrap", ["bare", "DataParallel"])
def test_the_tap_takes_the_same_from_the_first_batch_on(net: Any, training: bool, wrap: str) -> None:
    wrapped = WRAPPERS[wrap](net).train(training)
    tap = Tap(wrapped)
    state = torch.get_rng_state()
    for batch in (ROWS[:5], ROWS[5:], ROWS):
        with torch.no_grad():
            wrapped(batch)
            torch.testing.assert_close(tap.take(), net.features(batch))
    assert tap.layer == "fc"
    assert net.training is training
    assert torch.equal(torch.get_rng_state(), state)
    tap.close()
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in net.modules())


def test_a_compiled_network_gives_the_tap_the_right_features_or_none() -> None:
    net = Backwards().eval()
    compiled: Any = torch.compile(net, backend="eager")
    tap = Tap(compiled)
    for batch in (ROWS[:5], ROWS):
        with torch.no_grad():
            compiled(batch)
            seen = tap.take(compiled(batch))
            assert seen is None or torch.equal(seen, net.features(batch))
    tap.close()


def test_a_step_that_calls_parts_of_the_network_tells_the_answer() -> None:
    net = TwoHeads()
    tap = Tap(net, trusts_network=False)
    for batch in (ROWS, ROWS[:3]):
        tap.start()
        features = net.features(batch)
        net.aux(features)
        logits = net.fc(features)
        torch.testing.assert_close(tap.take(logits), features.detach())
    assert tap.layer == "fc"


def test_a_network_that_returns_features_is_not_taken_for_its_answer() -> None:
    class Embeds(Backwards):
        def forward(self, rows: Tensor) -> Any:
            return self.features(rows)

    net = Embeds()
    tap = Tap(net, trusts_network=False)
    logits = net.fc(net(ROWS))
    torch.testing.assert_close(tap.take(logits), net.features(ROWS).detach())
    assert tap.layer == "fc"
