"""How was this report made? Versions, results, what is recorded of measures, and commands to repeat the runs."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np

from likewise import __version__
from likewise.comparison.resuming.unfinished import FOLDER as UNFINISHED
from likewise.report.panels.panel import Material, Panel, counted


def panel(material: Material) -> Panel:
    """What the report was made from."""
    import torch

    runs, matrices = material.runs, {score.label: score.matrix for score in material.scores}
    versions = {"likewise": __version__, "python": platform.python_version(), "torch": torch.__version__}
    facts = []
    for label, matrix in matrices.items():
        about = {
            key: value
            for key, value in matrix.about.items()
            if key not in ("likewise", "untrained", "accuracies", UNFINISHED)
        }
        words = [f"{key} {_word(value)}" for key, value in about.items() if value not in ("", {}, None)]
        facts.append((label, ", ".join(words)))
    others = {str(matrix.about["likewise"]) for matrix in matrices.values() if "likewise" in matrix.about}
    others -= {__version__}
    origin = f", from {counted(len(runs.sources), 'result')}" if runs.sources else ""
    return Panel(
        "provenance",
        "How was this made?",
        f"By likewise {__version__}{origin}.",
        "Every result says which version made it, from how many inputs, with which seed and probe (a hash of the "
        "inputs and their order). The commands repeat the runs.",
        {
            "versions": versions | {"numpy": np.__version__},
            "sources": runs.sources,
            "commands": runs.commands,
            "facts": facts,
        },
        (f"Some results are of another version of likewise: {', '.join(sorted(others))}.",) if others else (),
    )


def _word(value: Any) -> str:
    if isinstance(value, dict):
        return "(" + ", ".join(f"{key} {_word(entry)}" for key, entry in value.items()) + ")"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
