"""Pictures of families: the matrix with alike networks side by side, and a map of them."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from likewise._base.names import short_names
from likewise.analysis.families import Clusters, Map, embed
from likewise.matrices.heatmap import draw_panel, finish

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMED = 40  # networks up to which a map has room for their names


def plot_families(
    families: Clusters, path: str | os.PathLike[str] | None = None, *, how: Map = "tsne", seed: int = 0
) -> Figure:
    """The matrix sorted by family, and a map on which alike networks are near; saved if a path is given."""
    from matplotlib.figure import Figure

    groups = families.groups()
    matrix = families.matrix.reordered([name for group in groups for name in group])
    starts = np.cumsum([0, *map(len, groups)]).tolist()
    borders = [(starts[i], starts[i + 1], f"family {i}") for i in range(len(groups))]
    off = np.where(np.eye(len(matrix), dtype=bool), np.nan, matrix.values)  # the diagonal would take all the colours
    panel = replace(matrix.panel(), values=off, groups=borders, notes=matrix.legend(), bounds=(None, None))
    width, height = panel.size
    figure = Figure(figsize=(width + 1.1 * height, height), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[width, 1.1 * height])
    draw_panel(figure, left, panel)
    places = dict(zip(families.matrix.names, embed(families.matrix, how, seed=seed), strict=True))
    for i, group in enumerate(groups):
        x, y = np.array([places[name] for name in group]).T
        right.scatter(x, y, color=f"C{i % 10}", marker="osD^v"[i // 10 % 5], label=f"family {i}", s=30)
        names = short_names(group) if len(places) <= NAMED else []
        for name, *place in zip(names, x, y, strict=False):
            right.annotate(name, place, fontsize=6, xytext=(3, 3), textcoords="offset points")
    right.set_title(f"map ({how}), stability {families.stability:.2f}", fontsize=10)
    right.set(xticks=[], yticks=[])
    right.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return finish(figure, path)
