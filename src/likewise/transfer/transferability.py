"""SAT: how far an attack on one network fools another, over many networks, one new one, or a training."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise._base.arrays import Array
from likewise.attacks import Attack
from likewise.classes.replay import checkpoints
from likewise.errors import InputError, UndefinedError
from likewise.matrices.labelled import UNTRAINED
from likewise.networks.names import untrained_networks
from likewise.transfer.classifiers import by_name, labelled
from likewise.transfer.examples import Recipe
from likewise.transfer.matrix import TransferMatrix, warn_of_accuracies
from likewise.transfer.scores import NONE_RIGHT, score_of
from likewise.transfer.session import Session, all_pairs, cube
from likewise.work.store import Store, open_store

if TYPE_CHECKING:
    import pandas as pd

BATCH = 64
Place = Store | str | os.PathLike[str] | None


def sat(
    networks: Any,
    data: Any,
    attack: str | Attack = "pgd",
    *,
    store: Place = None,
    seed: int = 0,
    device: Any = None,
    batch_size: int = BATCH,
    progress: bool = True,
    **options: Any,
) -> TransferMatrix:
    """How far networks fall together: similarity by attack transferability over labelled images.

    `networks` are addresses or modules, in a list or by name; each is attacked once, at its own size and in [0, 1]
    before its own normalisation, and shown the examples of all. An `attack` goes by name with its `options`; `pgd`
    has those of the paper where nothing else is said: `eps` 8/255, 50 iterations of a tenth of it, a random start.
    With a folder as `store` every batch of `batch_size` examples is kept at once: rerun with the same folder to
    resume. See `TransferMatrix` for what comes with the scores.

    >>> import torch, likewise
    >>> from torch import nn
    >>> images = likewise.dataset("digits:test[:40]")
    >>> means = torch.stack([images.inputs[:][images.labels == k].mean(dim=0).flatten() for k in range(10)])
    >>> def nearest(scale):  # of the mean images of the classes
    ...     net = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    ...     net[1].weight.data, net[1].bias.data = scale * means, -scale * means.square().sum(dim=1) / 2
    ...     return net
    >>> found = sat({"a": nearest(1.0), "b": nearest(3.0)}, images, eps=0.2, progress=False)
    >>> int(found.counts[0, 1]), round(float(found.rates[0, 1]), 2), round(found["a", "b"], 2)
    (39, 0.36, 3.74)
    """
    named = by_name(networks)
    if len(named) < 2:
        raise InputError(f"SAT compares networks with each other, and {len(named)} was given. Give at least two.")
    with session(named, data, attack, options, store, (seed, batch_size, device, progress)) as work:
        answers = work.answers(named)
        if len(named) == 2 and not (answers.right[0] & answers.right[1]).any():
            raise UndefinedError(f"SAT is undefined for {answers.names[0]!r} and {answers.names[1]!r}: {NONE_RIGHT}")
        warn_of_accuracies(answers)
        stalled = {name: found.stalled() for name, found in work.attack(named).items()}
        predictions = cube(named, work.predictions(all_pairs(named)))
    about = {"data": work.data.name, **work.recipe.facts(), "stalled": {name: k for name, k in stalled.items() if k}}
    untrained = untrained_networks(named, own_names=False)
    about |= {UNTRAINED: ", ".join(untrained)} if untrained else {}
    return TransferMatrix.of(answers, predictions, about)


@dataclass(frozen=True, eq=False)
class OneSided(Mapping[str, float]):
    """How far examples made from one network fool others: a score by name, and what it was computed from.

    percent  of inputs that both classify correctly, how many the example fools the other on
    counts   how many inputs both classify correctly
    """

    network: str
    names: tuple[str, ...]
    scores: tuple[float, ...]
    percent: tuple[float, ...]
    counts: tuple[int, ...]

    def __getitem__(self, name: str) -> float:
        return dict(zip(self.names, self.scores, strict=True))[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def one_sided(
    new: Any,
    zoo: Any,
    data: Any,
    attack: str | Attack = "pgd",
    *,
    store: Place = None,
    seed: int = 0,
    device: Any = None,
    batch_size: int = BATCH,
    progress: bool = True,
    **options: Any,
) -> OneSided:
    """A new network against a zoo by one attack alone: its examples, shown to all others. Options as of `sat`.

    Scores are NaN where a network and the new one classify no input correctly both. `clusters.assign` takes the row.
    """
    others = by_name(zoo)
    if not others:
        raise InputError("the zoo is empty. Give at least one network to hold the new one against.")
    ((given, network), *more) = by_name(new).items()
    if more:
        raise InputError(f"one network is held against a zoo, and {1 + len(more)} were given. Give one.")
    name = given if given not in others else f"new {given}"
    networks = {name: network, **others}
    with session(networks, data, attack, options, store, (seed, batch_size, device, progress)) as work:
        work.attack([name])
        found = work.predictions([(name, other) for other in others])
        answers = work.answers(networks)
    both = answers.right[0] & answers.right[1:]
    percent = _percent(np.stack([found[name, other] != answers.labels for other in others]) & both, both)
    values, counts = score_of(percent).tolist(), both.sum(axis=1).tolist()
    return OneSided(name, tuple(others), tuple(values), tuple(percent.tolist()), tuple(counts))


def during(
    run: str | Path | Sequence[str | Path],
    data: Any,
    attack: str | Attack = "pgd",
    *,
    store: Place = None,
    seed: int = 0,
    device: Any = None,
    batch_size: int = BATCH,
    progress: bool = True,
    **options: Any,
) -> pd.DataFrame:
    """How a network came to be what it is: SAT of every epoch that a training kept to the last one, one row each.

    `run` is the folder of a training with kept epochs, or checkpoints in their order. Options are those of `sat`.
    The last row is the network with itself. Scores are NaN where an epoch knew none of the inputs.
    """
    import pandas as pd

    epochs = {str(number): address for number, address in checkpoints(run).items()}
    if len(epochs) < 2:
        raise InputError(f"{run} has one network only. Give a training's folder with kept epochs (--keep-epochs).")
    last = list(epochs)[-1]
    with session(epochs, data, attack, options, store, (seed, batch_size, device, progress)) as work:
        work.attack(epochs)
        found = work.predictions(
            [*((last, name) for name in epochs), *((name, last) for name in epochs if name != last)]
        )
        answers = work.answers(epochs)
    both = answers.right & answers.right[-1]
    fooled = [
        (found[name, last] != answers.labels).astype(int) + (found[last, name] != answers.labels) for name in epochs
    ]
    percent = _percent(np.stack(fooled) * both, both) / 2
    columns = {"epoch": [int(name) for name in epochs], "sat": score_of(percent), "percent": percent}
    return pd.DataFrame(columns | {"count": both.sum(axis=1), "accuracy": answers.accuracies})


@contextmanager
def session(
    networks: Mapping[str, Any],
    data: Any,
    attack: str | Attack,
    options: Mapping[str, Any],
    store: Place,
    how: tuple[int, int, Any, bool],
    *,
    transfer: bool = True,
) -> Iterator[Session]:
    """Networks that have answered clean data; `how` is seed, batch size, device, and whether progress is shown."""
    seed, batch_size, device, progress = how
    recipe = Recipe.of(attack, options, seed, batch_size, transfer=transfer)  # before any network has to run
    shown = labelled(data, "know what an attack leads away from")
    with open_store(store) as place:
        folder = None if place is None else place.path
        work = Session(shown, recipe, folder, device=device, progress=progress)
        for name, network in networks.items():
            work.add(name, network)
        yield work


def _percent(hits: Array, counted: Array) -> Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(100 * hits.sum(axis=1) / counted.sum(axis=1))
