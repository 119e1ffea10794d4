"""Rows of the board: what one measure gets on cached views, as JSON with versions and a checksum.

A cell is one data set, network, grounding and metric. Beside its value stand the values without each network in turn,
from which the board takes intervals. The checksum finds damage, not cheating: whoever keeps a board evaluates a measure
again before adding it, which gives the same numbers.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from likewise import __version__
from likewise._base.files import reading, write_whole
from likewise._base.folders import check_replaceable, read_at
from likewise._base.formats.records import check, parse
from likewise._base.hashing import facts_digest
from likewise._base.names import visible
from likewise.benchmark.board.cached_views import CachedViews
from likewise.benchmark.evaluation import Evidence, auprc, correlation_with, layer_spearman
from likewise.benchmark.results.frame import REPETITION, main_metrics
from likewise.benchmark.trials import Evaluator, Trial, pair_seconds, select_measures
from likewise.errors import InputError
from likewise.measures.facts import INVARIANCES
from likewise.measures.function import Measure
from likewise.measures.registry import get

YARDSTICK = "cka"  # costs are told in times of this measure's, which machines agree about better than about seconds
_FORMAT, _DIGITS = 1, 8
_ROW = {
    **dict.fromkeys(("measure", "submitter", "views", "larger_is", "family", "on", "source", "checksum"), str),
    **{"format": int, "symmetric": bool, "invariant_to": list[str], "versions": dict[str, str]},
    **{"seconds": float, "times_cka": float, "cells": list[dict[str, Any]]},
}
_CELL = {
    **dict.fromkeys((*REPETITION[:-1], "grounding", "metric"), str),
    **{"seed": int, "value": float | None, "coverage": float, "valid": bool | None, "without": dict[str, float | None]},
}


@dataclass(frozen=True)
class Cell:
    """What a measure gets in one place: a data set with a network, a grounding and a metric.

    Attributes:
        domain: The domain.
        data: The data.
        network: The network.
        preset: The preset of the run.
        seed: Its seed.
        grounding: The grounding.
        metric: The metric.
        value: Better if higher, None where it is undefined.
        coverage: The share of pairs on which the measure is defined.
        valid: Whether the groups are what they are meant to be.
        without: The values without each network.
    """

    domain: str
    data: str
    network: str
    preset: str
    seed: int
    grounding: str
    metric: str
    value: float | None
    coverage: float
    valid: bool | None
    without: Mapping[str, float | None]

    @property
    def run(self) -> tuple[Any, ...]:
        """What names the run."""
        return tuple(getattr(self, name) for name in REPETITION)

    @property
    def place(self) -> tuple[Any, ...]:
        """What names the cell."""
        return (*self.run, self.grounding, self.metric)


@dataclass(frozen=True)
class Submission:
    """One measure on cached views.

    Attributes:
        measure: Its name, with its options.
        submitter: Who sent it; empty for the measures of likewise.
        views: The digest of the cached views.
        larger_is: What a larger value says.
        family: The family of the measure.
        on: What it looks at.
        source: The paper.
        symmetric: Whether it gives the same with networks swapped.
        invariant_to: What it ignores, as declared.
        versions: Of likewise, torch, numpy and Python.
        seconds: CPU seconds of a pair of these views.
        times_cka: The same in times of CKA's.
        cells: What it gets.
    """

    measure: str
    submitter: str
    views: str
    larger_is: str
    family: str
    on: str
    source: str
    symmetric: bool
    invariant_to: tuple[str, ...]
    versions: Mapping[str, str]
    seconds: float
    times_cka: float
    cells: tuple[Cell, ...]

    def to_dict(self) -> dict[str, Any]:
        """The row as plain values, with its checksum."""
        row: dict[str, Any] = parse(json.dumps({"format": _FORMAT, **asdict(self)}))
        return {**row, "checksum": facts_digest(row)}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the row as JSON; returns its path.

        Args:
            path: The file.
        """
        return save_rows([self], path)

    def __repr__(self) -> str:
        return f"Submission({self.measure!r}, {len(self.cells)} cells, views={self.views!r})"


def submit(
    measures: Any, views: CachedViews | str | os.PathLike[str], *, submitter: str = "", progress: bool = True
) -> list[Submission]:
    """Evaluate measures on cached views, without training: one row for the board each.

    Args:
        measures: A function of two arrays, larger for networks that are more alike; a registered measure, a name, a
            set like "all", or a list of these.
        views: Cached views, or their file.
        submitter: Who sends them; the board marks their rows.
        progress: Whether progress is shown.

    Returns:
        One row per measure.

    Raises:
        InputError: The file holds no cached views, or no measure applies to any of them.
    """
    cached = views if isinstance(views, CachedViews) else CachedViews.load(views)
    selected = select_measures(measures)
    cells: dict[str, list[Cell]] = {measure.key: [] for measure in selected}
    for settings, trials in _by_run(cached):
        for trial, measure, evidence in Evaluator(selected, progress=progress).evidence_each(trials):
            cells[measure.key] += _cells(settings, trial, evidence)
    seconds = _mean_seconds(cached, selected)
    for key in cells:
        if not cells[key]:
            raise InputError(f"{key} applies to none of these views. Submit a measure of representations.")
    return [_submission(measure, cells[measure.key], seconds, cached.digest, submitter) for measure in selected]


def save_rows(rows: Sequence[Submission], path: str | os.PathLike[str]) -> Path:
    """Write one row, or several below "rows", as JSON; returns the path of the file."""
    check_rows(Path(path))
    content = rows[0].to_dict() if len(rows) == 1 else {"rows": [row.to_dict() for row in rows]}
    write_whole(Path(path), f"{json.dumps(content)}\n".encode())
    return Path(path)


def check_rows(path: Path) -> None:
    """Refuse to replace a file that holds no rows."""
    check_replaceable(path, b'"times_cka"', "row of a board")


def load_rows(path: str | os.PathLike[str]) -> list[Submission]:
    """The rows of a file.

    Args:
        path: A file that `Submission.save` or `likewise benchmark submit` wrote.

    Raises:
        InputError: It holds no rows, or one does not match its checksum.
    """
    sentence = f"{path} holds no row of a board ({{reason}}). Make it by `likewise benchmark submit`."
    with reading(path, sentence):
        content = parse(read_at(path))
        if "rows" in content:
            check(content, {"rows": list[dict[str, Any]]})
        return [_read(row) for row in content.get("rows", [content])]


def _read(row: dict[str, Any]) -> Submission:
    check(row, _ROW)
    if row["format"] != _FORMAT:
        raise ValueError(f"it is of format {row['format']}, and this version reads {_FORMAT}")
    facts = {name: value for name, value in row.items() if name != "checksum"}
    if facts_digest(facts) != row["checksum"]:
        raise ValueError(f"the row of {row['measure']!r} does not match its checksum")
    for cell in row["cells"]:
        check(cell, _CELL)
        if not all(x is None or -1 <= x <= 1 for x in (cell["value"], cell["coverage"], *cell["without"].values())):
            raise ValueError(f"the row of {row['measure']!r} has a value beyond -1 to 1")
    if not set(row["invariant_to"]) <= set(INVARIANCES) or not all(
        math.isfinite(row[name]) and row[name] >= 0 for name in ("seconds", "times_cka")
    ):
        raise ValueError(f"the row of {row['measure']!r} has facts that no measure has")
    names = [name for name in _ROW if name not in ("format", "checksum", "cells")]
    cells = tuple(Cell(**{name: cell[name] for name in _CELL}) for cell in row["cells"])
    submission = Submission(**{name: row[name] for name in names}, cells=cells)
    return replace(submission, invariant_to=tuple(row["invariant_to"]))


def _by_run(cached: CachedViews) -> Iterator[tuple[Mapping[str, Any], list[Trial]]]:
    runs: dict[str, tuple[Mapping[str, Any], list[Trial]]] = {}
    for one in cached.trials:
        runs.setdefault(json.dumps(one.settings), (one.settings, []))[1].append(one.trial)
    return iter(runs.values())


def without(evidence: Evidence, network: int) -> Evidence:
    """The evidence without one network."""
    kept = np.delete(np.arange(len(evidence.values)), network)
    if evidence.values.ndim == 3:
        return replace(evidence, values=evidence.values[kept])
    both = np.ix_(kept, kept)
    groups = tuple(evidence.groups[i] for i in kept) if evidence.groups else ()
    truths = {name: np.asarray(truth)[both] for name, truth in evidence.truths.items()}
    return replace(evidence, values=evidence.values[both], groups=groups, truths=truths)


def _metrics(trial: Trial) -> dict[str, Callable[[Evidence], float]]:
    """The value of each metric that measures are ranked by."""
    rule = trial.rule
    if rule.kind == "groups":
        return {"auprc": lambda evidence: auprc(evidence).value}
    if rule.kind == "layers":
        return {"spearman": lambda evidence: layer_spearman(evidence).value}
    names = {"spearman" if len(rule.truths) == 1 else f"spearman_{truth}": truth for truth in rule.truths}
    return {metric: partial(correlation_with, truth=truth) for metric, truth in names.items()}


def _cells(settings: Mapping[str, Any], trial: Trial, evidence: Evidence) -> Iterator[Cell]:
    names = list(trial.views) or [f"layers of network {number + 1}" for number in range(trial.networks)]
    fewer = {name: without(evidence, number) for number, name in enumerate(names)}
    rows, columns = evidence.pairs
    coverage = float(np.mean(~np.isnan(evidence.values[..., rows, columns])))
    facts = {name: settings[name] for name in REPETITION} | {"grounding": trial.grounding}
    for metric, value in _metrics(trial).items():
        if metric in main_metrics(trial.grounding):
            values = {name: _rounded(value(one)) for name, one in fewer.items()}
            yield Cell(
                **facts,
                metric=metric,
                value=_rounded(value(evidence)),
                coverage=round(coverage, _DIGITS),
                valid=trial.validity.valid,
                without=values,
            )


def _rounded(value: float) -> float | None:
    return None if math.isnan(value) else round(float(value), _DIGITS)


def _mean_seconds(cached: CachedViews, measures: Sequence[Measure]) -> dict[str, float]:
    """CPU seconds of a pair by measure and of the yardstick, over the first grounding of each run."""
    timed = {measure.key: measure for measure in [*measures, get(YARDSTICK)]}
    runs = [pair_seconds(trials[0], list(timed.values())) for _, trials in _by_run(cached)]
    return {key: float(np.mean([run[key] for run in runs])) for key in timed}


def _submission(
    measure: Measure, cells: Sequence[Cell], seconds: Mapping[str, float], views: str, submitter: str
) -> Submission:
    info = measure.info
    versions = {"likewise": __version__, "torch": torch.__version__, "numpy": np.__version__}
    return Submission(
        measure=measure.key,
        submitter=visible(submitter),
        views=views,
        larger_is=info.larger_is,
        family=info.family,
        on=info.on,
        source=info.source,
        symmetric=info.symmetric,
        invariant_to=tuple(name for name in INVARIANCES if name in info.invariant_to),
        versions=versions | {"python": platform.python_version()},
        seconds=round(seconds[measure.key], 6),
        times_cka=round(seconds[measure.key] / max(seconds[get(YARDSTICK).key], 1e-4), 2),
        cells=tuple(cells),
    )
