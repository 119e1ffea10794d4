"""Which measures beat those of the paper, by how much, and whether that is more than chance.

A place is a data set with a network. Repetitions with other seeds are averaged first: they are no new place. The
interval is Student's over places, since there are few of them; one place has none. In each grounding any other measure
is held against the one of the paper's 23 that does best on the same places, which favours the paper's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.benchmark.results.frame import Results, label
from likewise.errors import InputError
from likewise.measures.registry import MEASURES, RESI

if TYPE_CHECKING:
    import pandas as pd

ALL = "all"
PLACE = ["domain", "data", "network"]


def gains(results: Results, *, measure_variant: str = "published") -> pd.DataFrame:
    """One row per domain, grounding and measure beyond the paper's 23: its gain over the best of them.

    The domain `all` holds the places of all domains together. `beats` is true where the whole 95 % interval lies above
    0, and None for one place. Cells whose groups are not valid are left out. A measure that is undefined in a place is
    judged on the others, among those of the 23 that are defined there; what has most places comes first.
    """
    frame = results.form("published").main().frame
    return of_frame(frame[frame["measure_variant"] == measure_variant])


def of_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """The same from rows of one form of evaluation and of measures."""
    import pandas as pd

    frame = frame[frame["valid"].isna() | frame["valid"].astype("boolean").fillna(value=True)]
    values = frame.groupby([*PLACE, "grounding", "measure"], sort=False)["value"].mean().reset_index()
    if not len(values):
        raise InputError("no valid cell holds measures in this form. Run the benchmark with --measures all.")
    domains = list(dict.fromkeys(values["domain"]))
    rows: list[dict[str, Any]] = []
    for domain in [*domains, ALL] if len(domains) > 1 else domains:
        part = values if domain == ALL else values[values["domain"] == domain]
        for grounding, cells in part.groupby("grounding", sort=False):
            wide = cells.pivot_table(index=PLACE, columns="measure", values="value")
            rows += [{"domain": domain, "grounding": grounding, **row} for row in _rows(wide)]
    return pd.DataFrame(rows)


def _rows(wide: pd.DataFrame) -> list[dict[str, Any]]:
    """One row per measure that is not the paper's: those of most places first, then those that do best."""
    known = {MEASURES.get(alias).name for alias in RESI}
    found = []
    for name in [measure for measure in wide if measure not in known]:
        there = wide[wide[name].notna()]
        paper = there[[measure for measure in wide if measure in known]].dropna(axis=1)
        if not paper.shape[1]:
            continue
        best = str(paper.mean().idxmax())
        gain = (there[name] - paper[best]).to_numpy()
        low, high = _interval(gain)
        found.append(
            {
                "places": len(there),
                "best of the 23": label(best),
                "its value": float(paper[best].mean()),
                "measure": str(name),
                "value": float(there[name].mean()),
                "gain": float(gain.mean()),
                "low": low,
                "high": high,
                "beats": None if np.isnan(low) else bool(low > 0),
            }
        )
    return sorted(found, key=lambda row: (-row["places"], -row["value"]))


def _interval(values: Any) -> tuple[float, float]:
    """The 95 % interval of a mean by Student's distribution; NaN for one value."""
    from scipy import stats

    if len(values) < 2:
        return np.nan, np.nan
    half = float(stats.t.ppf(0.975, len(values) - 1)) * float(values.std(ddof=1)) / len(values) ** 0.5
    return float(values.mean() - half), float(values.mean() + half)
