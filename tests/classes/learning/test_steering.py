"""What follows from the phases of a training while it runs: its end, or a lower learning rate."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import likewise
from likewise.classes import Inspector, phases
from likewise.classes.learning.phases import surge_end
from likewise.classes.learning.steering import lower
from likewise.errors import UnknownNameError
from likewise.networks import Training
from tests.classes.helpers import LABELS, LOGITS, NAMES, WEIGHTS, refusals

CURVE = "accuracy_train"  # which needs no validation data, as the weights do not
SETTINGS: dict[str, Any] = {"epochs": 45, "lr": 0.05, "batch_size": 16, "schedule": "constant", "progress": False}


def trained(inspector: Inspector, out: Path | None = None, **changes: Any) -> Training:
    return likewise.train(
        "zoo:mlp,hidden=16", "digits:train[:128]", out=out, callbacks=[inspector], **(SETTINGS | changes)
    )


def without_weights() -> Mapping[str, float]:
    inspector = Inspector(NAMES, stop_after="rest")
    inspector.update(LOGITS, LABELS)
    return inspector.report()


test_an_error_is_a_sentence = refusals(
    (lambda: Inspector(3, stop_after="peak"), "stop_after is 'peak'. Give 'surge' or 'rest'."),
    (lambda: Inspector(3, reduce_lr_after="end"), "reduce_lr_after is 'end'. Give 'surge' or 'rest'."),
    (lambda: Inspector(3, lr_factor=10), "lr_factor is 10. Give a factor between 0 and 1."),
    (lambda: Inspector(3, lr_factor="half"), "lr_factor is 'half'. Give a factor between 0 and 1."),
    (
        lambda: Inspector(3, stop_after="rest", phases_of="wsimax"),
        "no index named 'wsimax'. Did you mean 'wsi_max'? likewise.classes.INDICES lists them.",
        UnknownNameError,
    ),
    (
        without_weights,
        "the phases of 'wsi_max' are to steer the training, and epoch 1 has no such index. Give report() the "
        "classifier's weights, or name another index in phases_of.",
    ),
)


def test_a_training_stops_when_rest_is_certain() -> None:
    watched = Inspector(10, reduce_lr_after="surge", lr_factor=0.999, phases_of=CURVE)
    trained(watched)
    curve = watched.curves()[CURVE].loc[1:]
    first = next(n for n in curve.index if phases(curve.loc[:n].tolist(), curve.loc[:n].index.tolist()).clear)
    assert 20 <= first < 45
    stopping = Inspector(10, stop_after="rest", reduce_lr_after="surge", lr_factor=0.999, phases_of=CURVE)
    history = trained(stopping).history
    assert [record["epoch"] for record in history] == list(range(1, first + 1))
    assert stopping.curves()["stopped"].tolist()[-2:] == pytest.approx([np.nan, 1.0], nan_ok=True)


def test_the_learning_rate_is_lowered_once_after_the_surge_also_when_resumed(tmp_path: Path) -> None:
    watched = Inspector(10, reduce_lr_after="surge", lr_factor=0.2, phases_of=CURVE, out=tmp_path / "inspected")
    trained(watched, tmp_path / "run", epochs=24)
    again = Inspector(10, reduce_lr_after="surge", lr_factor=0.2, phases_of=CURVE, out=tmp_path / "inspected")
    history = trained(again, tmp_path / "run", epochs=30).history
    curve = again.curves()[CURVE].loc[1:].tolist()
    seen = next(length for length in range(1, 31) if surge_end(curve[:length]) is not None)
    assert seen < 24  # the training was resumed after it
    assert [record["lr"] for record in history] == pytest.approx([0.05] * seen + [0.01] * (30 - seen))
    assert again.curves()["lr"].loc[1:].tolist() == pytest.approx([record["lr"] for record in history])


def test_another_index_may_steer_and_a_loop_of_ones_own_reads_the_report() -> None:
    inspector = Inspector(NAMES, stop_after="surge", reduce_lr_after="surge", phases_of="accuracy")
    reports = []
    for epoch in range(25):
        inspector.update(LOGITS if epoch > 3 else np.roll(LOGITS, 1, axis=1), LABELS)
        reports.append(inspector.report(WEIGHTS))
    assert [epoch for epoch, report in enumerate(reports) if "lr_factor" in report] == [19]
    assert [epoch for epoch, report in enumerate(reports) if "stopped" in report] == [19, 20, 21, 22, 23, 24]
    assert reports[19]["lr_factor"] == 0.1


def test_rates_of_optimisers_and_what_schedulers_count_from_are_lowered() -> None:
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    halving = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda epoch: 0.5**epoch)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser)
    lower([optimiser], [halving, plateau], 0.1)
    assert optimiser.param_groups[0]["lr"] == pytest.approx(0.1)
    optimiser.step()
    halving.step()
    assert optimiser.param_groups[0]["lr"] == pytest.approx(0.05)
