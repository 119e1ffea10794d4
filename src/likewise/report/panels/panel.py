"""What a panel is, what panels are made from, and how numbers are packed for the page.

A matrix of 70 networks takes 13 kB as 16-bit whole numbers with their range, 90 kB as text. Values whose range is so
wide that four digits would suffer are kept as 32-bit floats.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise._base.arrays import Array
from likewise.report.families import ReportNetworks
from likewise.report.grids import ScoreGrid, ViewRanks
from likewise.report.runs import Runs

LARGEST = 65534  # 65535 means undefined
VISIBLE = 5e-4  # a relative error that four digits do not show


@dataclass(frozen=True)
class Material:
    """What panels are made from: all results, the networks in their order, scores by measure, ranks by view."""

    runs: Runs
    networks: ReportNetworks
    scores: list[ScoreGrid]
    views: list[ViewRanks]


@dataclass(frozen=True)
class Finding:
    """A sentence of a report.

    Attributes:
        text: The sentence, with its numbers.
        evidence: How sure it is: a p-value, or an interval beside what chance gives.
        panel: The id of the panel that shows it.
        significant: Whether the evidence supports it: p or q of at most 0.05 after correction, or an interval that
            leaves out what chance gives.
    """

    text: str
    evidence: str
    panel: str
    significant: bool = True


def tested(text: str, evidence: str, panel: str, significant: bool, question: str) -> Finding:
    """A finding that says, where it is not significant, that there is not enough data to answer the question."""
    return Finding(text if significant else f"Not enough data to say {question}: {text}", evidence, panel, significant)


@dataclass(frozen=True)
class Panel:
    """One question of a report: its answer in a line, how to read the charts, their data, and what was found."""

    id: str
    question: str
    answer: str
    help: str
    data: Any
    warnings: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()  # where charts go, by name
    findings: tuple[Finding, ...] = ()
    advice: tuple[Finding, ...] = ()  # what to do next, of what was found


def counted(count: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "view"), counted(3, "view")
    ('1 view', '3 views')
    """
    return f"{count} {noun}{'s' * (count != 1)}"


def pack(values: Any) -> dict[str, Any]:
    """An array as JSON can hold it; what is not finite is undefined.

    >>> pack([[0.0, 1.0], [np.nan, 0.5]])["shape"]
    [2, 2]
    """
    array = np.asarray(values, dtype=np.float64)
    finite = np.isfinite(array)
    low, high = (float(array[finite].min()), float(array[finite].max())) if finite.any() else (0.0, 0.0)
    scaled = (array - low) / (high - low if high > low else 1.0) * LARGEST
    whole = np.where(finite, scaled, LARGEST + 1).round().astype("<u2")
    restored = low + whole[finite] / LARGEST * (high - low)
    error = np.abs(restored - array[finite])
    if np.all(error <= VISIBLE * np.maximum(np.abs(array[finite]), 1e-3 * (high - low))):
        return {"shape": list(array.shape), "low": low, "high": high, "u2": _text(whole)}
    return {"shape": list(array.shape), "f4": _text(np.where(finite, array, np.nan).astype("<f4"))}


def unpack(packed: dict[str, Any]) -> Array:
    """The numbers that `pack` packed.

    >>> unpack(pack([[0.0, 1.0], [np.nan, 0.5]])).round(3).tolist()
    [[0.0, 1.0], [nan, 0.5]]
    """
    if "f4" in packed:
        return np.frombuffer(base64.b64decode(packed["f4"]), "<f4").reshape(packed["shape"]).astype(np.float64)
    whole = np.frombuffer(base64.b64decode(packed["u2"]), "<u2").reshape(packed["shape"])
    values = packed["low"] + whole / LARGEST * (packed["high"] - packed["low"])
    return np.where(whole > LARGEST, np.nan, values)


def _text(array: Array) -> str:
    return base64.b64encode(array.tobytes()).decode()


def rounded(value: Any, digits: int = 4) -> float | None:
    """A number with so many digits, or None where it is undefined.

    >>> rounded(0.123456), rounded(float("nan"))
    (0.1235, None)
    """
    return float(f"{float(value):.{digits}g}") if np.isfinite(float(value)) else None
