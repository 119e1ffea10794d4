"""The inspector inside the Trainer of transformers.

A callback sees no predictions there and `compute_metrics` no network, so one object is both:
`Trainer(..., callbacks=[hook], compute_metrics=hook)`. Its metrics come out as `eval_...`, to every logger.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from likewise._base.optional import prepare_torchvision, require
from likewise.classes.adapters import ADAPTERS
from likewise.classes.batches import Tap
from likewise.classes.inspector import Inspector
from likewise.classes.learning.steering import lower


def hook(inspector: Inspector, compute_metrics: Callable[[Any], dict[str, float]] | None = None) -> Any:
    """A callback and `compute_metrics` in one; another `compute_metrics` may be passed through it."""
    prepare_torchvision()  # its Trainer does not import where torchvision does not
    base = require("transformers", extra="language", to="inspect a training with transformers")
    return type("InspectorHook", (_Hooks, base.TrainerCallback), {})(inspector, compute_metrics)


class _Hooks:
    """What the Trainer calls."""

    def __init__(self, inspector: Inspector, compute_metrics: Any) -> None:
        self.inspector, self.more = inspector, compute_metrics
        self._model: Any = None
        self._epoch = 0
        self._tap: Tap | None = None
        self._report: dict[str, float] = {}

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._model = kwargs.get("model")
        if self._model is not None:
            self._tap = Tap(self._model, self.inspector.head)
        done = round(state.epoch or 0)
        reports = self.inspector.records.reports
        if any(epoch > done for epoch in reports):  # it resumes from an earlier checkpoint
            earlier = {str(epoch): report for epoch, report in reports.items() if epoch <= done}
            self.inspector.load_state_dict({"reports": earlier})
        if state.global_step == 0 and self._model is not None:
            self.inspector.start(self._model)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._tap is not None:
            self._tap.close()

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._epoch = round(state.epoch or 0)

    def __call__(self, prediction: Any) -> dict[str, float]:
        logits = prediction.predictions
        logits = logits[0] if isinstance(logits, (tuple, list)) else logits
        metrics = dict(self.more(prediction)) if self.more is not None else {}
        epoch = self._epoch or self.inspector.next_epoch
        if not self.inspector.due(epoch):
            return metrics
        if self._tap is not None:  # the batches before have shown which layer answers
            self.inspector.answering = self._tap.layer
            self._tap.start()
        self.inspector.reset()
        self.inspector.update(np.asarray(logits), np.asarray(prediction.label_ids))
        self._report = self.inspector.report(self._model, epoch=epoch)
        return metrics | self._report

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        report, self._report = self._report, {}
        if "lr_factor" in report and kwargs.get("optimizer") is not None:
            schedulers = [scheduler for scheduler in (kwargs.get("lr_scheduler"),) if scheduler is not None]
            lower([kwargs["optimizer"]], schedulers, report["lr_factor"])
        control.should_training_stop = control.should_training_stop or "stopped" in report


ADAPTERS.add("transformers", hook, module=__name__)
