"""How often an attack fools the very network it was made for, with pictures of what it did."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
import torch
from torch import Tensor

from likewise._base.arrays import Array
from likewise._base.files import save_figure
from likewise._base.optional import require
from likewise.attacks import Attack
from likewise.errors import InputError, UndefinedError
from likewise.transfer.classifiers import by_name, classifier
from likewise.transfer.transferability import BATCH, Place, session

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = 8
_Z = 1.959964  # of 95 %


@dataclass(frozen=True, eq=False)
class Success:
    """What an attack did to one network: of `count` inputs classified correctly, it fools the share `rate`.

    low, high  a 95 % interval of the rate over inputs (Wilson)
    accuracy   the share of clean inputs classified correctly
    stalled    inputs with a step at which the network had no gradient
    before, after, labels  the network's answers to clean inputs and to examples, and the true classes, (n,) each
    clean, adversarial     the first images that were fooled, or the first of all where none was
    """

    network: str
    attack: str
    rate: float
    low: float
    high: float
    count: int
    accuracy: float
    stalled: int
    before: Array = field(repr=False)
    after: Array = field(repr=False)
    labels: Array = field(repr=False)
    rows: tuple[int, ...] = field(repr=False)
    clean: Tensor = field(repr=False)
    adversarial: Tensor = field(repr=False)
    classes: tuple[str, ...] = field(repr=False)

    def __str__(self) -> str:
        return (
            f"{self.attack} fools {self.network} on {self.rate:.1%} of {self.count} inputs it classifies correctly "
            f"[{self.low:.1%}, {self.high:.1%}]; clean accuracy {self.accuracy:.1%}"
            + (f"; {self.stalled} inputs had a step without a gradient" if self.stalled else "")
        )

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Pictures side by side, one row each: clean, the change magnified, adversarial; saved if a path is given."""
        require("matplotlib", extra="analysis", to="draw pictures")
        from matplotlib.figure import Figure

        change = self.adversarial - self.clean
        largest = float(change.abs().max())
        grown = (0.5 + 0.5 * change / largest) if largest else torch.full_like(change, 0.5)
        times = 0.5 / largest if largest else 1.0
        figure = Figure(figsize=(5.4, 0.5 + 1.85 * len(self.rows)), layout="constrained")
        axes = figure.subplots(len(self.rows), 3, squeeze=False)
        for place, row in enumerate(self.rows):
            images = (self.clean[place], grown[place], self.adversarial[place])
            titles = (self._name(self.before[row]), f"change × {times:.3g}", self._name(self.after[row]))
            for ax, image, title in zip(axes[place], images, titles, strict=True):
                grey = {"cmap": "gray", "vmin": 0, "vmax": 1} if len(image) == 1 else {}
                ax.imshow(image.permute(1, 2, 0).numpy(), interpolation="nearest", **grey)
                ax.set_title(title, fontsize=8)
                ax.set_axis_off()
        figure.suptitle(f"{self.attack} on {self.network}", fontsize=9)
        if path is not None:
            save_figure(figure, Path(path))
        return figure

    def _name(self, label: Any) -> str:
        return self.classes[int(label)] if int(label) < len(self.classes) else f"class {int(label)}"


class Running(TypedDict, total=False):
    """Where an attack runs and how it is drawn: keywords of `success`, for whoever calls it many times."""

    store: Place
    seed: int
    device: Any
    batch_size: int
    progress: bool


def success(
    network: Any,
    data: Any,
    attack: str | Attack = "pgd",
    *,
    store: Place = None,
    seed: int = 0,
    device: Any = None,
    batch_size: int = BATCH,
    pictures: int = PICTURES,
    progress: bool = True,
    **options: Any,
) -> Success:
    """How often an attack fools the network it was made for. Options are those of `sat`, which shares the examples.

    >>> from likewise.networks import network as load
    >>> import likewise
    >>> digits = likewise.dataset("digits:test[:40]")
    >>> found = success(load("zoo:mlp", data=digits), digits, "fgsm", eps=0.3, progress=False)
    >>> 0 <= found.low <= found.rate <= found.high <= 1
    True
    """
    ((name, net), *more) = by_name(network).items()
    if more:
        raise InputError(f"one network is attacked at a time, and {1 + len(more)} were given. Give one.")
    how = (seed, batch_size, device, progress)
    with session({name: net}, data, attack, options, store, how, transfer=False) as work:
        answers = work.answers([name])
        right, labels, before = answers.right[0], answers.labels, answers.predictions[0]
        if not right.any():
            raise UndefinedError(f"{name!r} classifies no input correctly, so nothing can be fooled. Show it others.")
        examples = work.attack([name])[name]
        after = work.predictions([(name, name)])[name, name]
        fooled = right & (after != labels)
        rows = tuple(np.flatnonzero(fooled if fooled.any() else right)[:pictures].tolist())
        with classifier(name, net, work.data, device) as opened:
            clean = torch.cat([opened.data[[row]].inputs[:].cpu() for row in rows]) if rows else torch.empty(0)
        moved = torch.stack([examples.image(row, batch_size) for row in rows]) if rows else torch.empty(0)
    count = int(right.sum())
    rate = float(fooled.sum() / count)
    low, high = wilson(rate, count)
    facts = (name, work.recipe.attack.name, rate, low, high, count, float(right.mean()), examples.stalled())
    return Success(*facts, before, after, labels, rows, clean, moved, tuple(work.data.classes))


def wilson(rate: float, count: int) -> tuple[float, float]:
    """The ends of a 95 % interval of a share among `count` inputs.

    >>> [round(end, 4) for end in wilson(0.5, 100)]
    [0.4038, 0.5962]
    """
    middle = (rate + _Z**2 / (2 * count)) / (1 + _Z**2 / count)
    half = _Z * math.sqrt(rate * (1 - rate) / count + _Z**2 / (4 * count**2)) / (1 + _Z**2 / count)
    return max(0.0, middle - half), min(1.0, middle + half)
