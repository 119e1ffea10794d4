"""Draw the pictures that guides open with, from the tables of the pages, the CSVs of `perf` or runs of seconds.

    python scripts/pictures.py [NAME ...]

A picture has the name of its page: `cost` draws `docs/cost.png`, above the text of `docs/cost.md`.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

import likewise
from likewise.difference.language_models.tokens import CLOSE
from likewise.transfer.boundaries import Plane, draw_triplets

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
BLUE, RED, GREY = "#2b6cb0", "#c53030", "#8a94a3"
STYLE = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "savefig.facecolor": "white"}
DPI, WIDTH = 120, 7.4
Box = tuple[str, str]  # a title, and what stands below it


def table(page: str, column: str) -> pd.DataFrame:
    """The table of a page that has a column of this name, as text."""
    lines = (DOCS / f"{page}.md").read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("|") and f"| {column} |" in line)
    end = next(number for number in range(start, len(lines) + 1) if not lines[number : number + 1] or not lines[number])
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines[start:end])
    return pd.DataFrame(rows, columns=head)


@cache
def trained(architecture: str, seed: int) -> torch.nn.Module:
    """A network that is trained on a thousand digits."""
    digits = likewise.dataset("digits:train[:1000]")
    net: torch.nn.Module = likewise.network(f"zoo:{architecture}", data=digits, seed=seed)
    likewise.train(net, digits, epochs=3, seed=seed, progress=False)
    return net.eval()


def data() -> Figure:
    """Digits as they are, with other labels and with a shortcut; the title of an image is its label."""
    digits = likewise.dataset("digits:train[:10]")
    rows = {
        "digits": digits,
        "randomise_labels\nshare 0.5": likewise.data.randomise_labels(digits, 0.5, seed=1),
        "add_shortcut\nshare 1": likewise.data.add_shortcut(digits, 1.0, seed=0),
    }
    figure, grid = plt.subplots(len(rows), len(digits), figsize=(WIDTH, 2.9))
    for axes, (name, one) in zip(grid, rows.items(), strict=True):
        for axis, image, label, old in zip(axes, one.inputs, one.labels, digits.labels, strict=True):
            axis.imshow(image[0], cmap="gray", vmin=0, vmax=1)
            axis.set_title(one.classes[label], color="black" if label == old else RED, fontsize=9, pad=3)
            axis.set(xticks=[], yticks=[])
        axes[0].set_ylabel(name, rotation=0, ha="right", va="center", labelpad=8)
    return figure


def networks() -> Figure:
    """What each block of a LeNet gives of one digit."""
    net, probe = trained("lenet", 0), likewise.dataset("digits:test[:20]")
    layers = [layer for layer in likewise.layers(net, probe) if layer.block]
    names = [layer.name for layer in layers]
    views = likewise.extract(net, probe, layers=names, reduce="flatten", progress=False)
    widths = [1.2] + [1.6 if len(layer.shape) == 3 else 0.9 for layer in layers]
    figure, axes = plt.subplots(1, 1 + len(layers), figsize=(WIDTH, 2.3), width_ratios=widths)
    axes[0].imshow(probe.inputs[0, 0], cmap="gray")
    axes[0].set_title("a digit\n\n(1, 8, 8)", fontsize=9)
    for axis, layer in zip(axes[1:], layers, strict=True):
        values = np.asarray(views[layer.name])[0].reshape(layer.shape)
        axis.imshow(tiled(values), cmap="viridis")
        axis.set_title(f"{layer.name}\n{layer.kind}\n{layer.shape}", fontsize=9)
    for axis in axes:
        axis.axis("off")
    return figure


def tiled(values: np.ndarray) -> np.ndarray:
    """Channels side by side with a gap between them, or the values of a vector in columns."""
    if values.ndim == 1:
        across = next(columns for columns in (6, 2, 1) if len(values) % columns == 0)
        return values.reshape(-1, across)
    across = 4 if len(values) % 4 == 0 else 3
    padded = np.pad(values, ((0, 0), (0, 1), (0, 1)), constant_values=np.nan)
    return np.concatenate([np.concatenate(list(padded[start::across]), axis=0) for start in range(across)], axis=1)


def language_models() -> Figure:
    """KL divergence and the same top token of the copies in the page's table."""
    copies = table("language-models", "same top")[::-1]
    numbers = copies["KL [95 %]"].str.extract(r"(\S+) \[(\S+), (\S+)\]").astype(float).to_numpy()
    tops = copies["same top"].astype(float).to_numpy()
    names, rows = copies["copy"] + " (" + copies["verdict"] + ")", np.arange(len(copies))
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH - 1, 2.7), sharey=True)
    kl, low, high = numbers.T
    left.errorbar(kl, rows, xerr=[kl - low, high - kl], fmt="o", color=BLUE, capsize=3, clip_on=False)
    left.set_xscale("symlog", linthresh=1e-7)
    left.set(xlim=(0, 2), xticks=[0, 1e-6, 1e-4, 1e-2, 1], yticks=rows, yticklabels=names)
    right.barh(rows, tops, color=BLUE, height=0.6)
    right.bar_label(right.containers[0], fmt=" %.3f", fontsize=8)
    right.set(xlim=(0, 1.15), xticks=[0, 0.5, 1])
    for axis, limit, side, name in (
        (left, CLOSE[0], "up to", "KL divergence in nats"),
        (right, CLOSE[1], "from", "share of tokens with the same top token"),
    ):
        axis.axvline(limit, color=RED, linestyle="--", linewidth=1)
        note, place = f"close {side} {limit:g}", axis.get_xaxis_transform()
        axis.text(limit, 1.01, note, transform=place, color=RED, ha="center", va="bottom")
        axis.set_xlabel(name)
    return figure


def recordings() -> Figure:
    """How far each layer of a LeNet is from its recording, after noise on the weights of one."""
    net, probe = deepcopy(trained("lenet", 0)), likewise.dataset("digits:test[:100]")
    shipped = likewise.record(net, probe, name="shipped", progress=False)
    tensor = dict(net.named_parameters())["net.features.4.weight"]
    with torch.no_grad():
        noise = torch.randn(tensor.shape, generator=torch.Generator().manual_seed(0))
        tensor.add_(0.1 * tensor.std() * noise)
    found = likewise.diff(shipped, net, probe, progress=False)
    names, changes = [one.layer for one in found.layers], [100 * one.change for one in found.layers]
    figure, axis = plt.subplots(figsize=(WIDTH, 2.8))
    first = names.index(found.first_moved.layer)
    axis.bar(range(len(names)), changes, color=[RED if place == first else BLUE for place in range(len(names))])
    axis.annotate("the first to change", (first, changes[first]), (first - 0.7, changes[first]), color=RED, ha="right")
    axis.set_xticks(range(len(names)), names, rotation=40, ha="right", rotation_mode="anchor")
    axis.set_ylabel("change from the recording, %")
    return figure


def embeddings() -> Figure:
    """What the page's example finds: neighbours kept, and the recall of old vectors that are mapped."""
    code = re.search(r"```python\n(.*?)```", (DOCS / "embeddings.md").read_text(encoding="utf-8"), re.S)
    assert code is not None
    space: dict[str, Any] = {}
    exec(code[1].replace("print(result)", ""), space)
    result = space["result"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.7), sharey=True, width_ratios=[3, 2])
    bars(left, {f"nearest {count}": recall for count, recall in result.kept.items()})
    for place, chance in enumerate(result.by_chance.values()):
        left.hlines(chance, place - 0.4, place + 0.4, color=RED, linestyle="--", linewidth=1.2)
    left.set(title="neighbours kept by the new model\n(dashed: by chance)", ylim=(0, 1.08))
    bars(right, result.maps)
    right.axhline(0.9, color=RED, linestyle="--", linewidth=1.2)
    right.set_title("recall of old vectors, mapped\n(dashed: asked for)")
    return figure


def bars(axis: Any, recalls: dict[str, Any]) -> None:
    """One bar with its interval per recall."""
    values = np.array([[one.value, one.value - one.low, one.high - one.value] for one in recalls.values()]).T
    axis.bar(list(recalls), values[0], yerr=values[1:], color=BLUE, capsize=4, width=0.6)
    for place, (value, _, above) in enumerate(values.T):
        axis.text(place, value + above + 0.02, f"{value:.2f}", ha="center")


def boundaries() -> Figure:
    """One plane through three digits, coloured by the class that each of three networks gives."""
    digits, side = likewise.dataset("digits:test[:100]"), 150
    three = digits.inputs[draw_triplets(digits.labels, 1, seed=0)[0]]
    plane = Plane.through(three)
    points = torch.einsum("pt,t...->p...", plane.weights(side).float(), three)
    nets = {f"{name}, seed {seed}": trained(name, seed) for name, seed in (("mlp", 0), ("mlp", 1), ("lenet", 0))}
    with torch.no_grad():
        classes = {name: net(points).argmax(1).reshape(side, side).T for name, net in nets.items()}
    first, (low, high) = next(iter(classes.values())), plane.axes(side)[:, [0, -1]].T.numpy()
    figure, axes = plt.subplots(1, len(nets), figsize=(WIDTH, 2.9))
    for axis, (name, regions) in zip(axes, classes.items(), strict=True):
        shape = (low[0], high[0], low[1], high[1])
        axis.imshow(regions, cmap="tab10", vmin=-0.5, vmax=9.5, origin="lower", extent=shape, interpolation="nearest")
        for label in regions.unique():
            row, column = (int(place.median()) for place in torch.nonzero(regions == label).T)
            if int((regions == label).sum()) > 150 and regions[row, column] == label:
                middle = low + (high - low) * np.array([column, row]) / side
                axis.text(*middle, str(int(label)), color="white", weight="bold", ha="center", va="center")
        axis.plot(*plane.coordinates.T.numpy(), "wo", markeredgecolor="black", markersize=6)
        same = float((regions == first).double().mean())
        axis.set(
            xticks=[], yticks=[], title=name, xlabel="" if regions is first else f"{100 * same:.0f} % as the first"
        )
    return figure


def cost() -> Figure:
    """Measured against planned seconds and memory of `perf/results/many.csv`."""
    runs = pd.read_csv(ROOT / "perf" / "results" / "many.csv")
    figure, axes = plt.subplots(1, 2, figsize=(WIDTH - 0.9, 3.1))
    for axis, planned, measured, title in (
        (axes[0], "planned_seconds", "cpu_seconds", "CPU seconds"),
        (axes[1], "planned_mb", "peak_mb", "peak memory, MB"),
    ):
        ends = np.array([runs[[planned, measured]].min().min() / 2, runs[[planned, measured]].max().max() * 2])
        axis.loglog(ends, ends, color=GREY, linewidth=1)
        for measure, rows in runs.groupby("measure", sort=False):
            axis.loglog(rows[planned], rows[measured], "o", label=measure, markersize=6, alpha=0.85)
        axis.set(title=title, xlabel="planned", ylabel="measured", aspect="equal")
    axes[1].legend(fontsize=7.5, loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False)
    return figure


def boxes(rows: list[list[Box]], height: float) -> Figure:
    """Rows of boxes with arrows from left to right, and one down from each row to the next."""
    figure, axis = plt.subplots(figsize=(WIDTH, height))
    axis.set(xlim=(0, 1), ylim=(-len(rows), 0))
    axis.axis("off")
    for number, row in enumerate(rows):
        wide, middle = 1 / len(row), -number - 0.5
        for place, (title, below) in enumerate(row):
            left = place * wide + 0.015
            shape = "round,pad=0,rounding_size=0.02"
            axis.add_patch(
                FancyBboxPatch((left, middle - 0.36), wide - 0.03, 0.72, boxstyle=shape, fc="#eef4fb", ec=BLUE)
            )
            centre = left + wide / 2 - 0.015
            axis.text(centre, middle + 0.2, title, ha="center", va="center", weight="bold")
            axis.text(centre, middle - 0.1, below, ha="center", va="center", fontsize=7.5, linespacing=1.35)
            if place:
                arrow(axis, (left - 0.03, middle), (left, middle))
        if number:
            arrow(axis, (0.5, middle + 0.64), (0.5, middle + 0.36))
    return figure


def arrow(axis: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    """An arrow between two boxes."""
    axis.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": BLUE, "shrinkA": 0, "shrinkB": 0})


def running() -> Figure:
    """What happens to inputs on their way through a network, and the option that decides each step."""
    steps = [
        ("transform", "its own, or\ntransform=,\nmean=, std="),
        ("batch", "as many as fit,\nor batch_size=,\nmemory="),
        ("device", "an accelerator,\nor device="),
        ("precision", "of the weights,\nor dtype="),
        ("view", "one per layer,\nwith a record:\nview.about"),
    ]
    return boxes([steps], 1.6)


def cluster() -> Figure:
    """Who sends what to whom: a command, an engine, its workers and the store."""
    steps = [
        ("your process", "a comparison,\na training, a study"),
        ("engine", "processes, dask,\nray, slurm,\nyour executor"),
        ("workers", "get addresses,\nload networks\nand data"),
        ("store", "scores and views,\nwritten at once;\na rerun resumes"),
    ]
    return boxes([steps], 1.6)


def adding() -> Figure:
    """What follows from one decorator."""
    steps = [
        ("a decorator", "on a function in\none file, of this\npackage or yours"),
        ("its registry", "finds it\nby its name"),
        ("what follows", "lists and tables,\noptions of commands,\ncontract tests"),
    ]
    return boxes([steps], 1.6)


PICTURES: dict[str, Callable[[], Figure]] = {
    one.__name__.replace("_", "-"): one
    for one in (
        data,
        networks,
        running,
        cluster,
        language_models,
        recordings,
        embeddings,
        boundaries,
        cost,
        adding,
    )
}


def main() -> None:
    """Draw the pictures that are named, or all."""
    mpl.use("agg")
    warnings.simplefilter("ignore")
    for name in sys.argv[1:] or PICTURES:
        with mpl.rc_context(STYLE):
            figure = PICTURES[name]()
            figure.savefig(DOCS / f"{name}.png", dpi=DPI, bbox_inches="tight", metadata={"Software": None})
            plt.close(figure)


if __name__ == "__main__":
    main()
