"""A training on disk: one file with all that is needed to resume after an epoch, written anew as epochs pass."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from likewise._base import sealed
from likewise._base.files import is_folder, reading
from likewise._base.hashing import weights_digest
from likewise.errors import InputError, MissingDataError
from likewise.networks.address import is_network
from likewise.networks.inputs.normalisation import unwrapped
from likewise.networks.training.settings import OPEN_ENDED, Settings

CHECKPOINT, WEIGHTS = "checkpoint.safetensors", "weights.safetensors"
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
    sealed.write(folder / CHECKPOINT, tensors, header)


def resume(
    folder: Path, net: nn.Module, optimiser: torch.optim.Optimizer, settings: Mapping[str, Any], best: Best
) -> tuple[list[dict[str, Any]], int]:
    """Bring all to where the training in this folder stopped; its history, and its planned epochs.

    More epochs than planned are as if they had been planned from the start, where no learning rate depends on it.
    """
    path = folder / CHECKPOINT
    if not path.is_file():
        return [], settings["epochs"]
    damaged = f"{path} is no checkpoint of a training, or it is damaged. Remove it to start over."
    with reading(path, damaged):
        header, tensors = sealed.verify(path), load_file(path)
        # a setting that is younger than the checkpoint had the effect of its default
        there = Settings().record() | json.loads(header["settings"])
        _same_settings(folder, there, settings, len(json.loads(header["history"])))
        history = _restore(net, optimiser, header, tensors)
        if there["keep_best"]:
            best.weights = _named(tensors, "best.")
            best.accuracy = max(record["best_accuracy"] for record in history if "best_accuracy" in record)
            unwrapped(net).load_state_dict(best.weights)  # which refuses weights that are not its own
        unwrapped(net).load_state_dict(_named(tensors, "net."))
        return history, there["epochs"]


def _named(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _restore(
    net: nn.Module, optimiser: torch.optim.Optimizer, header: Mapping[str, str], tensors: Mapping[str, Tensor]
) -> list[dict[str, Any]]:
    history = list(json.loads(header["history"]))
    if not all(isinstance(record["loss"], float) for record in history):
        raise ValueError("its history has epochs without a loss")
    memory: dict[int, dict[str, Any]] = {}
    for name, value in (_named(tensors, "optimiser.") | json.loads(header["numbers"])).items():
        index, _, key = name.partition(".")
        memory.setdefault(int(index), {})[key] = value
    optimiser.load_state_dict({"state": memory, "param_groups": json.loads(header["groups"])})
    return history


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
    if names == ["epochs"]:
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
