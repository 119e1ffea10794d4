"""The inspector as a callback of Lightning.

Metrics go through `pl_module.log_dict`, so they reach every logger, early stopping and checkpoints. What a
step returns is the user's choice, so `get(outputs, batch)` may say where logits and labels are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

from likewise._base.optional import prepare_torchvision, require
from likewise.classes.adapters import ADAPTERS
from likewise.classes.batches import Tap
from likewise.classes.inspector import Inspector
from likewise.classes.learning.steering import lower
from likewise.errors import InputError, brief

Get = Callable[[Any, Any], tuple[Any, Any]]


def callback(inspector: Inspector, get: Get | None = None, prefix: str = "") -> Any:
    """A callback that reports after every validation epoch, its metrics named `prefix` + name."""
    prepare_torchvision()  # Lightning does not import where torchvision does not
    alone = find_spec("lightning") is None and find_spec("pytorch_lightning") is not None
    home = "pytorch_lightning" if alone else "lightning"
    base = require(home, extra="lightning", to="inspect a training with Lightning")
    parent = base.Callback if alone else base.pytorch.callbacks.Callback
    return type("InspectorCallback", (_Hooks, parent), {})(inspector, get or logits_and_labels, prefix)


def logits_and_labels(outputs: Any, batch: Any) -> tuple[Any, Any]:
    """Where they usually are: in a mapping the step returned, or the logits it returned and the batch."""
    if isinstance(outputs, Mapping):
        logits = _first(outputs, ("logits", "preds", "predictions", "outputs", "y_hat"))
        labels = _first(outputs, ("labels", "target", "targets", "y"))
        if logits is not None and labels is not None:
            return logits, labels
        outputs = logits if logits is not None else outputs
    pair = isinstance(batch, (tuple, list)) and len(batch) >= 2
    if getattr(outputs, "ndim", 0) in (1, 2) and pair and len(outputs) == len(batch[1]):
        return outputs, batch[1]
    raise InputError(
        f"validation_step returned {brief(outputs)}, and the inspector needs the logits and labels of every batch. "
        "Return {'logits': ..., 'labels': ...} from it (the logits alone where a batch is (inputs, labels)), or say "
        "where they are: inspector.lightning(get=lambda outputs, batch: (logits, labels))."
    )


def _first(values: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((values[name] for name in names if name in values), None)


def _rate(optimisers: Any) -> dict[str, float]:
    """The learning rate of the first optimiser, where there is one."""
    return {"lr": optimisers[0].param_groups[0]["lr"]} if optimisers else {}


class _Hooks:
    """What Lightning calls."""

    def __init__(self, inspector: Inspector, get: Get, prefix: str) -> None:
        self.inspector, self.get, self.prefix = inspector, get, prefix
        self._tap: Tap | None = None
        self._train_logits = True  # whether a training step returns them

    @property
    def state_key(self) -> str:
        return "likewise.Inspector"

    def state_dict(self) -> dict[str, Any]:
        return self.inspector.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.inspector.load_state_dict(state)

    def _busy(self, trainer: Any) -> bool:
        fitting = trainer.state.fn == "fit" and not trainer.sanity_checking
        return fitting and self.inspector.due(trainer.current_epoch + 1)

    def _open(self, trainer: Any, pl_module: Any) -> None:
        if self._tap is None and self._busy(trainer):
            self._tap = Tap(pl_module, self.inspector.head, trusts_network=False)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        if trainer.global_step == 0:
            self.inspector.start(pl_module)

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self.inspector.reset()
        self._open(trainer, pl_module)

    on_validation_epoch_start = _open

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if not self._busy(trainer) or not self._train_logits:
            return
        try:
            logits, labels = self.get(outputs, batch)
        except (InputError, LookupError, TypeError, AttributeError):  # it returns its loss alone, as most do
            self._train_logits = False
            return
        self.inspector.update(logits, labels, self._features(logits), split="train")

    def on_validation_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        if not self._busy(trainer) or dataloader_idx:
            return
        logits, labels = self.get(outputs, batch)
        self.inspector.update(logits, labels, self._features(logits))
        if self.inspector.attacks(trainer.current_epoch + 1):
            self.inspector.update_adversarial(pl_module, batch[0], labels)

    def _features(self, logits: Any) -> Any:
        return None if self._tap is None else self.inspector.features_of(self._tap, logits)

    def on_train_batch_start(self, *_trainer_and_batch: Any) -> None:
        if self._tap is not None:
            self._tap.start()

    on_validation_batch_start = on_train_batch_start

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        if not self._busy(trainer):
            return
        self._close()
        report = self.inspector.report(pl_module, epoch=trainer.current_epoch + 1, also=_rate(trainer.optimizers))
        if "lr_factor" in report:
            schedulers = [config.scheduler for config in trainer.lr_scheduler_configs]
            lower(trainer.optimizers, schedulers, report["lr_factor"])
        trainer.should_stop = trainer.should_stop or "stopped" in report
        pl_module.log_dict({f"{self.prefix}{name}": float(value) for name, value in report.items()}, sync_dist=False)

    def _close(self, *_trainer_and_exception: Any) -> None:
        if self._tap is not None:
            self._tap.close()
            self._tap = None

    on_exception = on_fit_end = _close


ADAPTERS.add("lightning", callback, module=__name__)
