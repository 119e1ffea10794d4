"""One training loop for every domain: images, graphs and text differ only in how a batch is made.

Every epoch draws its random numbers from the seed and its own number alone, so that a training which is
killed and started again ends with the same weights, bit for bit on one machine.
"""

from __future__ import annotations

import inspect
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Unpack, runtime_checkable

import torch
from torch import Tensor, nn

from likewise._base.files import is_file
from likewise._base.folders import claim
from likewise._base.progress import tracked, warn
from likewise.data import Data
from likewise.data.address import dataset
from likewise.data.image_files import ImageFiles
from likewise.errors import DamagedStoreWarning, InputError, quoted_list
from likewise.networks.address import network, recipe, save
from likewise.networks.building import on_device
from likewise.networks.class_names import classes_of, record_classes
from likewise.networks.forward import device_of, input_kind, prepare_inputs
from likewise.networks.inputs.normalisation import note, record_transform, unwrapped
from likewise.networks.inputs.tokenizers import cut_texts, warn_of_cut_texts, warn_of_split_tokens
from likewise.networks.training import checkpoints
from likewise.networks.training.settings import Settings, SettingsDict, epochs_since_lowest, make_optimiser, rate_at
from likewise.networks.training.step import Batch, Classify, Step, evaluate
from likewise.networks.training.teacher import prepare
from likewise.wordnet import locate
from likewise.work.engines import engine_of, engine_settings
from likewise.work.tasks import Call, check_plain, run_calls

Callback = Callable[[nn.Module, Mapping[str, Any]], object]
BatchFunction = Callable[[Any, Tensor, Tensor], None]
History = list[dict[str, Any]]
_SPARE = 20  # times what a checkpoint takes, to train before the next: at most a twentieth is spent on them


@runtime_checkable
class BatchCallback(Protocol):
    """A callback that also sees the batches, and is told when an epoch begins."""

    def begin(self, net: nn.Module, epoch: int) -> None:
        """Called before the first batch of an epoch."""

    def watch(self, net: nn.Module, split: str, inputs: Any, logits: Tensor, labels: Tensor) -> None:
        """Called after every batch; `split` is "train" or "test"."""


@dataclass(frozen=True, eq=False)
class Training:
    """A training that is over.

    Attributes:
        net: The trained network, in evaluation mode.
        history: One record per epoch: its number, the learning rate, loss and accuracy, validation, seconds.
        settings: The settings it was trained with.
        folder: Where it was saved, None where it was not.
    """

    net: nn.Module
    history: History
    settings: Settings
    folder: Path | None = None


def train(
    net: nn.Module | str,
    data: Data | str,
    settings: Settings | None = None,
    *,
    out: str | Path | None = None,
    keep_epochs: bool = False,
    validation: Data | str | None = None,
    teacher: nn.Module | str | Path | None = None,
    step: Step | None = None,
    callbacks: Sequence[Callback] = (),
    device: Any = None,
    num_workers: int | None = None,
    progress: bool | None = None,
    engine: Any = None,
    workers: int | None = None,
    engine_options: Mapping[str, Any] | str | None = None,
    **changes: Unpack[SettingsDict],
) -> Training:
    """Train a network on labelled data, in place; both may be addresses.

    With `out`, epochs are saved there (all, or where they are much shorter than saving them, one in a while), and a
    training that was killed is resumed; at the end the folder holds `weights.safetensors`, an address of its own. One
    that is over takes more `epochs` where its schedule is constant or plateau, and is then as if it had had them from
    the start.

    Args:
        net: A network or its address.
        data: Labelled data or its address.
        settings: The settings, of which keywords change some.
        out: The folder of the training: a new or an empty one, or that of an earlier training.
        keep_epochs: Also keep the weights of every epoch in `epochs/`, from 0, before the first step.
        validation: Data to validate on after every epoch.
        teacher: A trained network of the same classes: half of the loss is then to what it answers to the batch, half
            to the labels.
        step: `step(net, (inputs, labels))` in place of the forward pass; it returns loss, logits and labels.
        callbacks: Functions of the network and the record of an epoch. One stops the training by returning True, and
            adds to the record by returning a mapping, whose `lr_factor` multiplies the learning rate from then on and
            whose `stopped` ends the training. One that has `begin` and `watch` (`likewise.classes.Inspector`
            is one) sees the batches of training and validation too.
        device: Where to train, such as "cuda"; by default a network of an address is trained on the accelerator, if
            there is one.
        num_workers: How many processes decode image files ahead of the network; the weights do not depend on it. By
            default one per core, and none where the decoded images fit in memory and the network runs on the CPU.
        progress: Whether to show a progress bar; by default on a terminal.
        engine: Where to train: None for this process, "processes", "dask", "ray", "slurm" or an executor. Network and
            data are then addresses, and `out` is a folder that its workers see.
        workers: How many tasks the engine runs at a time; a training is one.
        engine_options: What the engine's library takes for the training, such as `{"num_gpus": 1}` of Ray.
        **changes: Settings by name (`epochs`, `lr`, all fields of `likewise.networks.Settings`).

    Example:
        >>> done = train("zoo:mlp", "digits:train[:200]", epochs=2, lr=0.05)
        >>> [record["epoch"] for record in done.history]
        [1, 2]
    """
    settings = (settings or Settings()).override(changes, also=list(inspect.signature(train).parameters))
    engine_settings(engine, workers, engine_options)
    if engine is not None:
        check_plain("train", net=net, data=data, validation=validation, teacher=teacher, callbacks=callbacks, step=step)
        if out is None:
            raise InputError("the workers of an engine leave weights in a folder. Pass out=, one that all of them see.")
        keywords = {"out": Path(out).absolute(), "keep_epochs": keep_epochs, "validation": validation}
        keywords |= {"teacher": teacher, "device": device, "num_workers": num_workers}
        task = Call(f"the training of {net}", _train_there, (net, data, settings), keywords)
        run_calls(
            [task], engine_of(engine, workers=workers, options=engine_options), "training", progress=bool(progress)
        )
    data = dataset(data, split="train") if isinstance(data, str) else data
    validation = dataset(validation) if isinstance(validation, str) else validation
    _check_data(data, validation)
    if validation is None and (settings.keep_best or settings.evaluate_every is not None):
        what = "keep_best" if settings.keep_best else "evaluate_every"
        raise InputError(f"{what} needs data to validate on. Give validation, as in validation='digits:test'.")
    folder = _folder(out, keep_epochs)
    if isinstance(net, str):
        net = on_device(network(net, data=data, seed=settings.seed, untrained=True), device)
    data = data.of_kind(input_kind(net))
    validation = None if validation is None else validation.of_kind(input_kind(net))
    _check_batches(net, data, settings)
    if step is not None and (teacher is not None or settings.adversarial is not None):
        raise InputError("a step of your own takes no teacher and no adversarial. Leave them out, or the step.")
    record_classes(net, classes_of(data))
    record_transform(net, None)  # it is trained on the data as it is
    note(net, "normalisation", "as trained here")
    if device is not None:
        on_device(net, device)
    show = sys.stderr.isatty() if progress is None else progress
    of_batches: list[Any] = [callback for callback in callbacks if isinstance(callback, BatchCallback)]
    step = step or Classify(settings, data, None if teacher is None else prepare(teacher, net, data, folder))
    _warn_of_misread_texts(net, data)
    run = _TrainingRun(net, data, validation, settings, step, callbacks, of_batches, num_workers, show)
    history = run.run(folder, keep_epochs)
    if folder is not None:
        save(net, folder / checkpoints.WEIGHTS)
    return Training(net.eval(), history, settings, folder)


def _check_data(data: Any, validation: Any) -> None:
    for what, entry in (("to train on", data), ("to validate on", validation)):
        if entry is None and what != "to train on":
            continue
        if not isinstance(entry, Data):
            raise InputError(
                f"the data {what} is a {type(entry).__name__}, which does not say what its classes "
                "are. Give an address, or likewise.data.Data of inputs, labels and classes."
            )
        if not len(entry):
            raise InputError(f"{entry.name!r} has no inputs {what}. Give at least one.")
        entry.need_labels(what.removeprefix("to "))
    if validation is not None:
        _check_classes(data, validation)


def _check_classes(data: Data, validation: Data) -> None:
    """Refuse to validate on classes that are not trained; their order may differ."""
    validated, trained = classes_of(validation), classes_of(data)
    if validated is None or trained is None:
        return
    start = f"{validation.name!r} cannot validate a training on {data.name!r}: of its classes,"
    rest = f"are not surely among {quoted_list(trained.names)}. Validate on data of the same classes."
    locate(validated, trained, lambda missing: f"{start} {missing} {rest}")


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
    claim(folder)  # before the first epoch is trained for nothing
    return folder


def _check_batches(net: nn.Module, data: Data, settings: Settings) -> None:
    """Batch normalisation takes means over the batch, and one input has none."""
    alone = data.domain != "graph" and min(settings.batch_size, len(data)) == 1
    normed = any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in net.modules())
    if alone and normed:
        raise InputError(
            f"{type(unwrapped(net)).__name__} has batch normalisation, which cannot be trained on "
            "batches of one input. Give a batch_size of at least 2, and as many inputs."
        )


def _warn_of_misread_texts(net: nn.Module, data: Data) -> None:
    """Say before the training how many texts are longer than the network takes, and if it splits class tokens."""
    if data.domain == input_kind(net) == "text":
        cut = sum(cut_texts(net, texts, prepare_inputs(net, texts)) for texts, _ in data.batches())
        warn_of_cut_texts(net, cut, len(data), repr(type(unwrapped(net)).__name__))
        warn_of_split_tokens(net, data)


@dataclass(frozen=True, eq=False)
class _TrainingRun:
    """One training under way."""

    net: nn.Module
    data: Data
    validation: Data | None
    settings: Settings
    step: Step
    callbacks: Sequence[Callback]
    batch_callbacks: Sequence[BatchCallback]
    num_workers: int | None
    show: bool

    def run(self, folder: Path | None, keep_epochs: bool) -> History:
        """The records of all epochs: those the folder holds, and those that were left to train."""
        optimiser, best = make_optimiser(self.net, self.settings), checkpoints.Best()
        if folder is None:
            history = self._epochs([], optimiser, best, lambda history: None)
            best.restore(self.net)
            return history
        with checkpoints.start_of(self.net, folder) as start:
            identity = self._identity(start)
            damaged = [n for callback in self.callbacks for n in getattr(callback, "damaged_epochs", ())]
            before = min(damaged, default=math.inf)
            history, planned = checkpoints.resume(folder, self.net, optimiser, identity, best, before)
            if len(history) >= before:
                warn(
                    f"epoch {before} was reported to a damaged file, and the training in {folder} is past it: its "
                    "report is left out. Inspect kept epochs again, or train in another folder.",
                    DamagedStoreWarning,
                )
            if keep_epochs and not history:
                save(self.net, checkpoints.epoch_file(folder, 0))

            last, cost = -math.inf, 0.0

            def keep(history: History) -> None:
                nonlocal last, cost
                if len(history) == planned + 1:
                    history[-1]["planned_before"] = planned  # the first epoch of a training that was given more
                if keep_epochs:
                    save(self.net, checkpoints.epoch_file(folder, len(history)))
                over = len(history) == self.settings.epochs or _is_over(history, self.settings)
                start = time.perf_counter()
                if over or self.callbacks or keep_epochs or start - last >= _SPARE * cost:
                    checkpoints.save(folder, self.net, optimiser, identity, history, best)
                    last = time.perf_counter()
                    cost = last - start

            history = self._epochs(history, optimiser, best, keep)
            best.restore(self.net)
            return history

    def _epochs(
        self,
        history: History,
        optimiser: torch.optim.Optimizer,
        best: checkpoints.Best,
        keep: Callable[[History], None],
    ) -> History:
        """The history, grown by the epochs that are left; each is kept before the next begins."""
        left = range(len(history), self.settings.epochs)
        few = self._steps() < 20  # one bar for all epochs, or one per epoch
        for epoch in tracked(left, "training", total=len(left), show=self.show and few):
            if _is_over(history, self.settings):
                break
            with _seeded(self.settings.seed, epoch):
                record = self._epoch(epoch, optimiser, best, history, self.show and not few)
            for answer in [callback(self.net, record) for callback in self.callbacks]:
                record |= {"stopped": True} if answer is True else {}
                record |= answer if isinstance(answer, Mapping) else {}
            history.append(record)
            keep(history)
        return history

    def _identity(self, start: str) -> dict[str, Any]:
        # files may be many; their number has to do
        in_files = isinstance(self.data.inputs, ImageFiles)
        inputs = len(self.data) if in_files else self.data.probe
        origin = recipe(self.net)
        name = origin.network if origin is not None else type(unwrapped(self.net)).__name__
        options = {} if origin is None else origin.options
        facts = {"network": name, "options": options, checkpoints.START: start}
        of_step = self.step.identity if isinstance(self.step, Classify) else {}
        return facts | {"data": self.data.name, "inputs": inputs} | self.settings.record() | of_step

    def _steps(self) -> int:
        whole = self.data.domain == "graph"
        return 1 if whole else math.ceil(len(self.data) / self.settings.batch_size)

    def _epoch(
        self, epoch: int, optimiser: torch.optim.Optimizer, best: checkpoints.Best, history: History, show: bool
    ) -> dict[str, Any]:
        start, steps = time.perf_counter(), self._steps()
        between: list[dict[str, Any]] = []
        record: dict[str, Any] = {"epoch": epoch + 1}

        def after_step(step: int) -> None:
            every = self.settings.evaluate_every
            if every is not None and step % every == 0 and step % steps:  # the last of an epoch is validated anyway
                between.append({"step": step} | self._validate(step, best, record))

        record |= self._pass(epoch, optimiser, history, show, after_step)
        if self.validation is not None:
            record |= {"evaluations": between} if between else {}
            record |= self._validate((epoch + 1) * steps, best, record, partial(self._notify, "test"))
        return record | {"seconds": round(time.perf_counter() - start, 3)}

    def _validate(
        self, step: int, best: checkpoints.Best, record: dict[str, Any], on_batch: BatchFunction | None = None
    ) -> dict[str, float]:
        """Loss and accuracy on the validation data; the record tells if they are the best so far."""
        assert self.validation is not None
        options: dict[str, Any] = {"batch_size": self.settings.batch_size, "num_workers": self.num_workers}
        loss, accuracy = evaluate(self.net, self.validation, **options, on_batch=on_batch)
        if self.settings.keep_best and best.consider(self.net, accuracy):
            record |= {"best_step": step, "best_accuracy": accuracy}
        return {"validation_loss": loss, "validation_accuracy": accuracy}

    def _pass(
        self,
        epoch: int,
        optimiser: torch.optim.Optimizer,
        history: History,
        show: bool,
        after_step: Callable[[int], None],
    ) -> dict[str, Any]:
        """Train on all the data once; the rate, the mean loss and the accuracy."""
        steps, shuffle = self._steps(), int(torch.randint(2**31, ()))
        losses, lowered = _losses(history), math.prod(float(record.get("lr_factor", 1)) for record in history)
        options = {"device": device_of(self.net), "num_workers": self.num_workers}
        batches = self.data.batches(self.settings.batch_size, shuffle=shuffle, **options)
        label = f"epoch {epoch + 1} of {self.settings.epochs}"
        for callback in self.batch_callbacks:
            callback.begin(self.net, epoch + 1)
        self.net.train()
        losses_seen, rights, counts = [], [], []  # tensors: to ask for a number is to wait for the device
        for i, batch in enumerate(tracked(batches, label, total=steps, show=show)):
            if len(batch[1]) == 1 and i > 0 and self.settings.batch_size > 1:
                continue  # a rest of one, on which batch normalisation cannot be trained
            rate = lowered * rate_at(self.settings, epoch + i / steps, losses)
            loss, logits, labels = self._update(optimiser, batch, rate)
            self._notify("train", batch[0], logits, labels)
            losses_seen.append(loss)
            rights.append((logits.argmax(dim=1) == labels).sum())
            counts.append(len(labels))
            after_step(epoch * steps + i + 1)
        count, right = sum(counts), int(torch.stack(rights).sum())
        total = sum(loss * size for loss, size in zip(torch.stack(losses_seen).tolist(), counts, strict=True))
        if not math.isfinite(total):
            raise InputError(
                f"the loss is {total / count} in epoch {epoch + 1}. Lower lr (it was {rate:.3g}) or give warmup."
            )
        return {"lr": rate, "loss": total / count, "accuracy": right / count}

    def _notify(self, split: str, inputs: Any, logits: Tensor, labels: Tensor) -> None:
        for callback in self.batch_callbacks:
            callback.watch(self.net, split, inputs, logits, labels)

    def _update(self, optimiser: torch.optim.Optimizer, batch: Batch, rate: float) -> tuple[Tensor, Tensor, Tensor]:
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.zero_grad(set_to_none=True)
        loss, logits, labels = self.step(self.net, batch)
        loss.backward()  # type: ignore[no-untyped-call]
        if self.settings.clip is not None:
            nn.utils.clip_grad_norm_(self.net.parameters(), self.settings.clip)
        optimiser.step()
        return loss.detach(), logits.detach(), labels


def _losses(history: Sequence[Mapping[str, Any]]) -> list[float]:
    """The losses that plateaus and patience look at: of validation where there is one."""
    return [record.get("validation_loss", record["loss"]) for record in history]


def _is_over(history: Sequence[Mapping[str, Any]], settings: Settings) -> bool:
    if history and history[-1].get("stopped"):
        return True
    return settings.patience is not None and epochs_since_lowest(_losses(history)) >= settings.patience


@contextmanager
def _seeded(seed: int, epoch: int) -> Iterator[None]:
    """Random numbers from the seed and the number of the epoch; torch's state is restored afterwards."""
    devices = list(range(torch.cuda.device_count()))
    deterministic = torch.backends.cudnn.deterministic
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed((seed * 1_000_003 + epoch) % 2**63)
        torch.backends.cudnn.deterministic = True
        try:
            yield
        finally:
            torch.backends.cudnn.deterministic = deterministic


def _train_there(net: str, data: str, settings: Settings, **options: Any) -> None:
    """The task of a worker: a training whose folder says that it is over, so that it is read from there."""
    train(net, data, settings, progress=False, **options)
