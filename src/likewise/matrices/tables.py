"""Matrices as text and HTML: numbers, marks beside those that need one, and a legend.

† is a score that any network of that width would get; * one that is more alike than chance, with the false
discovery rate over all pairs held at 5 %.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from likewise.matrices.similarity import Comparison, SimilarityMatrix

SATURATED, ALIKE = "†", "*"
LEVEL = 0.05


def mark(matrix: SimilarityMatrix, a: str, b: str) -> str:
    """The marks of one pair."""
    found = SATURATED if (a, b) in matrix.saturated else ""
    if "q" in matrix.extra:
        i, j = matrix.names.index(a), matrix.names.index(b)
        found += ALIKE if float(np.asarray(matrix.extra["q"])[i, j]) <= LEVEL else ""
    return found


def cell(value: float, marks: str = "", digits: str = ".4g") -> str:
    """A number with its marks."""
    return ("NaN" if value != value else f"{value:{digits}}") + marks


def grid(matrix: SimilarityMatrix, digits: str = ".4g") -> pd.DataFrame:
    """The matrix as words, names on both sides."""
    frame = matrix.to_frame().astype(object)
    for i, a in enumerate(matrix.names):
        for j, b in enumerate(matrix.names):
            frame.iat[i, j] = cell(float(matrix.values[i, j]), mark(matrix, a, b), digits)
    return frame


def pairs(comparison: Comparison) -> pd.DataFrame:
    """A row per measure and a column per pair; pairs both ways where a measure is not symmetric."""
    import pandas as pd

    names = next(iter(comparison.values())).names
    both_ways = not all(map(_symmetric, comparison.values()))
    places = [(a, b) for i, a in enumerate(names) for j, b in enumerate(names) if (i != j if both_ways else i < j)]
    sign = " → " if both_ways else " ~ "
    rows = [[cell(matrix[a, b], mark(matrix, a, b)) for a, b in places] for matrix in comparison.values()]
    columns = pd.Index([f"{a}{sign}{b}" for a, b in places], name="pair")
    return pd.DataFrame(rows, index=pd.Index(list(comparison), name="measure"), columns=columns)


def numbers(comparison: Comparison) -> pd.DataFrame:
    """One row per measure and pair, without words; both ways where a measure is not symmetric."""
    import pandas as pd

    parts = []
    for matrix in comparison.values():
        frame = matrix.to_frame(long=True).drop(columns=["larger_is", "reason", "saturated"])
        place = {name: i for i, name in enumerate(matrix.names)}
        first, second = frame.a.map(place), frame.b.map(place)
        parts.append(frame[first < second if _symmetric(matrix) else first != second])
    return pd.concat(parts)


def _symmetric(matrix: SimilarityMatrix) -> bool:
    return np.array_equal(matrix.values, matrix.values.T, equal_nan=True)


def legend(matrices: Iterable[SimilarityMatrix]) -> list[str]:
    """A line for each mark that is in use."""
    matrices = list(matrices)
    reasons = [reason for matrix in matrices for reason in matrix.saturated.values()]
    lines = [f"{SATURATED} saturated: {reasons[0]}"] if reasons else []
    calibrated = [matrix for matrix in matrices if "q" in matrix.extra]
    return lines + ([f"{ALIKE} {_significance(calibrated[0])}"] if calibrated else [])


def _significance(matrix: SimilarityMatrix) -> str:
    q = np.asarray(matrix.extra["q"])
    count = int((~np.isnan(q)).sum())
    count = count // 2 if _symmetric(matrix) else count
    groups = int(matrix.about.get("groups", 0))
    within = f" within {groups} classes" if groups else ""
    shuffles, needed = int(matrix.about.get("permutations", 0)), math.ceil(count / LEVEL) - 1
    return (
        f"more alike than chance: q <= {LEVEL} over {count} pairs, "
        f"from {shuffles} shuffles of the inputs{within}"
        + (f"; one pair alone would need calibrate={needed}" if shuffles < needed else "")
    )


def as_html(title: str, frame: pd.DataFrame, notes: list[str]) -> str:
    """What a notebook shows."""
    shown = frame.to_html(max_rows=20, max_cols=20)
    below = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    return f"<p>{html.escape(title)}</p>{shown}{below}"
