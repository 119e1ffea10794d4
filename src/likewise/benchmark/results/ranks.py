"""Ranks of measures over all cells of the benchmark, like the paper's figure 2: 1 is best.

A cell is one data set, network, grounding and metric. Within it measures are ranked by their value, equal values
share the mean of their ranks, and what is undefined shares the last ones, so that failing is never rewarded. With
repetitions, ranks are taken in each and averaged. Left out are cells whose groups are not valid, cells in which fewer
than half of the measures are defined, since they say more of the networks than of the measures, and measures that
some cell lacks, since a rank among 23 is not one among 44.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.benchmark.results.frame import CELL, Results, label
from likewise.errors import InputError, quoted_list
from likewise.matrices.heatmap import finish

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

OVERALL = "overall"
RANKED = (*CELL, "preset", "grounding", "metric")


@dataclass(frozen=True, eq=False)
class Ranks:
    """Ranks of measures: `frame` has one row per cell and measure, `notes` say what was left out.

    frame columns: domain, data, network, preset, grounding, metric, measure, label, rank, undefined (the share of
    repetitions in which it is)
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
        found = list(dict.fromkeys(self.frame["domain"]))
        return [*found, OVERALL] if len(found) > 1 else found

    def of(self, domain: str) -> pd.DataFrame:
        """Measures by cells: the ranks of a domain, or of all with "overall"."""
        if domain not in self.domains:
            raise InputError(f"there are no ranks of the domain {domain!r}. There are {quoted_list(self.domains)}.")
        rows = self.frame if domain == OVERALL else self.frame[self.frame["domain"] == domain]
        return rows.pivot(index="label", columns=list(RANKED), values="rank")

    def summary(self) -> pd.DataFrame:
        """Per domain and measure, best first: median, mean, the quarters, cells, and in how many it is undefined."""
        return self._summary.copy()

    @cached_property
    def _summary(self) -> pd.DataFrame:
        import pandas as pd

        parts = []
        for domain in self.domains:
            rows = self.frame if domain == OVERALL else self.frame[self.frame["domain"] == domain]
            found = rows.groupby(["label", "measure"], sort=False)["rank"]
            one = pd.DataFrame({"median": found.median(), "mean": found.mean()})
            one["q1"], one["q3"] = found.quantile(0.25), found.quantile(0.75)
            one["cells"] = found.size()
            one["undefined"] = rows.groupby(["label", "measure"], sort=False)["undefined"].mean()
            one = one.reset_index().sort_values(["median", "mean", "label"]).reset_index(drop=True)
            one.insert(0, "domain", domain)
            parts.append(one)
        return pd.concat(parts, ignore_index=True)

    def __str__(self) -> str:
        summary = self.summary()
        blocks = []
        for domain in self.domains:
            rows = summary[summary["domain"] == domain]
            text = rows.drop(columns=["domain", "measure"]).to_string(index=False, float_format="%.2f")
            blocks.append(f"{domain}: ranks of {self.measures} measures, 1 is best\n{text}")
        return "\n\n".join([*blocks, "\n".join(self.notes)]).rstrip()

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """The distribution of ranks per domain, each sorted by its median; saved if a path is given."""
        from matplotlib.figure import Figure

        domains = self.domains
        height = 1.4 + 0.21 * self.measures
        figure = Figure(figsize=(3.1 * len(domains), height), layout="constrained")
        axes = figure.subplots(1, len(domains), squeeze=False)[0]
        summary = self.summary()
        for axis, domain in zip(axes, domains, strict=True):
            order = summary[summary["domain"] == domain]["label"].tolist()
            _boxes(axis, self.of(domain), order)
            cells = int(self.of(domain).shape[1])
            axis.set_title(f"{domain} ({cells} cells)", fontsize=10)
        words = "rank over cells, 1 is best: from best to worst, the middle half, the median in red"
        figure.supxlabel(fill(words, 40 * len(domains)), fontsize=9)
        return finish(figure, path)


def _boxes(axis: Any, ranks: pd.DataFrame, order: list[str]) -> None:
    """Per measure a line from best to worst rank, a box over the middle half, and the median."""
    ends = ranks.loc[order].quantile([0.0, 0.25, 0.5, 0.75, 1.0], axis=1).to_numpy()
    places = np.arange(len(order))
    axis.hlines(places, ends[0], ends[4], color="#555555", linewidth=0.7)
    axis.barh(places, ends[3] - ends[1], left=ends[1], height=0.62, color="#9ecae1", edgecolor="#555555", linewidth=0.5)
    axis.vlines(ends[2], places - 0.31, places + 0.31, color="#d62728", linewidth=1.8)
    axis.set_yticks(places, order, fontsize=8)
    axis.set_ylim(len(order) - 0.5, -0.5)
    axis.set_xlim(0, len(order) + 1)
    axis.tick_params(axis="x", labelsize=8)
    axis.grid(axis="x", linewidth=0.3)


def ranks(results: Results, *, variant: str = "published", measure_variant: str | None = None) -> Ranks:
    """Rank the measures in every cell, by the metrics the paper ranks by.

    `variant` is the form of the evaluation and `measure_variant` that of the measures, needed only where results hold
    both forms of a measure.
    """
    frame = results.form(variant).main().only(measure_variant=measure_variant).frame
    if not len(frame):
        raise InputError(f"there are no results in the form {variant!r} to rank. Choose another form.")
    if frame.groupby("measure")["measure_variant"].nunique().max() > 1:
        raise InputError("these results hold measures in two forms. Choose measure_variant='published' or 'resi'.")
    notes: list[str] = []
    frame = _valid(frame, notes)
    frame = _common(frame, notes)
    frame = _mostly_defined(frame, notes)
    if not len(frame):
        raise InputError("no cell is left to rank by. " + " ".join(notes))
    once = [*RANKED, "seed"]
    worst = frame.assign(value=frame["value"].fillna(-np.inf))
    frame = frame.assign(
        rank=worst.groupby(once)["value"].rank(ascending=False, method="average"),
        undefined=frame["value"].isna().astype(float),
    )
    found = frame.groupby([*RANKED, "measure"], sort=False)[["rank", "undefined"]].mean().reset_index()
    found.insert(len(RANKED) + 1, "label", [label(name) for name in found["measure"]])
    return Ranks(found, tuple(notes))


def _cells(frame: pd.DataFrame) -> int:
    return len(frame[list(RANKED)].drop_duplicates())


def _valid(frame: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    kept = frame[frame["valid"].ne(False)]
    lost = _cells(frame) - _cells(kept)
    if lost:
        notes.append(f"Left out: {lost} of {_cells(frame)} cells, whose groups are not valid.")
    return kept


def _common(frame: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    once = frame.groupby("measure").apply(lambda rows: len(rows[[*RANKED, "seed"]].drop_duplicates()))
    whole = len(frame[[*RANKED, "seed"]].drop_duplicates())
    lost = sorted(once[once < whole].index)
    if lost:
        notes.append(f"Left out: {quoted_list(lost)}, which some cells lack.")
    return frame[~frame["measure"].isin(lost)]


def _mostly_defined(frame: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    share = frame["value"].notna().groupby([frame[name] for name in (*RANKED, "seed")]).transform("mean")
    kept = frame[share >= 0.5]
    lost = _cells(frame) - _cells(kept)
    if lost:
        notes.append(f"Left out: {lost} of {_cells(frame)} cells, in which most measures are undefined.")
    return kept
