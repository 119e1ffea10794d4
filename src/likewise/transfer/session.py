"""Networks under attack on the same data: what each answers to clean images and to examples of the others.

Everything is an artifact of the store: clean answers and examples of one network, and the answers of one network to
the examples of another. So m networks take m attacks, a rerun resumes, and no more than one batch of examples is in
memory. Without a store, artifacts are in a temporary folder that is removed at the end.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

import torch
from torch import Tensor

from likewise import attacks
from likewise._base.arrays import Array
from likewise._base.hashing import facts_digest
from likewise._base.progress import Progress
from likewise.data import Data
from likewise.data.inputs import to_device
from likewise.transfer.classifiers import Classifier, check_same_classes, classifier, labelled
from likewise.transfer.examples import EXAMPLES, AttackSettings, Examples, make_examples, resized_for
from likewise.transfer.logits import ANSWERS, Answers, clean_logits, gather
from likewise.work.store import Artifacts
from likewise.work.tasks import Call, run_calls

_RULES = 1  # raised when the same examples give other answers than before


class Session:
    """Networks by name, the data they are shown, and how they are attacked.

    Threads may share one: what concerns one network is done by one of them at a time.
    """

    def __init__(
        self, data: Data, settings: AttackSettings, folder: Path | None, *, device: Any = None, progress: bool = True
    ) -> None:
        self.data, self.settings, self.device, self.progress = data, settings, device, progress
        if folder is None:
            folder = Path(mkdtemp(prefix="likewise-"))
            finalize(self, rmtree, folder, ignore_errors=True)
        self.folder = folder
        self._engine: Any = None
        self._address = ""
        self._answered, self._attacked = Artifacts(folder / ANSWERS), Artifacts(folder / EXAMPLES)
        self.networks: dict[str, Any] = {}
        self._logits: dict[str, Tensor] = {}
        self._identity: dict[str, dict[str, Any]] = {}
        self._examples: dict[str, Examples] = {}
        self._adding = threading.Lock()
        self._locks: dict[str, threading.RLock] = {}

    def add(self, name: str, network: Any) -> str:
        """Get a network's clean answers; returns its name here: a name that is taken is numbered.

        Refused where its classes are not those of the others.
        """
        with self._adding:
            unique_name, count = name, 2
            while self.networks.setdefault(unique_name, network) is not network:
                unique_name, count = f"{name}#{count}", count + 1
            lock = self._locks.setdefault(unique_name, threading.RLock())
        with lock:
            if unique_name not in self._logits:
                with self._open(unique_name) as net:
                    net.check_normalisation()
                    logits = clean_logits(net, self._answered, self.settings.batch_size)
                    self._identity[unique_name] = net.identity()
                counts = {other: rows.shape[1] for other, rows in self._logits.items()}
                check_same_classes({**counts, unique_name: logits.shape[1]})
                self._logits[unique_name] = logits
        return unique_name

    def use_workers(self, engine: Any, data: str, networks: Mapping[str, str]) -> None:
        """Have workers of an engine answer clean data and make the examples of networks; all is then in the store."""
        self._engine, self._address = engine, data
        calls = [
            Call(f"the attack of {name}", _attack_network, (self._task(), name, network))
            for name, network in networks.items()
        ]
        run_calls(calls, engine, f"attacking by {self.settings.attack.name}", progress=self.progress)

    def _task(self) -> Task:
        named = str(getattr(self.settings.attack.run, "__module__", "")).startswith("likewise.")
        attack = self.settings.attack.name if named else self.settings.attack
        how = (self.settings.options, self.settings.seed, self.settings.batch_size)
        return Task(self._address, attack, how, str(self.folder.absolute()), self.device)

    def answers(self, names: Iterable[str]) -> Answers:
        """The clean answers of networks that were added."""
        return gather({name: self._logits[name] for name in names}, self.data.labels)

    def attack(self, names: Iterable[str]) -> dict[str, Examples]:
        """The examples of networks that were added, made where they are not there yet."""
        names = list(names)
        batches = -(-len(self.data) // self.settings.batch_size)
        with Progress(len(names) * batches, f"attacking by {self.settings.attack.name}", show=self.progress) as bar:
            for name in names:
                with self._locks[name]:
                    if name in self._examples:
                        bar.advance(batches)
                        continue
                    with self._open(name) as net:
                        for examples in make_examples(net, self.settings, self._attacked):
                            if examples is None:
                                bar.advance()
                            else:
                                self._examples[name] = examples
        return {name: self._examples[name] for name in names}

    def predictions(self, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Array]:
        """What the second network of each pair answers to the examples of the first, one class per input."""
        pairs = list(pairs)
        if self._engine is not None:
            self._show_in_workers(pairs)
        classes: dict[tuple[str, str], Array] = {}
        with Progress(len(pairs), "showing examples", show=self.progress) as bar:
            for target in dict.fromkeys(target for _, target in pairs):
                sources = [source for source, other in pairs if other == target]
                with self._locks[target]:
                    for source, row in self._classes_by_source(target, sources):
                        classes[source, target] = row
                        bar.advance()
        return classes

    def _show_in_workers(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Have workers put the answers to examples into the store, one target each."""
        sources: dict[str, dict[str, tuple[str, ...]]] = {}
        for source, target in pairs:
            sources.setdefault(target, {})[source] = self._examples[source].keys
        calls = [
            Call(f"what {target} answers", _answer_examples, (self._task(), target, self.networks[target], keys))
            for target, keys in sources.items()
        ]
        run_calls(calls, self._engine, "showing examples", progress=self.progress)

    def _classes_by_source(self, target: str, sources: list[str]) -> Iterator[tuple[str, Array]]:
        identity = {key: self._identity[target][key] for key in ("fingerprint", "transform", "columns")}
        missing = {}
        for source in sources:
            key = facts_digest({"examples": self._examples[source].key, **identity, "rules": _RULES})
            stored = self._answered.find(key)
            if stored is None:
                missing[source] = key
            else:
                yield source, stored["classes"].numpy()
        if not missing:
            return
        with self._open(target) as net:
            for source, key in missing.items():
                classes = torch.cat([_classes(net, images) for images in self._examples[source].batches()])
                self._answered.put(key, {"classes": classes}, {"network": target, "examples of": source})
                yield source, classes.numpy()

    def _open(self, name: str) -> AbstractContextManager[Classifier]:
        return classifier(name, self.networks[name], self.data, self.device)


# --- in a worker ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """What a worker needs to know: the address of the data, how networks are attacked, and the folder of the store."""

    data: str
    attack: Any  # ours by name
    settings: tuple[Mapping[str, Any], int, int]  # the rest of `AttackSettings`
    folder: str
    device: Any

    def session(self) -> Session:
        """A session of the worker's own, whose artifacts are those of all."""
        attack = attacks.get(self.attack) if isinstance(self.attack, str) else self.attack
        settings = AttackSettings(attack, *self.settings)
        return Session(labelled(self.data), settings, Path(self.folder), device=self.device, progress=False)


def _attack_network(task: Task, name: str, network: str) -> None:
    """Put a network's clean answers and its examples into the store."""
    session = task.session()
    session.attack([session.add(name, network)])


def _answer_examples(task: Task, target: str, network: str, keys: Mapping[str, tuple[str, ...]]) -> None:
    """Put what a network answers to the examples of others into the store."""
    session = task.session()
    target = session.add(target, network)
    session._examples = {name: Examples(name, session._attacked, batches) for name, batches in keys.items()}
    session.predictions([(source, target) for source in keys])


def _classes(net: Classifier, images: Tensor) -> Tensor:
    inputs = resized_for(to_device(images, net.device), net.shape)
    return net.logits(inputs).argmax(dim=1).int().cpu()
