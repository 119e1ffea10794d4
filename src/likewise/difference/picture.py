"""A `Diff` as one picture: how alike layer layer is, and below it images that flip."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.difference.layers import DIVERGED
from likewise.matrices.heatmap import finish

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from likewise.difference.result import Diff

_ACROSS, _NAMES = 6, 40  # images in a row, and layers up to which all are named


def draw(diff: Diff, path: str | os.PathLike[str] | None) -> Figure:
    """The picture, drawn without a display."""
    from matplotlib.figure import Figure

    answers = diff.answers
    flips = [] if isinstance(answers, str) else list(zip(answers.flips, diff.inputs, strict=False))
    pictures = [(flip, image) for flip, image in flips if isinstance(image, np.ndarray)]
    rows = math.ceil(len(pictures) / _ACROSS)
    figure = Figure(figsize=(9, 3.8 + 1.6 * rows), layout="constrained")
    grid = figure.add_gridspec(1 + rows, _ACROSS, height_ratios=[3.8] + [1.6] * rows)
    _curve(figure.add_subplot(grid[0, :]), diff)
    for index, (flip, image) in enumerate(pictures):
        axis = figure.add_subplot(grid[1 + index // _ACROSS, index % _ACROSS])
        axis.imshow(image, interpolation="nearest")
        axis.set_title(f"{flip.before} → {flip.after}", fontsize=7, parse_math=False)
        axis.set_axis_off()
    return finish(figure, path)


def _curve(axis: Any, diff: Diff) -> None:
    names, values = [layer.layer for layer in diff.layers], [layer.likeness for layer in diff.layers]
    axis.plot(range(len(names)), values, marker="o", markersize=3)
    axis.axhline(DIVERGED, color="grey", linewidth=0.8, linestyle=":")
    step = max(1, math.ceil(len(names) / _NAMES))
    axis.set_xticks(range(0, len(names), step), names[::step], rotation=90, fontsize=6, parse_math=False)
    axis.set_ylabel("cka-debiased\n(larger is more alike)", fontsize=8)
    low = min((value for value in values if value == value), default=0.0)
    axis.set_ylim(min(low, DIVERGED) - 0.03, 1.03)
    moved = diff.first_moved
    if moved is not None:
        index = diff.layers.index(moved)
        side = "left" if index < len(names) / 2 else "right"
        axis.axvline(index, color="#d62728", linewidth=0.8)
        label = f" first to change: {moved.layer} "
        axis.text(index, axis.get_ylim()[0], label, fontsize=7, va="bottom", ha=side, parse_math=False)
    axis.set_title(f"{diff.names[0]} → {diff.names[1]}: {diff.verdict}", fontsize=10, parse_math=False)
