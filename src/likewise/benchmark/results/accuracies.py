"""Accuracies of networks by group as points, like the paper's figures 3 to 12: are the groups what they should be?"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.benchmark.groundings import GROUNDINGS
from likewise.benchmark.results.frame import SETTING, Results
from likewise.errors import InputError
from likewise.matrices.heatmap import finish

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# what shows a change beside the accuracy on the probe: the column, and in words
CHECKS = {
    "labels": ("fit", "on training data"),
    "shortcut": ("shortcut", "with right shortcuts"),
    "augmentation": ("augmented", "on augmented inputs"),
}


def plot_accuracies(results: Results, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw the accuracy of every network, one panel per grounding by groups, and save it if a path is given.

    Hollow points are accuracies where the change of a group shows: on training data, with right shortcuts, augmented.
    """
    import pandas as pd
    from matplotlib.figure import Figure

    panels = accuracies(results)
    checks = {GROUNDINGS.get(name).title: check for name, check in CHECKS.items()}
    across = min(3, len(panels))
    down = -(-len(panels) // across)
    figure = Figure(figsize=(4.2 * across, 3.2 * down), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).ravel()
    for axis, (title, rows) in zip(axes, panels.items(), strict=False):
        column, words = checks.get(title, ("", ""))
        hollow = pd.to_numeric(rows[column], errors="coerce") if column in rows.columns else None
        checked = hollow is not None and bool(hollow.notna().any())
        _points(axis, rows, hollow if checked else None)
        axis.set_title(f"{title} (hollow: {words})" if checked else title, fontsize=9)
    for axis in axes[len(panels) :]:
        axis.axis("off")
    return finish(figure, path)


def accuracies(results: Results) -> dict[str, pd.DataFrame]:
    """The networks of each grounding by groups, under its title: name, group, accuracy, and what the runs add."""
    networks = results.networks
    if networks is None:
        raise InputError("these runs kept no networks.csv, so accuracies are not known. Run the benchmark again.")
    by_title = {}
    for name in dict.fromkeys(results.frame["grounding"]):
        grounding = GROUNDINGS.get(name) if name in GROUNDINGS else None
        if grounding is not None and grounding.kind != "groups":
            continue
        used = [name in re.split(r"[\s,;|]+", str(words)) for words in networks["groundings"]]
        rows = networks[np.array(used, dtype=bool)].dropna(subset=["accuracy"])
        if len(rows):
            by_title[grounding.title if grounding else name] = rows
    if not by_title:
        raise InputError("no grounding by groups is among these results, so there are no groups to show.")
    return by_title


def _points(axis: Any, rows: pd.DataFrame, hollow: pd.Series | None) -> None:
    groups = list(dict.fromkeys(rows["group"]))
    differing = [name for name in SETTING if name in rows.columns and rows[name].nunique() > 1]
    settings = rows[differing].astype(str).agg(" ".join, axis=1) if differing else rows["group"].map(lambda _: "")
    names = list(dict.fromkeys(settings))
    for number, name in enumerate(names):
        networks = rows[settings == name]
        x = np.array([groups.index(group) for group in networks["group"]], dtype=float)
        spread = (number - (len(names) - 1) / 2) * min(0.16, 0.7 / len(names))
        jitter = (np.arange(len(x)) % 5 - 2) * 0.012  # networks of one accuracy stay visible
        at, colour = x + spread + jitter, f"C{number % 10}"
        axis.scatter(at, networks["accuracy"], s=14, alpha=0.75, label=name or None, color=colour)
        if hollow is not None:
            axis.scatter(at, hollow[settings == name], s=14, alpha=0.75, facecolors="none", edgecolors=colour)
    few = len(groups) <= 4
    ticks = [group.replace(" ", "\n") if few else group for group in groups]
    axis.set_xticks(range(len(groups)), ticks, fontsize=8, **({} if few else {"rotation": 25, "ha": "right"}))
    axis.set_xlim(-0.5, len(groups) - 0.5)
    axis.set_ylim(0, 1.02)
    axis.set_ylabel("accuracy", fontsize=9)
    axis.tick_params(axis="y", labelsize=8)
    axis.grid(axis="y", linewidth=0.3)
    if len(names) > 1:
        axis.legend(fontsize=7, loc="best")
