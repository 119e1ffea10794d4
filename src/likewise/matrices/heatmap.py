"""Pictures of matrices with names, all by the same rules. Drawn without a display; saved if a path is given.

Bright is alike, for similarities and distances; grey is undefined. Colours span the range of the measure, so that two
pictures of it compare. A similarity without a lower end is coloured from 0 on; a distance without an upper one, as far
as the values reach. Up to 20 names per side, numbers are written in; beyond that, saturated pairs are crossed out.
"""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise._base.files import save_figure
from likewise._base.names import short_names, visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SATURATED = "†"  # marks a score that any network of that width would get
LONGEST = 90  # characters of a name beside a figure, which would else be nothing but names
GREY, RED = "#dddddd", "#d62728"
NUMBERS, GROUPED, NAMED = 20, 30, 200  # names per side up to which there is room for numbers, for names


@dataclass(frozen=True)
class Heatmap:
    """One matrix to draw; undefined values are NaN."""

    values: np.ndarray
    rows: Sequence[str]
    columns: Sequence[str]
    title: str
    larger_is: str = "more alike"
    bounds: tuple[float | None, float | None] = (None, None)
    marks: Mapping[tuple[int, int], str] = field(default_factory=dict)  # written behind a number, by row and column
    notes: Sequence[str] = ()  # lines below, such as what the marks mean
    sides: tuple[str, str] = ("", "")  # what the rows and the columns are of
    groups: Sequence[tuple[int, int, str]] = ()  # neighbours that belong together: first, one past the last, name
    numbers: bool = True  # written in where there is room
    upwards: bool = False  # the first row is the lowest
    square_root: bool = False  # of values for colours, where most are small
    most_numbers: int = NUMBERS  # names per side up to which there is room for numbers

    @property
    def longest(self) -> int:
        """How many names the longer side has."""
        return max(len(self.rows), len(self.columns))

    @property
    def has_numbers(self) -> bool:
        """Whether there is room for numbers."""
        return self.numbers and self.longest <= self.most_numbers

    @property
    def has_names(self) -> bool:
        """Whether there is room for names; else groups are named."""
        return self.longest <= (GROUPED if self.groups else NAMED)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches: room for every name."""
        if not self.has_names:
            return 5.2, 4.6
        cell = 0.45 if self.has_numbers else 0.2
        return max(3.6, cell * len(self.columns) + 2.2) * 1.2, max(3.6, cell * len(self.rows) + 2.2)


def heatmaps(maps: Sequence[Heatmap], path: str | os.PathLike[str] | None = None, *, across: int = 4) -> Figure:
    """Matrices side by side; their rows are named once where they are the same."""
    from matplotlib.figure import Figure

    columns = min(across, len(maps))
    rows = math.ceil(len(maps) / columns)
    width, height = maps[0].size
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for index, (axis, heatmap) in enumerate(zip(axes, maps, strict=False)):
        draw_heatmap(figure, axis, heatmap, leftmost=index % columns == 0)
    for axis in axes[len(maps) :]:
        axis.axis("off")
    return finish(figure, path)


def finish(figure: Figure, path: str | os.PathLike[str] | None) -> Figure:
    """The figure with its names as they are, written if a path is given."""
    _show_names(figure)
    if path is not None:
        save_figure(figure, Path(path))
    return figure


def _show_names(figure: Figure) -> None:
    """Write out what could not be seen in a text of a figure, and take a dollar sign for one: no name is a formula."""
    from matplotlib.ticker import FixedLocator

    texts, legends = list(figure.texts), list(figure.legends)
    for axes in figure.axes:
        texts += [axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts]
        legends += [legend] if (legend := axes.get_legend()) else []
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(axis.get_major_locator(), FixedLocator):
                names = [visible(label.get_text(), lines=True) for label in axis.get_ticklabels()]
                cut = [
                    name if len(name) <= LONGEST else f"{name[: LONGEST // 2]}…{name[-LONGEST // 3 :]}"
                    for name in names
                ]
                axis.set_ticklabels(cut, parse_math=False)
    for text in [*texts, *(text for legend in legends for text in legend.get_texts())]:
        text.set_text(visible(text.get_text(), lines=True))
        text.set_parse_math(False)


def draw_heatmap(figure: Figure, axis: Any, heatmap: Heatmap, *, leftmost: bool = True) -> None:
    """Draw one matrix into one axis of a figure."""
    from matplotlib.colors import Normalize, PowerNorm

    low, high = scale(heatmap)
    image = axis.imshow(
        heatmap.values,
        cmap="viridis_r" if heatmap.larger_is == "less alike" else "viridis",
        norm=PowerNorm(0.5, low, high) if heatmap.square_root else Normalize(low, high),
        origin="lower" if heatmap.upwards else "upper",
        interpolation="nearest",
        aspect="auto" if len(heatmap.columns) >= 2 * len(heatmap.rows) else "equal",  # squares leave names no room
    )
    axis.set_facecolor(GREY)  # undefined pairs show through
    axis.set_title(heatmap.title, fontsize=10)
    axis.tick_params(labelsize=8 if heatmap.has_numbers else 7, length=0)
    _label(axis, heatmap, leftmost)
    for start, _, _ in heatmap.groups[1:]:
        axis.axhline(start - 0.5, color="white", linewidth=1)
        axis.axvline(start - 0.5, color="white", linewidth=1)
    figure.colorbar(image, ax=axis, shrink=0.8).ax.tick_params(labelsize=7)
    if heatmap.has_numbers:
        _write_numbers(axis, heatmap, image)
    elif saturated := [cell for cell, mark in heatmap.marks.items() if SATURATED in mark]:
        rows, columns = zip(*saturated, strict=True)
        axis.scatter(columns, rows, marker="x", s=12, linewidths=0.8, c=RED)


def draw_tree(axis: Any, merges: np.ndarray, places: Sequence[int]) -> None:
    """Draw the tree of rows beside their matrix: `merges` as in `linkage_tree`, and the place of each leaf."""
    at = [(float(place), 0.0) for place in places]
    for one, other, height in merges:
        (y, x), (other_y, other_x) = at[int(one)], at[int(other)]
        axis.plot([x, height, height, other_x], [y, y, other_y, other_y], color="#555555", linewidth=0.8)
        at.append(((y + other_y) / 2, float(height)))
    axis.set_ylim(len(places) - 0.5, -0.5)
    axis.axis("off")


def _label(axis: Any, heatmap: Heatmap, leftmost: bool) -> None:
    """Names along both sides, and the notes below."""
    rows, columns = list(heatmap.rows), list(heatmap.columns)
    if heatmap.has_names:
        turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if heatmap.has_numbers else {"rotation": 90}
        axis.set_xticks(range(len(columns)), short_names(columns), **turned)
        axis.set_yticks(range(len(rows)), short_names(rows) if leftmost else [""] * len(rows))
    else:
        middle = [(start + stop - 1) / 2 for start, stop, _ in heatmap.groups]
        axis.set_xticks([])
        axis.set_yticks(middle, [name if leftmost else "" for _, _, name in heatmap.groups])
    notes = [textwrap.fill(note, 60) for note in heatmap.notes]
    axis.set_xlabel("\n".join(filter(None, [heatmap.sides[1], *notes])), fontsize=6 if notes else 9)
    axis.set_ylabel(heatmap.sides[0], fontsize=9)


def _write_numbers(axis: Any, heatmap: Heatmap, image: Any) -> None:
    """The numbers, light on dark and dark on light."""
    for (i, j), value in np.ndenumerate(heatmap.values):
        red, green, blue = image.cmap(image.norm(value))[:3] if value == value else (1, 1, 1)
        dark = 0.3 * red + 0.6 * green + 0.1 * blue < 0.5
        text = f"{value:.2f}" if abs(value) < 100 else f"{value:.0f}"
        text = (text if abs(value) < 1e4 else f"{value:.0e}") + heatmap.marks.get((i, j), "")
        colour = "white" if dark else "black"
        axis.text(j, i, text if value == value else "–", ha="center", va="center", fontsize=7, color=colour)


def scale(heatmap: Heatmap) -> tuple[float, float]:
    """The values that colours span: the range of the measure; where it has no upper end, as far as values reach."""
    return colour_range(heatmap.values, heatmap.bounds)


def colour_range(values: np.ndarray, bounds: tuple[float | None, float | None]) -> tuple[float, float]:
    """The range of a measure, so that every picture of it has the same colours; what it lacks comes from the values.

    A range with one end has 0 as its lower end, below which values are as dark as there.

    >>> colour_range(np.array([0.4, 0.5]), (0, 1)), colour_range(np.array([-0.1, 0.5]), (None, 1))
    ((0.0, 1.0), (0.0, 1.0))
    >>> colour_range(np.array([3.0, 5.0]), (0, None)), colour_range(np.array([3.0, 5.0]), (None, None))
    ((0.0, 5.0), (3.0, 5.0))
    """
    first, last = (None if end is None or not np.isfinite(end) else float(end) for end in bounds)
    known = np.asarray(values, dtype=np.float64)
    known = known[np.isfinite(known)]
    if first is None and last is None:
        first = float(known.min()) if known.size else 0.0
    low = 0.0 if first is None else first
    high = float(max([*known.tolist(), low])) if last is None else last
    return low, high if high > low else low + 1.0
