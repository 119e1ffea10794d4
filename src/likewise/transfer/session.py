"""Networks under attack on the same data: who answers what, to clean images and to examples of the others.

Everything is an artifact of the store: clean answers and examples of one network, and the answers of one network to
the examples of another. So m networks take m attacks, whatever was done before is not done again, and no more than
one batch of examples is in memory. Without a folder to keep them in, they are in one that is removed at the end.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

import numpy as np
import torch
from torch import Tensor

from likewise._base.arrays import Array
from likewise._base.hashing import facts_digest
from likewise._base.progress import Progress
from likewise.data import Data
from likewise.data.inputs import to_device
from likewise.transfer.classifiers import Classifier, check_same_classes, classifier
from likewise.transfer.examples import KIND, Examples, Recipe, fitted, make_examples
from likewise.transfer.logits import KIND as ANSWERS
from likewise.transfer.logits import Answers, clean_logits, gather
from likewise.work.artifacts import Artifacts

_RULES = 1  # raised where answers to examples come out otherwise than before


class Session:
    """Networks by name, the data they are shown, and how they are attacked.

    Threads may share one: what concerns one network is done by one of them at a time.
    """

    def __init__(
        self, data: Data, recipe: Recipe, folder: Path | None, *, device: Any = None, progress: bool = True
    ) -> None:
        self.data, self.recipe, self.device, self.progress = data, recipe, device, progress
        if folder is None:
            folder = Path(mkdtemp(prefix="likewise-"))
            finalize(self, rmtree, folder, ignore_errors=True)
        self._answered, self._attacked = Artifacts(folder / ANSWERS), Artifacts(folder / KIND)
        self.networks: dict[str, Any] = {}
        self._logits: dict[str, Tensor] = {}
        self._identity: dict[str, dict[str, Any]] = {}
        self._examples: dict[str, Examples] = {}
        self._adding = threading.Lock()
        self._locks: dict[str, threading.RLock] = {}

    def add(self, name: str, network: Any) -> str:
        """Ask a network for its clean answers, and under which name it is here; one more of a name is numbered.

        Refused where its classes are not those of the others.
        """
        with self._adding:
            same, count = name, 2
            while self.networks.setdefault(same, network) is not network:
                same, count = f"{name}#{count}", count + 1
            lock = self._locks.setdefault(same, threading.RLock())
        with lock:
            if same not in self._logits:
                with self._open(same) as net:
                    found = clean_logits(net, self._answered, self.recipe.batch_size)
                    self._identity[same] = net.identity()
                check_same_classes(
                    {**{other: rows.shape[1] for other, rows in self._logits.items()}, same: found.shape[1]}
                )
                self._logits[same] = found
        return same

    def answers(self, names: Iterable[str]) -> Answers:
        """The clean answers of networks that were added."""
        return gather({name: self._logits[name] for name in names}, self.data.labels)

    def attack(self, names: Iterable[str]) -> dict[str, Examples]:
        """The examples of networks that were added, made where they are not there yet."""
        wanted = list(names)
        batches = -(-len(self.data) // self.recipe.batch_size)
        with Progress(len(wanted) * batches, f"attacking by {self.recipe.attack.name}", shown=self.progress) as bar:
            for name in wanted:
                with self._locks[name]:
                    if name in self._examples:
                        bar.advance(batches)
                        continue
                    with self._open(name) as net:
                        for found in make_examples(net, self.recipe, self._attacked):
                            if found is None:
                                bar.advance()
                            else:
                                self._examples[name] = found
        return {name: self._examples[name] for name in wanted}

    def predictions(self, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Array]:
        """What the second network of each pair answers to the examples of the first, one class per input."""
        wanted = list(pairs)
        found: dict[tuple[str, str], Array] = {}
        with Progress(len(wanted), "showing examples", shown=self.progress) as bar:
            for target in dict.fromkeys(target for _, target in wanted):
                sources = [source for source, other in wanted if other == target]
                with self._locks[target]:
                    for source, classes in self._shown_to(target, sources):
                        found[source, target] = classes
                        bar.advance()
        return found

    def _shown_to(self, target: str, sources: list[str]) -> Iterator[tuple[str, Array]]:
        who = {part: self._identity[target][part] for part in ("fingerprint", "transform", "columns")}
        todo = {}
        for source in sources:
            key = facts_digest({"examples": self._examples[source].key, **who, "rules": _RULES})
            stored = self._answered.find(key)
            if stored is None:
                todo[source] = key
            else:
                yield source, stored["classes"].numpy()
        if not todo:
            return
        with self._open(target) as net:
            for source, key in todo.items():
                classes = torch.cat([_classes(net, images) for images in self._examples[source].batches()])
                self._answered.put(key, {"classes": classes}, {"network": target, "examples of": source})
                yield source, classes.numpy()

    def _open(self, name: str) -> AbstractContextManager[Classifier]:
        return classifier(name, self.networks[name], self.data, self.device)


def _classes(net: Classifier, images: Tensor) -> Tensor:
    shown = fitted(to_device(images, net.device), net.shape)
    return net.logits(shown).argmax(dim=1).int().cpu()


def all_pairs(names: Iterable[str]) -> list[tuple[str, str]]:
    """Every network with every one, itself included."""
    listed = list(names)
    return [(source, target) for target in listed for source in listed]


def cube(names: Iterable[str], found: Mapping[tuple[str, str], Array]) -> Array:
    """Answers to examples as one array (source, target, input)."""
    listed = list(names)
    return np.stack([np.stack([found[source, target] for target in listed]) for source in listed])
