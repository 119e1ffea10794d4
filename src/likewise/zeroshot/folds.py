"""One training of the test: a network that never sees some classes, or sees all, and what it answers afterwards.

A fold is a plain task, so that any engine can run it. Its training has a folder in the store, by content key, and
resumes there; its answers become an artifact the moment they exist, and a fold that has one is not run again.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from likewise._base.files import reading
from likewise._base.folders import file_of
from likewise._base.formats import records
from likewise._base.hashing import digest, facts_digest, value_digest
from likewise.data import Data, dataset
from likewise.data.changes import without_class
from likewise.errors import InputError, StoreError, brief
from likewise.networks import Settings, evaluate, network, train, unwrapped
from likewise.networks.address import is_checkpoint, parse
from likewise.networks.anatomy.outputs import output_kind
from likewise.networks.building import on_device
from likewise.networks.forward import checked_logits, device_of, eval_mode, transform_for
from likewise.networks.training.checkpoints import WEIGHTS
from likewise.work.store import Artifacts, read

TRAININGS, KIND = "trainings", "soft-labels"  # the folders of a store
_RULES = 1  # raised where answers come out otherwise than before
_BATCH = 256
_ONE_TRAINING = threading.Lock()  # torch has one random generator per process
Network = str | Callable[[int], nn.Module]


@dataclass(frozen=True)
class Source:
    """Data as a task takes it: by its address where it has one, else as it is; at most so many samples per class."""

    data: Data | str
    per_class: int | None = None

    def open(self) -> Data:
        """The data, or the first samples of every class in their order."""
        data = self.data if isinstance(self.data, Data) else dataset(self.data, split="train")
        if self.per_class is None:
            return data
        labels = data.need_labels("take some of every class")
        rows = torch.cat([(labels == number).nonzero()[: self.per_class, 0] for number in range(len(data.classes))])
        return data if len(rows) == len(data) else data[rows.sort().values]


@dataclass(frozen=True)
class Fold:
    """A network to be trained without some classes (of all, where none is named), and where its answers go."""

    network: Network
    options: dict[str, Any]
    train: Source
    test: Source | None
    settings: Settings
    without: tuple[str, ...]
    store: Path
    key: str
    device: Any = None
    threads: int | None = None

    @property
    def answers(self) -> Path:
        """The file of its answers."""
        return Artifacts(self.store / KIND).path(self.key)

    @property
    def weights(self) -> Path:
        """The trained network, which is an address."""
        return self.store / TRAININGS / self.key / WEIGHTS


def with_key(fold: Fold, train_data: Data, test_data: Data | None) -> Fold:
    """The fold under a hash of all that its answers depend on."""
    facts: dict[str, Any] = {
        "network": fold.network if isinstance(fold.network, str) else value_digest(fold.network),
        "options": fold.options,
        "settings": fold.settings.record(),
        "without": list(fold.without),
        "rules": _RULES,
    }
    for name, data in {"train": train_data, "test": test_data}.items():
        facts[name] = None if data is None else [data.probe, digest([data.labels])[:16], list(data.classes)]
    return replace(fold, key=facts_digest(facts))


def check_network(net: Any) -> None:
    """Refuse what cannot be built with another number of classes."""
    if isinstance(net, nn.Module):
        raise InputError(
            f"{type(net).__name__} is built already, and one output fewer is needed. Give an address, or a function "
            "of the number of classes."
        )
    if not isinstance(net, str) and not callable(net):
        raise InputError(f"{brief(net)} is not a network. Give an address, or a function of the number of classes.")
    if isinstance(net, str) and (is_checkpoint(net) or parse(net).weights is not None):
        raise InputError(
            f"{net} has trained weights, which may know the class that is to be left out. Give the address without "
            "them."
        )


def run_fold(fold: Fold) -> str:
    """Train the network of a fold, or resume, and store its answers to both splits. Returns their key."""
    artifacts = Artifacts(fold.store / KIND)
    if artifacts.find(fold.key) is not None:
        return fold.key
    if fold.threads is not None:
        torch.set_num_threads(min(fold.threads, torch.get_num_threads()))
    with _ONE_TRAINING:
        whole, held_out = fold.train.open(), None if fold.test is None else fold.test.open()
        seen = without_class(whole, *fold.without) if fold.without else whole
        test = without_class(held_out, *fold.without) if held_out is not None and fold.without else held_out
        net = _build(fold, seen)
        folder = fold.weights.parent
        validation = test if _needs_validation(fold.settings) else None
        done = train(net, seen, fold.settings, out=folder, validation=validation, device=fold.device, progress=False)
        tensors = {"train": _answers(net, _unseen(whole, fold), fold)}
        if held_out is not None:
            tensors["test"] = _answers(net, _unseen(held_out, fold), fold)
        splits = {"train": seen} if test is None else {"test": test}
        accuracy = {name: evaluate(net, data)[1] for name, data in splits.items()}
    facts = {
        "answers": output_kind(net),
        "accuracy": accuracy,
        "parameters": sum(weight.numel() for weight in net.parameters()),
        "depth": sum(isinstance(layer, (nn.modules.conv._ConvNd, nn.Linear)) for layer in net.modules()),
        "seconds": sum(record["seconds"] for record in done.history),
    }
    artifacts.put(fold.key, tensors, {"facts": json.dumps(facts), "without": json.dumps(fold.without)})
    return fold.key


def _needs_validation(settings: Settings) -> bool:
    """Whether held-out data decides anything of the training; else it is left for the end."""
    watched = settings.patience is not None or settings.keep_best or settings.evaluate_every is not None
    return watched or settings.schedule == "plateau"


def _build(fold: Fold, seen: Data) -> nn.Module:
    """The network for the classes that are left, from the seed alone."""
    classes = len(seen.classes)
    if isinstance(fold.network, str):
        options = {"seed": fold.settings.seed, "untrained": True, **fold.options}
        net = on_device(network(fold.network, data=seen, **options), fold.device)
    else:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(fold.settings.seed)
            net = fold.network(classes)
        if not isinstance(net, nn.Module):
            raise InputError(f"the function of a network gave {brief(net)} for {classes} classes. Return a module.")
    answers = _answers(net, seen[:2], fold)
    if answers.shape[1:] != (classes,):
        raise InputError(
            f"{type(unwrapped(net)).__name__} answers with shape {tuple(answers.shape)} to 2 samples of {classes} "
            f"classes, not with (2, {classes}). Let the number of classes decide its outputs."
        )
    return net


def _unseen(data: Data, fold: Fold) -> Data:
    """The samples of the classes that were left out; all of them for the full network."""
    if not fold.without:
        return data
    numbers = torch.tensor([data.classes.index(name) for name in fold.without])
    return data[torch.isin(data.labels, numbers)]


def _answers(net: nn.Module, data: Data, fold: Fold) -> Tensor:
    """What the network answers to data, in the order of the data."""
    if not len(data):
        return torch.empty(0, 0)
    if fold.device is not None:
        net.to(fold.device)
    with eval_mode(net) as resting:
        batches = transform_for(net, data, type(net).__name__).batches(_BATCH, device=device_of(net))
        return torch.cat([checked_logits(resting, inputs).float().cpu() for inputs, _ in batches])


def read_answers(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The answers a fold left, by split, and the facts beside them."""
    tensors, facts = read(file_of(path.parent, path.name))
    with reading(path, f"{path} is damaged ({{reason}}). Remove it, and run again.", StoreError):
        return tensors, records.parse(facts["facts"])
