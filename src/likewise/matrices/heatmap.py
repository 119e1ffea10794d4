"""Pictures of matrices. Drawn without a display; returned as figures, saved if a path is given."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise._base.files import save_figure
from likewise.matrices.tables import legend, mark

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from likewise.matrices.similarity import Comparison, SimilarityMatrix


def heatmap(matrix: SimilarityMatrix, path: str | Path | None, *, title: str | None = None) -> Figure:
    """One matrix, alike networks side by side, values written in where there is room."""
    from matplotlib.figure import Figure

    size = max(4.0, 0.45 * len(matrix) + 2.6)
    figure = Figure(figsize=(size + 0.8, size), layout="constrained")
    _draw(figure, figure.subplots(), matrix.sorted(), title)
    return saved(figure, path)


def heatmaps(comparison: Comparison, path: str | Path | None) -> Figure:
    """Several matrices, all in the order of the first."""
    from matplotlib.figure import Figure

    matrices = list(comparison.values())
    columns = min(4, math.ceil(math.sqrt(len(matrices))))
    rows = math.ceil(len(matrices) / columns)
    side = max(3.6, 0.45 * len(matrices[0]) + 2.2)
    figure = Figure(figsize=(side * columns * 1.2, side * rows), layout="constrained")
    axes = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    names = matrices[0].order()
    for axis, matrix in zip(axes, matrices, strict=False):
        _draw(figure, axis, matrix.reordered(names), None)
    for axis in axes[len(matrices) :]:
        axis.axis("off")
    return saved(figure, path)


def _draw(figure: Figure, axis: Any, matrix: SimilarityMatrix, title: str | None) -> None:
    values, m = matrix.values, len(matrix)
    colours = "viridis" if matrix.larger_is == "more alike" else "viridis_r"
    low, high = _scale(matrix)
    image = axis.imshow(values, cmap=colours, vmin=low, vmax=high)
    axis.set_facecolor("#dddddd")  # undefined pairs show through
    axis.set_xticks(range(m), matrix.names, rotation=45, ha="right", rotation_mode="anchor")
    axis.set_yticks(range(m), matrix.names)
    axis.tick_params(labelsize=8, length=0)
    axis.set_title(title or f"{matrix.measure}\n(larger is {matrix.larger_is})", fontsize=10)
    figure.colorbar(image, ax=axis, shrink=0.8)
    notes = [textwrap.fill(note, 60) for note in legend([matrix])]
    if notes:
        axis.set_xlabel("\n".join(notes), fontsize=6)
    if m <= 14:
        _write(axis, matrix, image)
    else:
        _cross_out(axis, matrix)


def _cross_out(axis: Any, matrix: SimilarityMatrix) -> None:
    """Crosses on saturated pairs, where there is no room for numbers and their marks."""
    places = [[matrix.names.index(name) for name in pair] for pair in matrix.saturated]
    if places:
        rows, columns = zip(*places, strict=True)
        axis.scatter(columns, rows, marker="x", s=12, linewidths=0.8, c="#d62728")


def _write(axis: Any, matrix: SimilarityMatrix, image: Any) -> None:
    for i in range(len(matrix)):
        for j in range(len(matrix)):
            value = float(matrix.values[i, j])
            red, green, blue = image.cmap(image.norm(value))[:3] if value == value else (1, 1, 1)
            dark = 0.3 * red + 0.6 * green + 0.1 * blue < 0.5
            text = f"{value:.2f}" if abs(value) < 100 else f"{value:.0f}"
            text = text if abs(value) < 1e4 else f"{value:.0e}"
            text += mark(matrix, matrix.names[i], matrix.names[j])
            axis.text(
                j,
                i,
                text if value == value else "–",
                ha="center",
                va="center",
                fontsize=7,
                color="white" if dark else "black",
            )


def _scale(matrix: SimilarityMatrix) -> tuple[float, float]:
    """From the range of the measure where it has one and it is used, else from the values."""
    values = matrix.values[np.isfinite(matrix.values)]
    if not values.size:
        return 0.0, 1.0
    bounds = matrix.info.bounds if matrix.info else (None, None)
    low = float(values.min()) if bounds[0] is None else min(float(bounds[0]), float(values.min()))
    high = float(values.max()) if bounds[1] is None else float(bounds[1])
    if values.max() - values.min() < 0.2 * (high - low):  # differences would not be seen
        low, high = float(values.min()), float(values.max())
    return low, max(high, low + 1e-9)


def saved(figure: Figure, path: str | Path | None) -> Figure:
    """The figure, written if a path is given."""
    if path is not None:
        save_figure(figure, Path(path))
    return figure
