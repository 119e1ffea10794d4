"""A `Diff` as one picture: how alike each layer is, and below it images that flip."""

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
    pictures = [(flip, shown) for flip, shown in flips if isinstance(shown, np.ndarray)]
    rows = math.ceil(len(pictures) / _ACROSS)
    figure = Figure(figsize=(9, 3.8 + 1.6 * rows), layout="constrained")
    grid = figure.add_gridspec(1 + rows, _ACROSS, height_ratios=[3.8] + [1.6] * rows)
    _curve(figure.add_subplot(grid[0, :]), diff)
    for place, (flip, shown) in enumerate(pictures):
        axis = figure.add_subplot(grid[1 + place // _ACROSS, place % _ACROSS])
        axis.imshow(shown, interpolation="nearest")
        axis.set_title(f"{flip.before} → {flip.after}", fontsize=7, parse_math=False)
        axis.set_axis_off()
    return finish(figure, path)


def _curve(axis: Any, diff: Diff) -> None:
    names = [each.layer for each in diff.layers]
    axis.plot(range(len(names)), [each.likeness for each in diff.layers], marker="o", markersize=3)
    axis.axhline(DIVERGED, color="grey", linewidth=0.8, linestyle=":")
    step = max(1, math.ceil(len(names) / _NAMES))
    axis.set_xticks(range(0, len(names), step), names[::step], rotation=90, fontsize=6, parse_math=False)
    axis.set_ylabel("cka-debiased\n(larger is more alike)", fontsize=8)
    low = min((each.likeness for each in diff.layers if each.likeness == each.likeness), default=0.0)
    axis.set_ylim(min(low, DIVERGED) - 0.03, 1.03)
    moved = diff.first_moved
    if moved is not None:
        axis.axvline(diff.layers.index(moved), color="#d62728", linewidth=0.8)
        place, left = diff.layers.index(moved), diff.layers.index(moved) < len(names) / 2
        how = {"fontsize": 7, "va": "bottom", "ha": "left" if left else "right", "parse_math": False}
        axis.text(place, axis.get_ylim()[0], f" first to change: {moved.layer} ", **how)
    axis.set_title(f"{diff.names[0]} → {diff.names[1]}: {diff.verdict}", fontsize=10, parse_math=False)
