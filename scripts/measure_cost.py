"""Write what a pair costs by each measure into the package, from the benchmark of growth.

    python scripts/measure_cost.py

`perf/results/growth.csv` holds CPU seconds of a pair by n at d = 128 and by d at n = 1000. The model is a power
of each: seconds(n, d) = seconds(1000, 128) * (n / 1000)^by_n * (d / 128)^by_d.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from likewise.benchmark.results.frame import EVIDENCE

GROWTH = Path(__file__).parent.parent / "perf" / "results" / "growth.csv"


def model(growth: pd.DataFrame) -> pd.DataFrame:
    """Seconds at n = 1000 and d = 128 with both exponents; a cost never falls with more inputs."""
    by_n, by_d = (growth[growth["in"] == axis].set_index("what") for axis in ("n", "d"))
    middle = by_n["cpu_seconds"].str.split().str[1].astype(float)
    frame = pd.DataFrame({"seconds": middle, "by_n": by_n["exponent"].clip(0), "by_d": by_d["exponent"].clip(0)})
    return frame.loc[by_n.index].rename_axis("measure").round(5).reset_index()


if __name__ == "__main__":
    model(pd.read_csv(GROWTH)).to_csv(EVIDENCE / "cost.csv", index=False, lineterminator="\n")
