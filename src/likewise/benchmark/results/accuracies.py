"""Accuracies of networks by group as points, like the paper's figures 3 to 12: are the groups what they should be?"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.benchmark.groundings import GROUNDINGS
from likewise.benchmark.results.frame import Results
from likewise.errors import InputError
from likewise.matrices.heatmap import finish

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

PLACE = ("domain", "data", "network")  # columns of networks.csv that a run may add
# what shows a change beside the accuracy on the probe: the column, and in words
CHECKS = {
    "labels": ("fit", "on training data"),
    "shortcut": ("shortcut", "with right shortcuts"),
    "augmentation": ("augmented", "on augmented inputs"),
}


def plot_accuracies(results: Results, path: str | os.PathLike[str] | None = None) -> Figure:
    """One part per grounding by groups, one point per network, its group on the x axis; saved if a path is given.

    Hollow points are accuracies where the change of a group shows: on training data, with right shortcuts, augmented.
    """
    from matplotlib.figure import Figure

    parts = accuracies(results)
    across = min(3, len(parts))
    down = -(-len(parts) // across)
    figure = Figure(figsize=(4.2 * across, 3.2 * down), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).ravel()
    for axis, (title, rows) in zip(axes, parts.items(), strict=False):
        column, words = CHECKS.get(_name(title), ("", ""))
        hollow = _numbers(rows[column]) if column in rows.columns else None
        known = hollow is not None and bool(hollow.notna().any())
        _points(axis, rows, hollow if known else None)
        axis.set_title(f"{title} (hollow: {words})" if known else title, fontsize=9)
    for axis in axes[len(parts) :]:
        axis.axis("off")
    return finish(figure, path)


def accuracies(results: Results) -> dict[str, pd.DataFrame]:
    """The networks of each grounding by groups, under its title: name, group, accuracy, and what the runs add."""
    networks = results.networks
    if networks is None:
        raise InputError("these runs kept no networks.csv, so accuracies are not known. Run the benchmark again.")
    found = {}
    for grounding in dict.fromkeys(results.frame["grounding"]):
        known = GROUNDINGS.get(grounding) if grounding in GROUNDINGS else None
        if known is not None and known.kind != "groups":
            continue
        title = known.title if known else grounding
        named = [grounding in _words(words) for words in networks["groundings"]]
        rows = networks[np.array(named, dtype=bool)].dropna(subset=["accuracy"])
        if len(rows):
            found[title] = rows
    if not found:
        raise InputError("no grounding by groups is among these results, so there are no groups to show.")
    return found


def _name(title: str) -> str:
    """The grounding of a title."""
    return next((one.name for one in GROUNDINGS if one.title == title), title)


def _numbers(column: pd.Series) -> pd.Series:
    """A column of networks.csv, which may hold text, as numbers."""
    import pandas as pd

    return pd.to_numeric(column, errors="coerce")


def _words(text: str) -> list[str]:
    """The groundings of a network, however they are parted: spaces, commas or semicolons.

    >>> _words("labels;shortcut"), _words("labels, layers")
    (['labels', 'shortcut'], ['labels', 'layers'])
    """
    return [word for word in re.split(r"[\s,;|]+", str(text)) if word]


def _points(axis: Any, rows: pd.DataFrame, hollow: pd.Series | None) -> None:
    groups = list(dict.fromkeys(rows["group"]))
    given = [name for name in PLACE if name in rows.columns and rows[name].nunique() > 1]
    kinds = rows[given].astype(str).agg(" ".join, axis=1) if given else rows["group"].map(lambda _: "")
    names = list(dict.fromkeys(kinds))
    for place, name in enumerate(names):
        chosen = rows[kinds == name]
        x = np.array([groups.index(group) for group in chosen["group"]], dtype=float)
        spread = (place - (len(names) - 1) / 2) * min(0.16, 0.7 / len(names))
        jitter = (np.arange(len(x)) % 5 - 2) * 0.012  # networks of one accuracy stay visible
        at, colour = x + spread + jitter, f"C{place % 10}"
        axis.scatter(at, chosen["accuracy"], s=14, alpha=0.75, label=name or None, color=colour)
        if hollow is not None:
            axis.scatter(at, hollow[kinds == name], s=14, alpha=0.75, facecolors="none", edgecolors=colour)
    few = len(groups) <= 4
    shown = [group.replace(" ", "\n") if few else group for group in groups]
    axis.set_xticks(range(len(groups)), shown, fontsize=8, **({} if few else {"rotation": 25, "ha": "right"}))
    axis.set_xlim(-0.5, len(groups) - 0.5)
    axis.set_ylim(0, 1.02)
    axis.set_ylabel("accuracy", fontsize=9)
    axis.tick_params(axis="y", labelsize=8)
    axis.grid(axis="y", linewidth=0.3)
    if len(names) > 1:
        axis.legend(fontsize=7, loc="best")
