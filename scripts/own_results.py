"""Write results of our own runs into the package, for advice.

    python scripts/own_results.py RUN...

Kept are the metrics measures are ranked by, in the published form of evaluation and of measures, with the folder of the
run behind every row, so that advice can be traced. What other runs or measures gave before stays.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from likewise.benchmark.results.advice import OURS, OWN_COLUMNS
from likewise.benchmark.results.frame import Results


def rows(folders: list[str]) -> pd.DataFrame:
    """The rows of all runs, with the name of the run."""
    Results.load(*folders)  # refuses the same run twice
    parts = []
    for folder in folders:
        frame = Results.load(folder).form("published").main().only(measure_variant="published").frame
        parts.append(frame.assign(run=Path(folder).name)[list(OWN_COLUMNS)])
    return pd.concat(parts, ignore_index=True)


def merged(rows_of_runs: pd.DataFrame) -> pd.DataFrame:
    """The rows with those that were there before, in the order of runs, questions and measures."""
    same = ["run", "grounding", "measure", "metric"]
    before = pd.read_csv(OURS) if OURS.is_file() else rows_of_runs.iloc[:0]
    both = pd.concat([before, rows_of_runs], ignore_index=True)
    places = {name: {value: at for at, value in enumerate(dict.fromkeys(both[name]))} for name in same}
    kept = both.drop_duplicates(same, keep="last")
    return kept.sort_values(same, key=lambda column: column.map(places[str(column.name)]), kind="stable")


if __name__ == "__main__":
    merged(rows(sys.argv[1:])).to_csv(OURS, index=False, lineterminator="\n", float_format="%.4g")
