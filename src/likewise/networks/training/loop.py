"""One training loop for every domain: images, graphs and text differ only in how a batch is asked.

Every epoch draws its chance from the seed and its own number alone, so that a training which is
killed and started again walks the same way to the same weights, bit for bit on one machine.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from likewise._base.files import is_file, make_folder
from likewise._base.progress import tracked
from likewise.data import Data
from likewise.data.address import dataset
from likewise.data.images import ImageFiles
from likewise.errors import InputError, quoted_list
from likewise.networks.class_names import classes_of, record
from likewise.networks.load import network, recipe, save
from likewise.networks.normalise import unwrapped
from likewise.networks.training import checkpoints
from likewise.networks.training.augment import Augment
from likewise.networks.training.settings import Schedule, Settings, make_optimiser, rate_at, waited
from likewise.networks.training.step import Batch, Classify, Step, evaluate
from likewise.wordnet import locate

Callback = Callable[[nn.Module, Mapping[str, Any]], object]


@runtime_checkable
class Watcher(Protocol):
    """A callback that also wants to see the batches, and to know when an epoch begins."""

    def begin(self, net: nn.Module, epoch: int) -> None: ...

    def watch(self, net: nn.Module, split: str, inputs: Any, logits: Tensor, labels: Tensor) -> None: ...


@dataclass(frozen=True, eq=False)
class Training:
    """A training that is over: the network, and what was measured after each epoch."""

    net: nn.Module
    history: list[dict[str, Any]]
    settings: Settings
    folder: Path | None = None


def train(
    net: nn.Module | str,
    data: Data | str,
    *,
    epochs: int,
    out: str | Path | None = None,
    keep_epochs: bool = False,
    validation: Data | str | None = None,
    seed: int = 0,
    batch_size: int = 128,
    optimiser: str = "sgd",
    lr: float | None = None,
    momentum: float = 0.9,
    weight_decay: float = 5e-4,
    schedule: Schedule = "cosine",
    milestones: Sequence[float] = (0.5, 0.75),
    decay: float = 0.1,
    warmup: float = 0.0,
    label_smoothing: float = 0.0,
    augment: str | Sequence[str | Augment] = (),
    mixup: float = 0.0,
    cutmix: float = 0.0,
    clip: float | None = None,
    patience: int | None = None,
    step: Step | None = None,
    callbacks: Sequence[Callback] = (),
    device: Any = None,
    progress: bool | None = None,
) -> Training:
    """Train a network on labelled data, in place; both may be addresses.

    With `out`, every epoch is saved there, and a training that was killed goes on; at the end the
    folder holds `weights.safetensors`, an address of its own. `keep_epochs` also leaves the weights
    of every epoch in `epochs/`, from 0, before the first step. `warmup` is in epochs, `milestones`
    are shares of all epochs. `patience` stops early after so many epochs without a lower
    validation loss. `step(net, (inputs, labels))` may replace the forward pass and returns loss,
    logits and labels. A callback is told the network and the epoch's record; it stops the training
    by returning True, and adds to the record by returning a mapping. One that has `begin` and `watch`
    (`likewise.classes.Inspector` is one) sees the batches of training and validation too.

    >>> done = train("zoo:mlp", "digits:train[:200]", epochs=2, lr=0.05)
    >>> [record["epoch"] for record in done.history]
    [1, 2]
    """
    settings = Settings(
        epochs=epochs,
        seed=seed,
        batch_size=batch_size,
        optimiser=optimiser,
        lr=lr,
        momentum=momentum,
        weight_decay=weight_decay,
        schedule=schedule,
        milestones=tuple(milestones),
        decay=decay,
        warmup=warmup,
        label_smoothing=label_smoothing,
        augment=(augment,) if isinstance(augment, str) else tuple(augment),
        mixup=mixup,
        cutmix=cutmix,
        clip=clip,
        patience=patience,
    )
    if isinstance(data, str):
        data = dataset(data, split="train")
    if isinstance(validation, str):
        validation = dataset(validation)
    _check_data(data, validation)
    folder = _folder(out, keep_epochs)
    if isinstance(net, str):
        net = network(net, data=data, seed=seed, untrained=True)
    _check_batches(net, data, settings)
    record(net, classes_of(data))
    if device is not None:
        net.to(device)
    show = sys.stderr.isatty() if progress is None else progress
    watchers: list[Any] = [c for c in callbacks if isinstance(c, Watcher)]
    answer = step or Classify(settings, data)
    run = _Run(net, data, validation, settings, answer, device, show, watchers)
    history = run.to_the_end(folder, callbacks, keep_epochs)
    if folder is not None:
        save(net, folder / checkpoints.WEIGHTS)
    return Training(net.eval(), history, settings, folder)


def _check_data(data: Any, validation: Any) -> None:
    for what, given in (("to train on", data), ("to validate on", validation)):
        if given is None and what != "to train on":
            continue
        if not isinstance(given, Data):
            raise InputError(
                f"the data {what} is a {type(given).__name__}, which does not say what its classes "
                "are. Give an address, or likewise.data.Data of inputs, labels and classes."
            )
        if not len(given):
            raise InputError(f"{given.name!r} has no inputs {what}. Give at least one.")
    if validation is not None:
        _check_classes(data, validation)


def _check_classes(data: Data, validation: Data) -> None:
    """Refuse to validate on classes that are not trained; another order of them is no matter."""
    wanted, known = classes_of(validation), classes_of(data)
    if wanted is None or known is None:
        return
    start = f"{validation.name!r} cannot validate a training on {data.name!r}: of its classes,"
    rest = f"are not surely among {quoted_list(known.names)}. Validate on data of the same classes."
    locate(wanted, known, lambda missing: f"{start} {missing} {rest}")


def _folder(out: str | Path | None, keep_epochs: bool) -> Path | None:
    if out is None:
        if keep_epochs:
            raise InputError("keep_epochs needs a folder to keep the epochs in. Give out.")
        return None
    if not os.fspath(out):
        raise InputError("out is empty. Name a folder.")
    folder = Path(out).expanduser()
    if is_file(folder):
        raise InputError(f"{folder} is a file, and a training needs a folder. Give another out.")
    make_folder(folder)  # before the first epoch is trained for nothing
    return folder


def _check_batches(net: nn.Module, data: Data, settings: Settings) -> None:
    """Batch normalisation takes means over the batch, and one input has none."""
    alone = data.domain != "graph" and min(settings.batch_size, len(data)) == 1
    normed = any(isinstance(part, nn.modules.batchnorm._BatchNorm) for part in net.modules())
    if alone and normed:
        raise InputError(
            f"{type(unwrapped(net)).__name__} has batch normalisation, which cannot be trained on "
            "batches of one input. Give a batch_size of at least 2, and as many inputs."
        )


@dataclass(frozen=True, eq=False)
class _Run:
    """One training under way."""

    net: nn.Module
    data: Data
    validation: Data | None
    settings: Settings
    step: Step
    device: Any
    show: bool
    watchers: Sequence[Watcher] = ()

    def to_the_end(self, folder: Path | None, callbacks: Sequence[Callback], keep_epochs: bool) -> list[dict[str, Any]]:
        if folder is None:
            return self._walk(None, callbacks, keep_epochs, {})
        with checkpoints.started(self.net, folder) as start:
            return self._walk(folder, callbacks, keep_epochs, self._identity(start))

    def _walk(
        self,
        folder: Path | None,
        callbacks: Sequence[Callback],
        keep_epochs: bool,
        known: dict[str, Any],
    ) -> list[dict[str, Any]]:
        optimiser = make_optimiser(self.net, self.settings)
        history: list[dict[str, Any]] = []
        if folder is not None:
            history = checkpoints.resume(folder, self.net, optimiser, known)
            if keep_epochs and not history:
                save(self.net, checkpoints.epoch_file(folder, 0))
        epochs = range(len(history), self.settings.epochs)
        few = self._steps() < 20  # one bar for all epochs, or one an epoch
        for epoch in tracked(epochs, "training", total=len(epochs), show=self.show and few):
            if _is_over(history, self.settings):
                break
            with _own_chance(self.settings.seed, epoch):
                record = self._epoch(epoch, optimiser, _losses(history), self.show and not few)
            for said in [callback(self.net, record) for callback in callbacks]:
                record |= {"stopped": True} if said is True else {}
                record |= said if isinstance(said, Mapping) else {}
            history.append(record)
            if folder is not None:
                if keep_epochs:
                    save(self.net, checkpoints.epoch_file(folder, epoch + 1))
                checkpoints.save(folder, self.net, optimiser, checkpoints.Saved(known, history))
        return history

    def _identity(self, start: str) -> dict[str, Any]:
        # files may be many; their number has to do
        in_files = isinstance(self.data.inputs, ImageFiles)
        inputs = len(self.data) if in_files else self.data.probe
        made = recipe(self.net)
        name = made.network if made is not None else type(unwrapped(self.net)).__name__
        options = {} if made is None else made.options
        facts = {"network": name, "options": options, checkpoints.START: start}
        return facts | {"data": self.data.name, "inputs": inputs} | self.settings.record()

    def _steps(self) -> int:
        whole = self.data.domain == "graph"
        return 1 if whole else math.ceil(len(self.data) / self.settings.batch_size)

    def _epoch(self, epoch: int, optimiser: torch.optim.Optimizer, losses: list[float], show: bool) -> dict[str, Any]:
        start, steps = time.perf_counter(), self._steps()
        shuffle = int(torch.randint(2**31, ()))
        batches = self.data.batches(self.settings.batch_size, shuffle=shuffle, device=self.device)
        label = f"epoch {epoch + 1} of {self.settings.epochs}"
        for watcher in self.watchers:
            watcher.begin(self.net, epoch + 1)
        self.net.train()
        total, right, count = 0.0, 0, 0
        for i, batch in enumerate(tracked(batches, label, total=steps, show=show)):
            if len(batch[1]) == 1 and i > 0 and self.settings.batch_size > 1:
                continue  # a rest of one, on which batch normalisation cannot be trained
            rate = rate_at(self.settings, epoch + i / steps, losses)
            loss, logits, labels = self._update(optimiser, batch, rate)
            self._shown("train", batch[0], logits, labels)
            total += loss * len(labels)
            right += int((logits.argmax(dim=1) == labels).sum())
            count += len(labels)
        record = {"epoch": epoch + 1, "lr": rate, "loss": total / count, "accuracy": right / count}
        if not math.isfinite(total):
            raise InputError(
                f"the loss is {total / count} in epoch {epoch + 1}. Lower lr (it was {rate:.3g}) or give warmup."
            )
        if self.validation is not None:
            loss, accuracy = evaluate(
                self.net,
                self.validation,
                batch_size=self.settings.batch_size,
                device=self.device,
                shown=partial(self._shown, "test"),
            )
            record |= {"validation_loss": loss, "validation_accuracy": accuracy}
        return record | {"seconds": round(time.perf_counter() - start, 3)}

    def _shown(self, split: str, inputs: Any, logits: Tensor, labels: Tensor) -> None:
        for watcher in self.watchers:
            watcher.watch(self.net, split, inputs, logits, labels)

    def _update(self, optimiser: torch.optim.Optimizer, batch: Batch, rate: float) -> tuple[float, Tensor, Tensor]:
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.zero_grad(set_to_none=True)
        loss, logits, labels = self.step(self.net, batch)
        loss.backward()  # type: ignore[no-untyped-call]
        if self.settings.clip is not None:
            nn.utils.clip_grad_norm_(self.net.parameters(), self.settings.clip)
        optimiser.step()
        return float(loss.detach()), logits.detach(), labels


def _losses(history: Sequence[Mapping[str, Any]]) -> list[float]:
    """The losses that plateaus and patience look at: of validation where there is one."""
    return [record.get("validation_loss", record["loss"]) for record in history]


def _is_over(history: Sequence[Mapping[str, Any]], settings: Settings) -> bool:
    if history and history[-1].get("stopped"):
        return True
    return settings.patience is not None and waited(_losses(history)) >= settings.patience


@contextmanager
def _own_chance(seed: int, epoch: int) -> Iterator[None]:
    """An epoch's own randomness, from seed and number; torch's is put back afterwards."""
    devices = list(range(torch.cuda.device_count()))
    deterministic = torch.backends.cudnn.deterministic
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed((seed * 1_000_003 + epoch) % 2**63)
        torch.backends.cudnn.deterministic = True
        try:
            yield
        finally:
            torch.backends.cudnn.deterministic = deterministic
