"""Which measures do best: ranks over all cells of the benchmark like the paper's figure 2, and gains over its measures.

A cell is one data set, network, grounding and metric. Within it measures are ranked by their value, 1 is best, equal
values share the mean of their ranks, and undefined ones share the last ranks, so that failing is never rewarded. With
repetitions, ranks are taken in each and averaged. Left out are cells whose groups are not valid, cells in which fewer
than half of the measures are defined, since they say more of the networks than of the measures, and measures that
some cell lacks, since a rank among 23 is not one among 44.

A gain is taken in places, a place being a data set with a network. Repetitions with other seeds are averaged first:
they are no new place. The interval is Student's over places, since there are few of them; one place has none. In each
grounding every other measure is compared with the one of the paper's 23 that does best on the same places, which
favours the paper's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.benchmark.results.frame import CELL, SETTING, Results, label
from likewise.errors import InputError, quoted_list
from likewise.matrices.heatmap import finish
from likewise.measures.registry import MEASURES, RESI

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

OVERALL, ALL = "overall", "all"


@dataclass(frozen=True, eq=False)
class Ranks:
    """Ranks of measures.

    Attributes:
        frame: One row per cell and measure: domain, data, network, preset, grounding, metric, measure, label, rank, and
            undefined, the share of repetitions in which it is.
        notes: What was left out.
    """

    frame: pd.DataFrame
    notes: tuple[str, ...] = ()

    @property
    def measures(self) -> int:
        """How many measures are ranked."""
        return int(self.frame["measure"].nunique())

    @property
    def domains(self) -> list[str]:
        """The domains there are, and "overall" if there is more than one."""
        return _and_together(self.frame["domain"], OVERALL)

    def of(self, domain: str) -> pd.DataFrame:
        """The ranks of a domain, measures by cells.

        Args:
            domain: Its name, or "overall" for all of them.
        """
        return self._rows(domain).pivot(index="label", columns=list(CELL), values="rank")

    def _rows(self, domain: str) -> pd.DataFrame:
        if domain not in self.domains:
            raise InputError(f"there are no ranks of the domain {domain!r}. There are {quoted_list(self.domains)}.")
        return self.frame if domain == OVERALL else self.frame[self.frame["domain"] == domain]

    def summary(self) -> pd.DataFrame:
        """Per domain and measure, best first: median, mean, the quarters, cells, and in how many it is undefined."""
        import pandas as pd

        summaries = []
        for domain in self.domains:
            by_measure = self._rows(domain).groupby(["label", "measure"], sort=False)
            rank = by_measure["rank"]
            columns = {"median": rank.median(), "mean": rank.mean(), "q1": rank.quantile(0.25)}
            columns |= {"q3": rank.quantile(0.75), "cells": rank.size(), "undefined": by_measure["undefined"].mean()}
            rows = pd.DataFrame(columns).reset_index().sort_values(["median", "mean", "label"], ignore_index=True)
            rows.insert(0, "domain", domain)
            summaries.append(rows)
        return pd.concat(summaries, ignore_index=True)

    def __str__(self) -> str:
        summary = self.summary()
        blocks = []
        for domain in self.domains:
            rows = summary[summary["domain"] == domain]
            text = rows.drop(columns=["domain", "measure"]).to_string(index=False, float_format="%.2f")
            blocks.append(f"{domain}: ranks of {self.measures} measures, 1 is best\n{text}")
        return "\n\n".join([*blocks, "\n".join(self.notes)]).rstrip()

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw the distribution of ranks per domain, each sorted by its median.

        Args:
            path: Where the figure is saved, if given.
        """
        from matplotlib.figure import Figure

        domains, summary = self.domains, self.summary()
        figure = Figure(figsize=(3.1 * len(domains), 1.4 + 0.21 * self.measures), layout="constrained")
        for axis, domain in zip(figure.subplots(1, len(domains), squeeze=False)[0], domains, strict=True):
            ranks = self.of(domain)
            _boxes(axis, ranks, summary[summary["domain"] == domain]["label"].tolist())
            axis.set_title(f"{domain} ({ranks.shape[1]} cells)", fontsize=10)
        words = "rank over cells, 1 is best: from best to worst, the middle half, the median in red"
        figure.supxlabel(fill(words, 40 * len(domains)), fontsize=9)
        return finish(figure, path)


def _boxes(axis: Any, ranks: pd.DataFrame, order: list[str]) -> None:
    """Per measure a line from best to worst rank, a box over the middle half, and the median."""
    ends = ranks.loc[order].quantile([0.0, 0.25, 0.5, 0.75, 1.0], axis=1).to_numpy()
    heights = np.arange(len(order))
    axis.hlines(heights, ends[0], ends[4], color="#555555", linewidth=0.7)
    box = {"height": 0.62, "color": "#9ecae1", "edgecolor": "#555555", "linewidth": 0.5}
    axis.barh(heights, ends[3] - ends[1], left=ends[1], **box)
    axis.vlines(ends[2], heights - 0.31, heights + 0.31, color="#d62728", linewidth=1.8)
    axis.set_yticks(heights, order, fontsize=8)
    axis.set_ylim(len(order) - 0.5, -0.5)
    axis.set_xlim(0, len(order) + 1)
    axis.tick_params(axis="x", labelsize=8)
    axis.grid(axis="x", linewidth=0.3)


def ranks(results: Results, *, variant: str = "published", measure_variant: str | None = None) -> Ranks:
    """Rank the measures in every cell, by the metrics the paper ranks by.

    Args:
        results: Results of one or more runs.
        variant: The form of the evaluation, "published" or "resi".
        measure_variant: The form of the measures, needed only where results hold both forms of a measure.

    Returns:
        The ranks, which print and draw themselves.
    """
    selected = results.form(variant).main().only(measure_variant=measure_variant)
    if not len(selected):
        raise InputError(f"there are no results in the form {variant!r} to rank. Choose another form.")
    if selected.frame.groupby("measure")["measure_variant"].nunique().max() > 1:
        raise InputError("these results hold measures in two forms. Choose measure_variant='published' or 'resi'.")
    valid = selected.valid().frame
    common, rare = _common(valid)
    ranked = rank_within(common, [*CELL, "seed"])
    notes = [
        *_lost_cells(selected.frame, valid, "whose groups are not valid"),
        *([f"Left out: {quoted_list(rare)}, which some cells lack."] if rare else []),
        *_lost_cells(common, ranked, "in which most measures are undefined"),
    ]
    if not len(ranked):
        raise InputError("no cell is left to rank by. " + " ".join(notes))
    ranked = ranked.assign(undefined=ranked["value"].isna().astype(float))
    frame = ranked.groupby([*CELL, "measure"], sort=False)[["rank", "undefined"]].mean().reset_index()
    frame.insert(len(CELL) + 1, "label", [label(name) for name in frame["measure"]])
    return Ranks(frame, tuple(notes))


def rank_within(frame: pd.DataFrame, cell: Sequence[str]) -> pd.DataFrame:
    """The rows with their `rank` among `of` measures of their cell; cells in which most are undefined are left out."""
    defined = frame["value"].notna().groupby([frame[name] for name in cell]).transform("mean")
    frame = frame[defined >= 0.5]
    values = frame.assign(value=frame["value"].fillna(-np.inf)).groupby(list(cell))["value"]
    return frame.assign(rank=values.rank(ascending=False, method="average"), of=values.transform("size"))


def _lost_cells(before: pd.DataFrame, after: pd.DataFrame, why: str) -> list[str]:
    """The note on cells that are left out, if any are."""
    count, left = (len(frame[list(CELL)].drop_duplicates()) for frame in (before, after))
    return [f"Left out: {count - left} of {count} cells, {why}."] if left < count else []


def _common(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The rows of measures that every cell has, and the names of the others."""
    cells = frame.groupby([*CELL, "seed"]).ngroup()
    counts = cells.groupby(frame["measure"]).nunique()
    rare = sorted(counts[counts < cells.nunique()].index)
    return frame[~frame["measure"].isin(rare)], rare


def _and_together(domains: Iterable[str], together: str) -> list[str]:
    """Each domain once, and the name of all together if there is more than one."""
    names = list(dict.fromkeys(domains))
    return [*names, together] if len(names) > 1 else names


def gains(results: Results, *, measure_variant: str = "published") -> pd.DataFrame:
    """Compare measures beyond the paper's 23 with the best of these.

    Cells whose groups are not valid are left out. A measure that is undefined in a place is judged on the others, among
    those of the 23 that are defined there; what has most places comes first.

    Args:
        results: Results of one or more runs.
        measure_variant: The form of the measures, "published" or "resi".

    Returns:
        One row per domain, grounding and measure: its `gain` over the best of the 23 with a 95 % interval. The domain
        `all` holds the places of all domains together. `beats` is true where the whole interval lies above 0, and None
        for one place.

    Raises:
        InputError: No valid cell holds measures in this form.
    """
    import pandas as pd

    selected = results.form("published").main().valid()
    selected = replace(selected, frame=selected.frame[selected.frame["measure_variant"] == measure_variant])
    if not len(selected):
        raise InputError("no valid cell holds measures in this form. Run the benchmark with --measures all.")
    means = selected.means([*SETTING, "grounding"])
    rows: list[dict[str, Any]] = []
    for domain in _and_together(means["domain"], ALL):
        of_domain = means if domain == ALL else means[means["domain"] == domain]
        for grounding, values in of_domain.groupby("grounding", sort=False):
            wide = values.pivot_table(index=list(SETTING), columns="measure", values="value")
            rows += [{"domain": domain, "grounding": grounding, **gain} for gain in _gains(wide)]
    return pd.DataFrame(rows)


def _gains(wide: pd.DataFrame) -> list[dict[str, Any]]:
    """One row per measure that is not the paper's: those of most places first, then those that do best."""
    of_paper = {MEASURES.get(alias).name for alias in RESI}
    rows = []
    for name in [measure for measure in wide if measure not in of_paper]:
        defined = wide[wide[name].notna()]
        paper = defined[[measure for measure in wide if measure in of_paper]].dropna(axis=1)
        if not paper.shape[1]:
            continue
        best = str(paper.mean().idxmax())
        gain = (defined[name] - paper[best]).to_numpy()
        low, high = _interval(gain)
        rows.append(
            {
                "places": len(defined),
                "best of the 23": label(best),
                "its value": float(paper[best].mean()),
                "measure": str(name),
                "value": float(defined[name].mean()),
                "gain": float(gain.mean()),
                "low": low,
                "high": high,
                "beats": None if np.isnan(low) else bool(low > 0),
            }
        )
    return sorted(rows, key=lambda row: (-row["places"], -row["value"]))


def _interval(values: Any) -> tuple[float, float]:
    """The 95 % interval of a mean by Student's distribution; NaN for one value."""
    from scipy import stats

    if len(values) < 2:
        return np.nan, np.nan
    half = float(stats.t.ppf(0.975, len(values) - 1)) * float(values.std(ddof=1)) / len(values) ** 0.5
    return float(values.mean() - half), float(values.mean() + half)
