"""Which measure should I take? Measures ranked by benchmark results, with what they cost and what they see at n inputs.

It rests on tables that ship with the package: the paper's figures (`paper.csv`), results of our own runs
(`ours.csv`, if any), a simulation of how far measures stand above chance (`power.csv`) and CPU seconds per pair
(`cost.csv`); `scripts/` makes each of them. Every row of advice can be traced to rows of these tables.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.benchmark.groundings import GROUNDINGS
from likewise.benchmark.results.frame import CELL, EVIDENCE, Results, label, main_metrics, package_table
from likewise.benchmark.results.paper import figures
from likewise.benchmark.results.ranks import rank_within
from likewise.errors import InputError, UnknownNameError, did_you_mean, quoted_list

if TYPE_CHECKING:
    import pandas as pd

POWER, COST, OURS = EVIDENCE / "power.csv", EVIDENCE / "cost.csv", EVIDENCE / "ours.csv"
OWN_COLUMNS = (
    *("run", "domain", "data", "network", "preset", "seed", "grounding", "metric", "measure"),
    *("value", "valid"),
)
FACT = ("source", "data", "network", "grounding", "metric")
AVERAGE_CELLS = 3  # added to the cells of every measure when they are ordered
ENOUGH = 0.8  # the least power at which a measure is said to see similarity
UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Fact:
    """One row of a table that advice rests on."""

    source: str
    data: str
    network: str
    grounding: str
    metric: str
    value: float
    rank: float
    of: int

    def __str__(self) -> str:
        value = "undefined" if np.isnan(self.value) else f"{self.value:.2f}"
        where = f"{self.data}, {self.network}, {self.grounding} ({self.metric})"
        return f"{self.source}: {where}: {value}, rank {self.rank:g} of {self.of}"


@dataclass(frozen=True)
class Recommendation:
    """One measure: how often it beats the others, what it gets, what it sees at n inputs and what it costs."""

    measure: str  # its name
    label: str  # the paper's abbreviation, where it has one
    standing: float  # the share of other measures it beats, mean over cells: 1 is best, 0.5 is average
    value: float  # the mean over cells where it is defined
    low: float  # the least value
    high: float  # the largest value
    power: float | None  # share of moderately alike pairs it tells from unrelated ones at n inputs, if simulated
    seconds: float | None  # CPU seconds of one pair, None where not measured
    warnings: tuple[str, ...]  # why it comes last, if it does
    evidence: tuple[Fact, ...]  # the rows this rests on

    @property
    def settled(self) -> float:
        """The standing with a few average cells added, by which measures are ordered: few lucky cells do not win."""
        cells = len(self.evidence)
        return (self.standing * cells + 0.5 * AVERAGE_CELLS) / (cells + AVERAGE_CELLS)


@dataclass(frozen=True)
class Advice:
    """Measures for a question, best first; those that see too little or cost too much come last, with the reason.

    Attributes:
        domain: The domain that was asked about.
        question: The question.
        n: How many inputs there are, None where it was not said.
        d: How many neurons.
        budget: Seconds that a pair may take.
        rows: One recommendation per measure.
        sources: The results it rests on.
    """

    domain: str
    question: str
    n: int | None
    d: int
    budget: float | None
    rows: tuple[Recommendation, ...]
    sources: tuple[str, ...]

    def __str__(self) -> str:
        at = "" if self.n is None else f" at n = {self.n}, d = {self.d}"
        lines = [f"{self.question} in {self.domain}{at}; by {' and '.join(self.sources)}", ""]
        head = ("", "measure", "beats", "cells", "value", "range", "power", "seconds", "")
        body = [
            (
                str(position),
                row.label,
                f"{row.standing:.0%}",
                str(len(row.evidence)),
                _number(row.value),
                f"{_number(row.low)} … {_number(row.high)}",
                _number(row.power),
                "–" if row.seconds is None else f"{row.seconds:.2g}",
                "; ".join(row.warnings),
            )
            for position, row in enumerate(self.rows, 1)
        ]
        widths = [max(len(line[i]) for line in (head, *body)) for i in range(len(head))]
        lines += [
            "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in (head, *body)
        ]
        lines += [
            "",
            "beats: share of the other measures it beats, mean over so many cells; few cells count less in the order.",
            "power: share of moderately alike pairs told from unrelated ones (simulated). seconds: of CPU per pair.",
        ]
        lines += ["", f"The evidence for {self.rows[0].label}:", *(f"  {fact}" for fact in self.rows[0].evidence)]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a program, with all evidence."""
        rows = [
            {key: value for key, value in vars(row).items() if key != "evidence"}
            | {"warnings": list(row.warnings), "evidence": [vars(fact) for fact in row.evidence]}
            for row in self.rows
        ]
        about = {key: getattr(self, key) for key in ("domain", "question", "n", "d", "budget")}
        return _plain({**about, "sources": list(self.sources), "measures": rows})


def advise(
    domain: str,
    question: str,
    *,
    n: int | None = None,
    d: int = 512,
    budget: str | float | None = None,
    top: int | None = None,
) -> Advice:
    """Recommend measures for a question in a domain, best first, with the evidence.

    Args:
        domain: "graph", "language" or "vision".
        question: A grounding ("accuracy", "outputs", "labels", "shortcut", "augmentation", "layers"), or "all".
        n: How many inputs there will be: power and cost are those at that size.
        d: How many neurons there will be.
        budget: CPU seconds for one pair, a number or "10s", "500ms", "2min".
        top: How many measures to give; all by default.

    Raises:
        UnknownNameError: There is no such domain or question.
        InputError: There are no results for the question, or a number is out of range.

    Example:
        >>> [row.standing > 0.5 for row in advise("vision", "shortcut", top=2).rows]
        [True, True]
    """
    if n is not None and n < 2:
        raise InputError(f"n is {n}. Give the number of inputs, 2 or more.")
    if d < 1:
        raise InputError(f"d is {d}. Give the number of neurons, 1 or more.")
    if top is not None and top < 1:
        raise InputError(f"top is {top}. Give 1 or more.")
    if budget is not None and n is None:
        raise InputError("a budget needs the number of inputs. Give n as well.")
    limit = None if budget is None else parse_seconds(budget)
    facts = rank_within(_results_for(domain, question), FACT)
    facts = facts.assign(beats=(facts["of"] - facts["rank"]) / (facts["of"] - 1).clip(lower=1))
    rows = [_recommended(str(name), one, n, d, limit) for name, one in facts.groupby("measure", sort=False)]
    rows.sort(key=lambda row: (len(row.warnings) > 0, -row.settled, row.seconds or 0.0, row.label))
    title = "all groundings" if question == "all" else GROUNDINGS.get(question).title
    sources = tuple(dict.fromkeys("our runs" if one.startswith("our") else "the ReSi paper" for one in facts["source"]))
    return Advice(domain, title, n, d, limit, tuple(rows[:top]), sources)


def parse_seconds(budget: str | float) -> float:
    """Seconds from a number or a text.

    >>> parse_seconds("10s"), parse_seconds("500 ms"), parse_seconds("2min"), parse_seconds(3)
    (10.0, 0.5, 120.0, 3.0)
    """
    match = re.fullmatch(r"\s*(\d+\.?\d*)\s*(ms|s|min|h)?\s*", str(budget))
    if match is None or float(match[1]) <= 0:
        raise InputError(f"the budget is {budget!r}. Give CPU seconds per pair, as in 10s, 500ms or 2min.")
    return float(match[1]) * UNITS[match[2] or "s"]


@cache
def _evidence() -> pd.DataFrame:
    """All results there are, the paper's and ours, each with its source."""
    import pandas as pd

    paper = figures()
    main = [metric in main_metrics(g) for g, metric in zip(paper["grounding"], paper["metric"], strict=True)]
    paper = paper[np.array(main)].assign(source=lambda rows: "ReSi paper, table " + rows["table"].astype(str))
    frames = [paper[["domain", *FACT, "measure", "value"]]]
    if OURS.exists():
        frames.append(_mean_of_runs(our_results().valid().frame))
    return pd.concat(frames, ignore_index=True)


def our_results() -> Results:
    """Results of our own runs, which ship with the package; `run` says of each row from which."""
    return Results(_read(OURS).assign(variant="published", measure_variant="published", ties=None))


def _mean_of_runs(rows: pd.DataFrame) -> pd.DataFrame:
    """The mean over repetitions, with the runs it is from as the source."""
    rows = rows.assign(source=rows.groupby(list(CELL))["run"].transform(_runs), value=rows["value"].astype(float))
    return rows.groupby(["domain", *FACT, "measure"], sort=False)["value"].mean().reset_index()


def _runs(names: pd.Series) -> str:
    unique = list(dict.fromkeys(names))
    return f"our run{'s' * (len(unique) > 1)} {', '.join(unique)}"


@cache
def _read(path: Path) -> pd.DataFrame:
    return package_table(path)


def _results_for(domain: str, question: str) -> pd.DataFrame:
    """The results of one domain by one grounding, or by all."""
    rows = _evidence()
    domains = list(dict.fromkeys(rows["domain"]))
    if domain not in domains:
        hint = did_you_mean(domain, domains) or f" There are {', '.join(domains)}."
        raise UnknownNameError(f"no domain named {domain!r} has results.{hint}")
    rows = rows[rows["domain"] == domain]
    if question == "all":
        return rows
    if question not in GROUNDINGS:
        names = [*GROUNDINGS.names(), "all"]
        hint = did_you_mean(question, names) or f" There are {', '.join(names)}."
        raise UnknownNameError(f"no question named {question!r}.{hint}")
    name = GROUNDINGS.get(question).name
    groundings = list(dict.fromkeys(rows["grounding"]))
    if name not in groundings:
        raise InputError(
            f"there are no results for {name!r} in {domain}, neither in the paper nor of ours. There are "
            f"{quoted_list(groundings)}; or run `likewise benchmark run --domain {domain} --grounding {name}`."
        )
    return rows[rows["grounding"] == name]


def _recommended(name: str, facts: pd.DataFrame, n: int | None, d: int, budget: float | None) -> Recommendation:
    values = facts["value"].dropna()
    power = None if n is None else power_at(name, n, d)
    seconds = None if n is None else seconds_at(name, n, d)
    warnings = []
    if power is not None and power < ENOUGH:
        warnings.append(f"sees too little at n = {n}")
    if budget is not None and seconds is not None and seconds > budget:
        warnings.append("over budget")
    undefined = len(facts) - len(values)
    if undefined > len(facts) / 4:
        warnings.append(f"undefined in {undefined} of {len(facts)} cells")
    columns = [facts[key].tolist() for key in (*FACT, "value", "rank", "of")]
    evidence = tuple(Fact(*fact) for fact in zip(*columns, strict=True))
    standing, value = float(facts["beats"].mean()), float(values.mean())
    ends = (float(values.min()), float(values.max()))
    return Recommendation(name, label(name), standing, value, *ends, power, seconds, tuple(warnings), evidence)


def power_at(measure: str, n: int, d: int = 128) -> float | None:
    """How often a measure tells moderately alike networks from unrelated ones at n inputs, by the stored simulation.

    The simulation has d = 128; what counts is n against d, so n is taken in that proportion where d is larger. Between
    the sizes simulated it is interpolated, beyond the largest it stays. None where the measure was not simulated.
    """
    if not POWER.exists():
        return None
    table = _read(POWER)
    rows = table[table["measure"] == measure].sort_values("n")
    if not len(rows):
        return None
    width = float(rows["d"].iloc[0])
    return float(np.interp(np.log(n * min(1.0, width / d)), np.log(rows["n"].astype(float)), rows["power"]))


def seconds_at(measure: str, n: int, d: int = 128) -> float | None:
    """CPU seconds of one pair at n inputs and d neurons, by the stored model; None where it was not measured."""
    if not COST.exists():
        return None
    table = _read(COST).set_index("measure")
    if measure not in table.index:
        return None
    row: Any = table.loc[measure]
    return float(row["seconds"] * (n / 1000) ** row["by_n"] * (d / 128) ** row["by_d"])


def _number(value: float | None) -> str:
    return "–" if value is None or np.isnan(value) else f"{value:.2f}"


def _plain(value: Any) -> Any:
    """NaN as None, so that it can be written as JSON."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and np.isnan(value) else value
