"""How often attacks fool the network they were made for: one attack with pictures, or a table of many."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from inspect import signature
from itertools import product
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import torch
from torch import Tensor

from likewise._base.arrays import Array
from likewise._base.names import visible
from likewise._base.optional import require
from likewise.attacks import Attack
from likewise.data import Data
from likewise.errors import InputError, OptionError, UndefinedError, quoted_list
from likewise.matrices.heatmap import finish
from likewise.matrices.shares import wilson
from likewise.transfer.classifiers import NOT_HERE, by_name, classifier, labelled
from likewise.transfer.transferability import attacked_session
from likewise.views.show import Show, ShowOptions, unknown_option

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SIZES = {"pixel": "pixels", "threshold": "threshold"}  # attacks, and the option that says how much they change
SEARCH_BATCH = 10  # images per batch of an attack without gradients
PICTURES = 8


@dataclass(frozen=True, eq=False)
class Success:
    """What an attack did to one network.

    Attributes:
        network: The network.
        attack: The attack.
        rate: The share of inputs classified correctly that the attack fools it on.
        low: The lower end of a 95 % interval of the rate over inputs (Wilson).
        high: The upper end.
        count: How many inputs are classified correctly.
        accuracy: The share of clean inputs classified correctly.
        stalled: Inputs with a step at which the network had no gradient.
        before: The predicted classes of clean inputs, (n,).
        after: The predicted classes of examples, (n,).
        labels: The true classes, (n,).
        rows: The inputs of which pictures are kept: the first that were fooled, or the first of all where none was.
        clean: Their images.
        adversarial: The examples made of them.
        classes: The names of the classes.
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
        return visible(
            f"{self.attack} fools {self.network} on {self.rate:.1%} of {self.count} inputs it classifies correctly "
            f"[{self.low:.1%}, {self.high:.1%}]; clean accuracy {self.accuracy:.1%}"
            + (f"; {self.stalled} inputs had a step without a gradient" if self.stalled else "")
        )

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw pictures side by side, one row each: clean, the change magnified, adversarial.

        Args:
            path: Where to save the figure.
        """
        require("matplotlib", extra="analysis", to="draw pictures")
        from matplotlib.figure import Figure

        change = self.adversarial - self.clean
        largest = float(change.abs().max())
        grown = (0.5 + 0.5 * change / largest) if largest else torch.full_like(change, 0.5)
        times = 0.5 / largest if largest else 1.0
        figure = Figure(figsize=(5.4, 0.5 + 1.85 * len(self.rows)), layout="constrained")
        axes = figure.subplots(len(self.rows), 3, squeeze=False)
        for line, row in enumerate(self.rows):
            images = (self.clean[line], grown[line], self.adversarial[line])
            titles = (self._name(self.before[row]), f"change × {times:.3g}", self._name(self.after[row]))
            for ax, image, title in zip(axes[line], images, titles, strict=True):
                grey = {"cmap": "gray", "vmin": 0, "vmax": 1} if len(image) == 1 else {}
                ax.imshow(image.permute(1, 2, 0).numpy(), interpolation="nearest", **grey)
                ax.set_title(title, fontsize=8)
                ax.set_axis_off()
        figure.suptitle(f"{self.attack} on {self.network}", fontsize=9)
        return finish(figure, path)

    def _name(self, label: Any) -> str:
        return self.classes[int(label)] if int(label) < len(self.classes) else f"class {int(label)}"


def success(
    network: Any, data: Any, attack: str | Attack = "pgd", *, seed: int = 0, pictures: int = PICTURES, **options: Any
) -> Success:
    """Measure how often an attack fools the network it was made for. `sat` shares the examples.

    Args:
        network: An address or a module.
        data: Labelled images, or their address.
        attack: An attack or its name, as in `sat`.
        seed: Draws random starts.
        pictures: How many pictures are kept.
        **options: The options of the attack, and how networks are shown, as in `sat`.

    Raises:
        InputError: More than one network, no labels, or a network that cannot be attacked.
        UndefinedError: The network classifies no input correctly.

    Example:
        >>> import likewise
        >>> digits = likewise.dataset("digits:test[:40]")
        >>> net = likewise.network("zoo:mlp", data=digits)
        >>> result = success(net, digits, "fgsm", eps=0.3, progress=False)
        >>> 0 <= result.low <= result.rate <= result.high <= 1
        True
    """
    ((name, net), *more) = by_name(network).items()
    if more:
        raise InputError(f"one network is attacked at a time, and {1 + len(more)} were given. Give one.")
    with attacked_session("success", {name: net}, data, attack, seed, options, transfer=False) as session:
        answers = session.answers([name])
        right, labels, before = answers.right[0], answers.labels, answers.predictions[0]
        if not right.any():
            raise UndefinedError(f"{name!r} classifies no input correctly, so nothing can be fooled. Show it others.")
        examples = session.attack([name])[name]
        after = session.predictions([(name, name)])[name, name]
        fooled = right & (after != labels)
        rows = tuple(np.flatnonzero(fooled if fooled.any() else right)[:pictures].tolist())
        with classifier(name, session.networks[name], session.data, session.device) as opened:
            clean = torch.cat([opened.data[[row]].inputs[:].cpu() for row in rows]) if rows else torch.empty(0)
        size = session.settings.batch_size
        moved = torch.stack([examples.image(row, size) for row in rows]) if rows else torch.empty(0)
    count = int(right.sum())
    rate = float(fooled.sum() / count)
    low, high = wilson(rate, count)
    facts = (name, session.settings.attack.name, rate, low, high, count, float(right.mean()), examples.stalled())
    return Success(*facts, before, after, labels, rows, clean, moved, tuple(session.data.classes))


def robustness(
    network: Any,
    data: Any,
    *,
    attacks: Sequence[str] = ("pixel", "threshold"),
    thresholds: Sequence[int] = (1, 3, 5, 10),
    generations: Sequence[int] = (1, 100),
    search: str = "cma-es",
    population: int = 400,
    nested: bool = False,
    seed: int = 0,
    **show: Unpack[ShowOptions],
) -> pd.DataFrame:
    """Run black-box attacks of several sizes and lengths on the same images, one row each.

    `fooled` counts images that are misclassified after the attack, as Raw Zero-Shot does: those that were before are
    among them (`wrong_before`). `rate` with its 95 % interval is the share of correctly classified images that the
    attack changes.

    Args:
        network: An address or a module.
        data: Labelled images, or their address.
        attacks: "pixel", "threshold" or both.
        thresholds: How many pixels, or how much of each, an attack may change.
        generations: How long it searches.
        search: How it searches, "cma-es" or "differential-evolution".
        population: How many candidates per generation.
        nested: An example also counts for all larger thresholds and longer searches of the same attack, which allow
            it, and its image is not attacked again. That saves time, and counts never fall with the threshold. They may
            be a little larger than without, where every attack may miss what a smaller one found.
        seed: Draws candidates.
        **show: How the network is shown, as in `sat`; by default 10 images are attacked at a time.
    """
    import pandas as pd

    odd = [name for name in attacks if name not in SIZES]
    if odd or not attacks:
        problem = f"{odd[0]!r} is no attack with thresholds" if odd else "no attack is named"
        raise InputError(f"{problem}. Choose {quoted_list(list(SIZES))}.")
    for name, values in (("thresholds", thresholds), ("generations", generations)):
        if not values:
            raise InputError(f"{name} is empty. Give at least one number.")
    for unknown in Show.read("robustness", show, without=NOT_HERE)[1]:
        raise OptionError(unknown_option("robustness", unknown, signature(robustness).parameters, without=NOT_HERE))
    running = {"seed": seed, "batch_size": SEARCH_BATCH, **show}
    inputs = labelled(data)
    rows = []
    for name in attacks:
        fooled: dict[tuple[int, int], Array] = {}
        wrong = np.zeros(len(inputs), dtype=bool)
        for size, count in product(sorted(set(thresholds)), sorted(set(generations))):
            weaker = [images for (less, fewer), images in fooled.items() if less <= size and fewer <= count]
            spared = np.logical_or.reduce(weaker) if nested and weaker else np.zeros(len(inputs), dtype=bool)
            options = {SIZES[name]: size, "generations": count, "search": search, "population": population}
            before, after = _mistakes(network, inputs, np.flatnonzero(~spared), name, running, options)
            wrong |= before
            fooled[size, count] = spared | after
        rows += [{"attack": name} | _row(*pair, fooled[pair], wrong) for pair in product(thresholds, generations)]
    return pd.DataFrame(rows)


def _mistakes(
    network: Any, data: Data, rows: Array, attack: str, running: dict[str, Any], options: dict[str, Any]
) -> tuple[Array, Array]:
    """Which inputs are misclassified before and after an attack on some of them; the others count as right."""
    before, after = np.zeros((2, len(data)), dtype=bool)
    if len(rows):
        subset = data if len(rows) == len(data) else data[rows.tolist()]
        result = success(network, subset, attack, pictures=0, **running, **options)
        before[rows], after[rows] = result.before != result.labels, result.after != result.labels
    return before, after


def _row(size: int, count: int, fooled: Array, wrong: Array) -> dict[str, Any]:
    right = int((~wrong).sum())
    rate = float((fooled & ~wrong).sum() / right)
    low, high = wilson(rate, right)
    counts = {"images": len(wrong), "fooled": int(fooled.sum()), "wrong_before": int(wrong.sum())}
    return {"threshold": size, "generations": count} | counts | {"rate": rate, "low": low, "high": high}
