"""Curves of class similarity: one panel per index, bands over seeds, and panels that hold several things beside SAI.

The joint panels are those of Deep Similarity Inspector's appendices: accuracy with both losses (B.2), the number of
mistakes (H.1), SAI with the training loss and the learning rate (I.1), SAI with the fooling rate (K.1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.classes.epoch_report import panels
from likewise.errors import InputError
from likewise.matrices.heatmap import finish

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# title: what is drawn against the left axis, and what against each of the others
JOINT: dict[str, tuple[tuple[str, ...], ...]] = {
    "accuracy and losses": (("accuracy", "accuracy_train"), ("loss", "validation_loss")),
    "SAI(NCSM, SCSM), loss and learning rate": (("sai_ncsm_scsm",), ("loss",), ("lr",)),
    "SAI(NCSM, SCSM) and fooling rate": (("sai_ncsm_scsm",), ("fooling_rate",)),
    "number of mistakes": (("errors",), ("errors_train",)),  # of splits of different sizes
    "IDM of all inputs": (("nidm", "widm"),),
    "IDM of mistakes": (("nidm_errors", "widm_errors"),),
}


def curves(
    frames: Mapping[str, pd.DataFrame | Sequence[pd.DataFrame]],
    path: str | Path | None = None,
    *,
    columns: Sequence[str] | None = None,
    chance: Mapping[str, float] | None = None,
) -> Figure:
    """The curves of one or several networks, one panel per index, dotted where chance is.

    Of several trainings of one network (other seeds), the line is their mean and the band reaches from the least to the
    largest, over the epochs that all of them have.

    Args:
        frames: What `Inspector.curves` gave, or a list of those of several seeds, by name of the network.
        path: Where to save the picture.
        columns: The indices to draw; by default the main ones.
        chance: The level of chance by index.

    Raises:
        InputError: A network has no frame, or none of the indices was reported.
    """
    titles, bands = panels(), {name: _seeds(name, given) for name, given in frames.items()}
    reported = {column for seeds in bands.values() for frame in seeds for column in frame}
    columns = [name for name in (titles if columns is None else columns) if name in reported]
    if not columns:
        raise InputError("none of the curves asked for was reported. See inspector.curves().columns.")
    figure, axes = _grid(len(columns), height=2.6)
    for axis, name in zip(axes, columns, strict=False):
        for number, (label, seeds) in enumerate(bands.items()):
            _line(axis, [frame[name] for frame in seeds if name in frame], f"C{number}", label)
        if chance and name in chance:
            axis.axhline(chance[name], color="grey", linestyle=":", linewidth=1)
        axis.set_title(titles.get(name, name), fontsize=9)
    if len(bands) > 1:
        lines = {line.get_label(): line for axis in axes for line in axis.get_lines()}
        handles = [lines[label] for label in bands if label in lines]
        figure.legend(handles=handles, loc="outside upper center", ncols=len(bands), fontsize=9)
    return finish(figure, path)


def joint(frame: pd.DataFrame, path: str | Path | None = None, *, chance: Mapping[str, float] | None = None) -> Figure:
    """What belongs together in one panel each: SAI beside loss, learning rate and fooling rate, accuracy, mistakes.

    Panels whose left curves were not reported are left out; of the others, the curves that were not.

    Args:
        frame: What `Inspector.curves` gave.
        path: Where to save the picture.
        chance: The level of chance by index, dotted.

    Raises:
        InputError: None of the curves was reported.
    """
    _check_frame("joint", frame)
    present = {name for name in frame if frame[name].notna().any()}
    sides = {title: [[name for name in side if name in present] for side in all_] for title, all_ in JOINT.items()}
    shown = {title: [left, *filter(None, right)] for title, (left, *right) in sides.items() if left}
    if not shown:
        raise InputError("none of the curves of the joint panels was reported. See inspector.curves().columns.")
    figure, axes = _grid(len(shown), height=2.9, across=3)
    for axis, (title, names) in zip(axes, shown.items(), strict=False):
        axis.set_title(title, fontsize=9)
        lines: list[Any] = []
        for n, side in enumerate(names):
            other = axis.twinx() if n else axis
            other.spines["right"].set_position(("axes", 1 + 0.22 * max(0, n - 1)))
            other.tick_params(labelsize=7)
            other.set_ylabel(", ".join(side), fontsize=7)
            for name in side:
                lines.append(_line(other, [frame[name]], f"C{len(lines)}", name, style="--" if n else "-"))
        for name in names[0]:
            if chance and name in chance:
                axis.axhline(chance[name], color="grey", linestyle=":", linewidth=1)
        axis.legend(handles=lines, fontsize=6, loc="center right")
    return finish(figure, path)


def _seeds(name: str, given: Any) -> list[pd.DataFrame]:
    frames = list(given) if isinstance(given, (list, tuple)) else [given]
    if not frames:
        raise InputError(f"{name!r} has no curves to draw. Give at least one frame of inspector.curves().")
    for frame in frames:
        _check_frame(repr(name), frame)
    return frames


def _check_frame(what: str, frame: Any) -> None:
    if getattr(frame, "ndim", 0) != 2 or not hasattr(frame, "columns"):
        raise InputError(f"{what} needs a data frame of curves, got {type(frame).__name__}. Give inspector.curves().")


def _grid(count: int, *, height: float, across: int = 4) -> tuple[Figure, Any]:
    """A figure with so many panels; those of the last row that are not used are off."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    across = min(across, count)
    down = math.ceil(count / across)
    figure = Figure(figsize=((3.5 if height < 2.9 else 4.6) * across, height * down + 0.4), layout="constrained")
    axes = np.atleast_1d(figure.subplots(down, across, squeeze=False)).ravel()
    for axis in axes:
        axis.tick_params(labelsize=7)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    for axis in axes[count:]:
        axis.axis("off")
    for axis in axes[count - across : count]:
        axis.set_xlabel("epoch", fontsize=8)
    return figure, axes


def _line(axis: Any, columns: Sequence[pd.Series], colour: str, label: str, style: str = "-") -> Any:
    """One curve; of several seeds their mean, in a band from the least to the largest."""
    import pandas as pd

    if not columns:
        return None
    table = pd.concat(list(columns), axis=1).dropna()
    (line,) = axis.plot(table.index, table.mean(axis=1), colour, label=label, linewidth=1.5, linestyle=style)
    if len(columns) > 1:
        axis.fill_between(table.index, table.min(axis=1), table.max(axis=1), color=colour, alpha=0.2, linewidth=0)
    return line
