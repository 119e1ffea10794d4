"""What networks answer to the same labelled inputs: logits of all of them, class by class.

Ensembles, errors and attack transfer all start from these. Inputs may be of any kind.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import torch
from torch import Tensor

from likewise._base import sealed
from likewise._base.arrays import Array, as_array, check_labels
from likewise._base.files import check_name, reading
from likewise._base.folders import file_at
from likewise._base.formats.records import check, parse
from likewise._base.hashing import facts_digest
from likewise._base.progress import Progress
from likewise.errors import InputError, StoreError, check_seed
from likewise.matrices.labelled import position
from likewise.transfer.classifiers import NOT_HERE, Classifier, check_same_classes, classifier, networks_and_data
from likewise.views.show import Show, ShowOptions
from likewise.work.store import Artifacts, open_store

ANSWERS = "answers"  # the folder of a store
BATCH = 256
_RULES = 1  # raised when the same request gives other answers than before


@dataclass(frozen=True, eq=False, repr=False)
class Answers:
    """What m networks answer to n inputs.

    Attributes:
        names: The networks, in the order of the rows.
        logits: One row per network and input, (m, n, classes).
        labels: The true class of each input, (n,).

    Example:
        >>> two = Answers(["a", "b"], [[[2, 0], [1, 0]], [[0, 1], [0, 3]]], [0, 1])
        >>> two.accuracies.tolist(), two.right.tolist()
        ([0.5, 0.5], [[True, False], [False, True]])
    """

    names: Sequence[str]
    logits: Any
    labels: Any

    def __post_init__(self) -> None:
        names = tuple(str(name) for name in self.names)
        logits = np.asarray(as_array(self.logits, "the array of logits"), dtype=np.float32)
        if logits.ndim != 3 or len(logits) != len(names):
            raise InputError(
                f"logits of {len(names)} networks are ({len(names)}, inputs, classes), got {logits.shape}. Give one "
                "row per input and network."
            )
        for name in names:
            check_name(name)
        if len(set(names)) < len(names):
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            raise InputError(f"the name {twice!r} is given twice. Names must differ.")
        if not np.isfinite(logits).all():
            raise InputError("the array of logits has NaN or infinite entries. Drop or repair them.")
        labels = check_labels(self.labels, *logits.shape[1:]).numpy()
        for name, value in (("names", names), ("logits", logits), ("labels", labels)):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"Answers({len(self)} networks, n={self.n}, classes={self.logits.shape[2]})"

    @property
    def n(self) -> int:
        """How many inputs."""
        return len(self.labels)

    @property
    def predictions(self) -> Array:
        """The most likely class of every input, (m, n)."""
        return np.asarray(self.logits.argmax(axis=2))

    @property
    def right(self) -> Array:
        """Which inputs each network classifies correctly, (m, n)."""
        return np.asarray(self.predictions == self.labels)

    @property
    def accuracies(self) -> Array:
        """The share of inputs that each network classifies correctly, (m,)."""
        return np.asarray(self.right.mean(axis=1))

    def subset(self, names: Sequence[str]) -> Answers:
        """The answers of some of the networks.

        Args:
            names: The networks, in the order wanted.
        """
        rows = [position(self.names, name, "network") for name in names]
        return Answers(tuple(names), self.logits[rows], self.labels)

    def at(self, inputs: Any) -> Answers:
        """The answers to some of the inputs.

        Args:
            inputs: A slice, indices or a mask.
        """
        return Answers(self.names, self.logits[:, inputs], self.labels[inputs])

    def split(self, share: float = 0.5, seed: int = 0) -> tuple[Answers, Answers]:
        """Split the inputs at random into two halves, or other shares.

        Args:
            share: The share of inputs in the first part, between 0 and 1.
            seed: Draws the inputs.

        Returns:
            The answers to the first part, and to the rest.
        """
        if not 0 < share < 1:
            raise InputError(f"share is {share}. Give the share of inputs in the first part, between 0 and 1.")
        check_seed(seed)
        order = np.random.default_rng(seed).permutation(self.n)
        first = round(share * self.n)
        if not 0 < first < self.n:
            raise InputError(f"{self.n} inputs cannot be split at {share}. Show the networks more inputs.")
        return self.at(np.sort(order[:first])), self.at(np.sort(order[first:]))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the answers to one safetensors file.

        Args:
            path: Where to write it.
        """
        tensors = {"logits": torch.from_numpy(self.logits), "labels": torch.from_numpy(self.labels)}
        return sealed.write(path, tensors, {"names": json.dumps(list(self.names))})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Answers:
        """Read a file that `save` wrote.

        Args:
            path: The file.

        Raises:
            StoreError: The file holds no answers, or is damaged.
        """
        sentence = f"{path} holds no answers, or it is damaged. Give a file that Answers.save wrote."
        with reading(path, sentence, StoreError):
            tensors, facts = sealed.read(file_at(path))
            record = parse(f'{{"names": {facts["names"]}}}')
            check(record, {"names": list[str]})
            return cls(record["names"], tensors["logits"], tensors["labels"])


def answers(networks: Any, other: Any = None, data: Any = None, **show: Unpack[ShowOptions]) -> Answers:
    """Collect what networks answer to labelled data.

    Each network is shown the data by its own transform, and its outputs are put into the order of the data's classes.
    Call it as `answers(networks, data)` or `answers(a, b, data)`.

    Args:
        networks: An address or a module; or a list or mapping of them.
        other: The other network, where the first argument is one.
        data: Labelled data, or its address.
        **show: How networks are shown (`mean`, `std`, `transform`, `store`, `device`, `batch_size`, `progress`; see
            `Show`). By default 256 inputs are shown at a time.
    """
    settings = Show.only("answers", show, without=NOT_HERE)
    named, inputs = networks_and_data("answers", networks, other, data, "compare answers with them")
    if not named:
        raise InputError("there is no network to ask. Give at least one.")
    logits: dict[str, Tensor] = {}
    with open_store(settings.store) as opened, Progress(len(named), "asking networks", show=settings.progress) as bar:
        folder = None if opened is None else opened.artifacts(ANSWERS)
        choices = settings.per_network(named)
        for name, network in named.items():
            with classifier(name, choices[name].for_attack(network), inputs, settings.device) as net:
                net.check_normalisation()
                logits[name] = clean_logits(net, folder, settings.batch_size or BATCH)
            check_same_classes({name: rows.shape[1] for name, rows in logits.items()})
            bar.advance()
    return gather(logits, inputs.labels)


def gather(logits: Mapping[str, Tensor], labels: Tensor) -> Answers:
    """Answers of several networks by name."""
    return Answers(tuple(logits), torch.stack(list(logits.values())), labels)


def clean_logits(net: Classifier, folder: Artifacts | None, batch_size: int) -> Tensor:
    """What one network answers to its data, from the folder where it is there."""
    key = facts_digest({**net.identity(), "rules": _RULES})
    stored = None if folder is None else folder.find(key)
    if stored is not None:
        return stored["logits"]
    batches = (net.logits(inputs).float().cpu() for inputs, _ in net.data.batches(batch_size, device=net.device))
    logits = torch.cat(list(batches))
    if folder is not None:
        folder.put(key, {"logits": logits}, {"network": net.name, "data": net.data.name})
    return logits
