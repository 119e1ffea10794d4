"""A training on disk: one file with all that is needed to resume after an epoch, written anew as epochs pass.

The one before is kept, so that a damaged checkpoint costs an epoch and no more.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from likewise._base import sealed
from likewise._base.files import give_name, is_file, is_folder, reading, write_guard
from likewise._base.folders import file_of, remove
from likewise._base.hashing import weights_digest
from likewise._base.manifest import SEALED
from likewise._base.progress import warn
from likewise.errors import DamagedStoreWarning, InputError, MissingDataError, StoreError
from likewise.networks.address import is_network
from likewise.networks.inputs.normalisation import unwrapped
from likewise.networks.training.settings import OPEN_ENDED, Settings

CHECKPOINT, EARLIER, WEIGHTS = "checkpoint.safetensors", "checkpoint-before.safetensors", "weights.safetensors"
START = "start weights"
_last_seen: WeakKeyDictionary[nn.Module, dict[str, tuple[str, str]]] = WeakKeyDictionary()


@dataclass
class Best:
    """The weights of the best validation accuracy so far, of ties the first; none before the first validation."""

    accuracy: float = -1.0
    weights: dict[str, Tensor] = field(default_factory=dict)

    def consider(self, net: nn.Module, accuracy: float) -> bool:
        """Take the weights of a network as they are now, if they are better; whether they are."""
        better = accuracy > self.accuracy
        if better:
            self.accuracy = accuracy
            self.weights = {name: value.clone() for name, value in unwrapped(net).state_dict().items()}
        return better

    def restore(self, net: nn.Module) -> None:
        """Give a network these weights, where there are any."""
        if self.weights:
            unwrapped(net).load_state_dict(self.weights)


@contextmanager
def start_of(net: nn.Module, folder: Path) -> Iterator[str]:
    """A hash of the weights that this training starts from.

    A module that was trained towards this folder before, and is as it was left then, has the start
    it had: an interrupted training is resumed with the module in hand.
    """
    path, module = str(folder.resolve()), unwrapped(net)
    start = weights_digest(module)
    earlier_start, last = _last_seen.get(module, {}).get(path, ("", ""))
    start = earlier_start if last == start else start
    try:
        yield start
    finally:
        _last_seen.setdefault(module, {})[path] = (start, weights_digest(module))


def epoch_file(folder: Path, epoch: int) -> Path:
    """Where the weights after an epoch are kept, if they are."""
    return folder / "epochs" / f"{epoch:04d}.safetensors"


def addresses_by_epoch(run: str | Path | Sequence[str | Path]) -> dict[int, str]:
    """Addresses of networks by epoch: those in a training's folder, or the ones given."""
    if not isinstance(run, (str, Path)):
        if not run:
            raise InputError("no checkpoint was given. Give a training's folder, or its checkpoints in order.")
        if len(run) > 1:
            return {number: str(address) for number, address in enumerate(run, start=1)}
        run = run[0]
    folder = Path(run).expanduser()
    for parent in (folder / "epochs", folder):
        named = parent.glob("[0-9]*.safetensors") if is_folder(parent) else ()
        files = sorted(file for file in named if file.stem.isdecimal())
        if files:
            return {int(file.stem): str(file) for file in files}
    if is_folder(folder) and not (folder / WEIGHTS).is_file():
        raise InputError(
            f"{folder} keeps no epochs. Train with keep_epochs (likewise train --keep-epochs), or give the "
            "checkpoints themselves."
        )
    if not folder.exists() and not is_network(str(run)):
        raise MissingDataError(
            f"there is no folder or file {run}. Give a training's folder, its checkpoints in order, or a network's "
            "address."
        )
    return {1: str(run)}


def history_of(run: str | Path | Sequence[str | Path]) -> dict[int, dict[str, Any]]:
    """The records of a training by epoch, from its folder; none where it is no folder of one."""
    runs = [run] if isinstance(run, (str, Path)) else list(run)
    folder = Path(runs[0]).expanduser()
    paths = [folder / name for name in (CHECKPOINT, EARLIER)] if len(runs) == 1 and is_folder(folder) else []
    histories = [found.history for path in paths if is_file(path) and (found := _read(path)) is not None]
    return {number: record for history in histories[:1] for number, record in enumerate(history, start=1)}


def save(
    folder: Path,
    net: nn.Module,
    optimiser: torch.optim.Optimizer,
    settings: Mapping[str, Any],
    history: Sequence[Mapping[str, Any]],
    best: Best,
) -> None:
    """Write weights, the best so far, the optimiser's memory and the history as one file, whole or not at all."""
    header = {
        "settings": json.dumps(settings),
        "history": json.dumps(history),
        "groups": json.dumps(optimiser.state_dict()["param_groups"]),
        "numbers": json.dumps(dict(_memory(optimiser, tensors=False))),
    }
    tensors = {f"net.{name}": value for name, value in unwrapped(net).state_dict().items()}
    tensors |= {f"best.{name}": value for name, value in best.weights.items()}
    tensors |= {f"optimiser.{name}": value for name, value in _memory(optimiser, tensors=True)}
    path = folder / CHECKPOINT
    if is_file(path):
        with write_guard(folder / EARLIER), suppress(FileNotFoundError):  # another process moved it meanwhile
            give_name(path, folder / EARLIER, SEALED)
    sealed.write(path, tensors, header)


def resume(
    folder: Path,
    net: nn.Module,
    optimiser: torch.optim.Optimizer,
    settings: Mapping[str, Any],
    best: Best,
    before: float = math.inf,
) -> tuple[list[dict[str, Any]], int]:
    """Bring all to where the training in this folder stopped; its history, and its planned epochs.

    More epochs than planned are as if they had been planned from the start, where no learning rate depends on it. Of
    the checkpoints that are not damaged it is the last, or if there is one, that of an epoch `before` another.
    """
    paths = [path for path in (folder / CHECKPOINT, folder / EARLIER) if is_file(path)]
    readable = [checkpoint for path in paths if (checkpoint := _read(path)) is not None]
    for checkpoint in sorted(readable, key=lambda one: len(one.history) >= before):
        _same_settings(folder, checkpoint.settings, settings, len(checkpoint.history))
        with suppress(StoreError), reading(checkpoint.path, "", StoreError):
            _restore(checkpoint, net, optimiser, best)
            _drop_later(paths, readable, checkpoint)
            return checkpoint.history, checkpoint.settings["epochs"]
    _start_over(paths, folder, settings)
    return [], settings["epochs"]


@dataclass(frozen=True, eq=False)
class _Checkpoint:
    """What a checkpoint holds, checked."""

    path: Path
    settings: dict[str, Any]
    history: list[dict[str, Any]]
    groups: list[dict[str, Any]]
    memory: dict[int, dict[str, Any]]
    tensors: dict[str, Tensor]


def _read(path: Path) -> _Checkpoint | None:
    """A checkpoint; None where it is damaged."""
    with suppress(StoreError), reading(path, "", StoreError):
        header, tensors = sealed.verify(file_of(path.parent, path.name)), load_file(path)
        # a setting that is younger than the checkpoint had the effect of its default
        settings, history = Settings().record() | json.loads(header["settings"]), list(json.loads(header["history"]))
        if not all(isinstance(record["loss"], float) for record in history):
            raise ValueError("its history has epochs without a loss")
        memory: dict[int, dict[str, Any]] = {}
        for name, value in (_named(tensors, "optimiser.") | json.loads(header["numbers"])).items():
            index, _, key = name.partition(".")
            memory.setdefault(int(index), {})[key] = value
        return _Checkpoint(path, settings, history, json.loads(header["groups"]), memory, tensors)
    return None


def _restore(checkpoint: _Checkpoint, net: nn.Module, optimiser: torch.optim.Optimizer, best: Best) -> None:
    """Bring all to where a checkpoint is; where it does not fit, nothing changes."""
    shapes = {name: value.shape for name, value in unwrapped(net).state_dict().items()}
    weights = {prefix: _named(checkpoint.tensors, f"{prefix}.") for prefix in ("net", "best")}
    keep_best = checkpoint.settings["keep_best"]
    for prefix in ("net", "best") if keep_best else ("net",):
        if {name: value.shape for name, value in weights[prefix].items()} != shapes:
            raise ValueError("its weights are of another network")
    accuracy = max(record.get("best_accuracy", -1.0) for record in checkpoint.history)
    optimiser.load_state_dict({"state": checkpoint.memory, "param_groups": checkpoint.groups})
    if keep_best:
        best.weights, best.accuracy = weights["best"], accuracy
    unwrapped(net).load_state_dict(weights["net"])


def _drop_later(paths: Sequence[Path], readable: Sequence[_Checkpoint], checkpoint: _Checkpoint) -> None:
    """Remove the checkpoint after the one that is resumed, which may not take its place."""
    for path in paths[: paths.index(checkpoint.path)]:
        if path not in [one.path for one in readable]:
            warn(f"{path} is damaged; the training resumes from {checkpoint.path.name}.", DamagedStoreWarning)
        remove(path)


def _start_over(paths: Sequence[Path], folder: Path, settings: Mapping[str, Any]) -> None:
    """Say that the checkpoints are damaged, unless one of them still says that it is of another training."""
    for path in paths:
        try:
            there = Settings().record() | json.loads(sealed.read_metadata(file_of(path.parent, path.name))["settings"])
        except (OSError, ValueError, LookupError, TypeError):
            there = {}
        if there:
            _same_settings(folder, there, settings, 0)
    for path in paths:
        warn(f"{path} is no checkpoint of a training, or it is damaged; the training starts over.", DamagedStoreWarning)
        remove(path)


def _named(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _memory(optimiser: torch.optim.Optimizer, *, tensors: bool) -> Iterator[tuple[str, Any]]:
    for index, memory in optimiser.state_dict()["state"].items():
        for key, value in memory.items():
            if value is not None and isinstance(value, Tensor) == tensors:
                yield f"{index}.{key}", value


def _same_settings(folder: Path, there: Mapping[str, Any], here: Mapping[str, Any], done: int) -> None:
    """Refuse to resume under other settings, but for a number of epochs that changes nothing about those done."""
    here = json.loads(json.dumps(here))
    names = [name for name in {**there, **here} if there.get(name) != here.get(name)]
    if len(names) > 1 and START in names:
        names.remove(START)  # they follow from the network, its options and the seed
    if names == ["epochs"] and isinstance(there["epochs"], int):
        if there["schedule"] in OPEN_ENDED and here["epochs"] >= done:
            return
        if here["epochs"] > there["epochs"]:
            raise _other_plan(folder, there, here["epochs"])
    if names:
        differences = "; ".join(f"{name} {there.get(name)!r} there, {here.get(name)!r} here" for name in names)
        raise InputError(
            f"{folder} holds a training with other settings ({differences}). Give the same settings to "
            "resume it, or another folder."
        )


def _other_plan(folder: Path, there: Mapping[str, Any], epochs: int) -> InputError:
    """Why a training cannot be given more epochs, and what can be done instead."""
    planned, schedule = there["epochs"], there["schedule"]
    more = epochs - planned
    instead = f"give epochs={planned} to resume it"
    if (folder / WEIGHTS).is_file():
        instead = f"train on from its weights in another folder: network {str(folder)!r}, epochs={more}"
    return InputError(
        f"{folder} holds a training of {planned} epochs, whose schedule {schedule!r} spreads the learning rate over "
        f"{planned}: they are not the first {planned} of {epochs}. Only {' and '.join(OPEN_ENDED)} schedules take "
        f"more epochs. Train {epochs} anew in another folder, or {instead}."
    )
