"""Which layers of two networks are alike?"""

from __future__ import annotations

import numpy as np

from likewise.errors import LikewiseError
from likewise.matrices.heatmap import colour_range
from likewise.matrices.score import Bounds
from likewise.measures.registry import get
from likewise.report.panels.panel import Material, Panel, pack


def panel(material: Material) -> Panel | None:
    """The matrices of layers."""
    if not material.runs.layers:
        return None
    matrices, answers = [], []
    for matrix in material.runs.layers:
        sign = -1 if matrix.larger_is == "less alike" else 1
        if np.isfinite(matrix.values).any():
            row, column = map(int, np.unravel_index(np.nanargmax(sign * matrix.values), matrix.values.shape))
            answers.append(
                f"The most alike layers of {matrix.a} and {matrix.b} are {matrix.rows[row]} and "
                f"{matrix.columns[column]} ({matrix.measure} {matrix.values[row, column]:.3g})."
            )
        facts = {"a": matrix.a, "b": matrix.b, "rows": list(matrix.rows), "columns": list(matrix.columns)}
        facts |= {"measure": matrix.measure, "larger_is": matrix.larger_is or "more alike"}
        matrices.append(
            {
                **facts,
                "values": pack(matrix.values),
                "scale": list(colour_range(matrix.values, _bounds(matrix.measure))),
            }
        )
    return Panel(
        "layers",
        "Which layers are alike?",
        answers[0] if answers else "No pair of layers has a score.",
        "Layers of the first network upwards, of the second to the right, both starting at the input. A bright "
        "diagonal says that both do the same in the same order; a bright block, that several layers do the same.",
        {"layers": matrices},
        (),
        ("layers",),
    )


def _bounds(measure: str) -> Bounds:
    """The range of a measure; of one of somebody else, nothing is known."""
    try:
        return get(measure).info.bounds
    except LikewiseError:
        return (None, None)
