"""Write the figures of the ReSi paper's tables into the package, one row per column of a table.

    python scripts/paper_figures.py FIGURES.csv

FIGURES.csv has one row per printed figure: domain, test, dataset, architecture, metric, measure, value. They are
figures printed in Klabunde et al., "ReSi: A Comprehensive Benchmark for Representational Similarity Measures",
tables 7 to 19, and are kept as printed: rates of violation are turned round, and what is missing is filled in, when
they are loaded (`likewise.benchmark.results.paper`).
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from likewise.benchmark.results.paper import FILE, TABLES

GROUNDINGS = {"label": "labels", "output": "outputs", "layer": "layers"}
METRICS = ["spearman", "spearman_jsd", "spearman_disagreement", "auprc", "conformity", "violation"]


def wide(figures: pd.DataFrame) -> pd.DataFrame:
    """One row per table, data, network and metric; one column per measure, as printed."""
    grounding = figures["test"].replace(GROUNDINGS)
    places = zip(figures["domain"], grounding, strict=True)
    named = figures.assign(grounding=grounding, table=[TABLES[cell] for cell in places]).rename(
        columns={"dataset": "data", "architecture": "network"}
    )
    keys = ["table", "domain", "grounding", "metric", "data", "network"]
    table = named.pivot(index=keys, columns="measure", values="value")
    order = sorted(table.index, key=lambda row: (row[0], list(TABLES).index((row[1], row[2])), METRICS.index(row[3])))
    return table.loc[order].reset_index()


if __name__ == "__main__":
    figures = pd.read_csv(Path(sys.argv[1]), dtype=str, keep_default_na=False)
    wide(figures).to_csv(FILE, index=False, lineterminator="\n")
