"""Write results of our own runs into the package, for advice.

    python scripts/own_results.py RUN...

Kept are the metrics measures are ranked by, in the published form of evaluation and of measures, with the folder of the
run behind every row, so that advice can be traced.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from likewise.benchmark.advice import OURS, OWN_COLUMNS
from likewise.benchmark.results import Results


def rows(folders: list[str]) -> pd.DataFrame:
    """The rows of all runs, with the name of the run."""
    Results.load(*folders)  # refuses the same run twice
    parts = []
    for folder in folders:
        frame = Results.load(folder).form("published").main().only(measure_variant="published").frame
        parts.append(frame.assign(run=Path(folder).name)[list(OWN_COLUMNS)])
    return pd.concat(parts, ignore_index=True)


if __name__ == "__main__":
    rows(sys.argv[1:]).to_csv(OURS, index=False, lineterminator="\n", float_format="%.4g")
