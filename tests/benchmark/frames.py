"""Hand-made results: rows with everything a test does not care about filled in, and folders as runs leave them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from likewise.benchmark.results.frame import COLUMNS, Results

PLAIN: dict[str, Any] = {
    "domain": "graph",
    "data": "cora",
    "network": "gcn",
    "preset": "paper",
    "seed": 0,
    "grounding": "labels",
    "metric": "auprc",
    "variant": "published",
    "measure": "cka",
    "measure_variant": "published",
    "value": 0.5,
    "chance": 1 / 6,
    "low": None,
    "high": None,
    "p": None,
    "coverage": 1.0,
    "ties": None,
    "networks": 15,
    "n": 1000,
    "valid": True,
    "seconds": 0.1,
}


def row(**changes: Any) -> dict[str, Any]:
    assert set(changes) <= set(COLUMNS)
    return PLAIN | changes


def results(rows: Iterable[dict[str, Any]]) -> Results:
    return Results.from_frame(pd.DataFrame(list(rows))[list(COLUMNS)])


def run(folder: Path, rows: Iterable[dict[str, Any]], networks: Iterable[dict[str, Any]] = ()) -> Path:
    """A folder as a run leaves it."""
    folder.mkdir(parents=True)
    pd.DataFrame(list(rows))[list(COLUMNS)].to_csv(folder / "results.csv", index=False)
    if networks := list(networks):
        pd.DataFrame(networks).to_csv(folder / "networks.csv", index=False)
    return folder
