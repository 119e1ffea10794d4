"""Trials: the views a grounding is evaluated on, and from them to rows of results.

A run makes trials of trained networks, a folder of representations is read as trials, and a sweep evaluates those of a
run anew. One comparison serves all trials whose networks are among those of the largest; scores are kept in a store,
and the rows of a trial in a file of their own as soon as they exist.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise import __version__
from likewise._base.arrays import Array
from likewise._base.files import write_whole
from likewise._base.hashing import digest
from likewise._base.machine import single_threaded
from likewise.benchmark.domains import Stack
from likewise.benchmark.evaluation import Evidence
from likewise.benchmark.groundings import GROUNDINGS, Grounding
from likewise.benchmark.results.frame import COLUMNS, REPETITION, read_table
from likewise.benchmark.validity import VALID, Validity
from likewise.comparison.compare import compare
from likewise.comparison.pairs import outcome
from likewise.comparison.schedule import measure_key
from likewise.errors import InputError
from likewise.matrices.similarity import Comparison
from likewise.measures.function import Measure
from likewise.measures.pair import Pair
from likewise.measures.representation import Representation
from likewise.views import Activations

if TYPE_CHECKING:
    import pandas as pd

TRUTHS = {"accuracy": "accuracy-difference", "jsd": "jsd", "disagreement": "disagreement"}
# Of layers with maps these look at whole maps; all others, which need more rows than columns or would take too long,
# look at positions (as in the reference).
FLAT = {"cka", "distance-correlation", "rsa", "rsm-difference", "magnitude-difference", "concentricity-difference"}
# by kind of grounding, why a measure may not look at outputs
_NO_OUTPUTS = {
    "layers": "which are the same at every layer of a network",
    "predictions": "which are what it would be held against",
}
_FORMAT = 1


@dataclass(frozen=True, eq=False)
class Trial:
    """What one grounding is evaluated on: views with groups or answers, or the layers of several networks."""

    grounding: str
    views: Mapping[str, Activations] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    stacks: Sequence[Stack] = ()
    validity: Validity = VALID

    @property
    def rule(self) -> Grounding:
        """The grounding itself."""
        return GROUNDINGS.get(self.grounding)

    @property
    def networks(self) -> int:
        """How many networks are compared."""
        return len(self.stacks or self.views)

    @property
    def inputs(self) -> int:
        """How many inputs they were shown."""
        views = self.views or self.stacks[0].rows
        return next(iter(views.values())).n

    def check(self) -> None:
        """Refuse what the grounding cannot be evaluated on."""
        layers = len(self.stacks[0].rows) if self.stacks else None
        check(self.rule, self.networks, self.groups, layers)

    def key(self, measures: Sequence[Measure]) -> str:
        """A hash of all that the rows depend on."""
        views = [self.views, *(part for stack in self.stacks for part in (stack.rows, stack.flat, stack.positions))]
        seen = [[name, view.digest] for part in views for name, view in part.items()]
        answers = [view.outputs is not None for view in self.views.values()]
        facts = [_FORMAT, __version__, self.grounding, self.groups, seen, answers]
        return digest([json.dumps([*facts, [[m.key, measure_key(m)] for m in measures]])])


@dataclass(frozen=True)
class Bench:
    """How trials are evaluated: by which measures, with which store, on which engine, and where rows are kept."""

    measures: Sequence[Measure]
    store: Path | None = None
    engine: Any = None
    rows: Path | None = None
    progress: bool = True


def check(rule: Grounding, networks: int, groups: Sequence[str], layers: int | None = None) -> None:
    """Refuse networks that a grounding cannot be evaluated on, before anything is done for nothing."""
    shape = (networks, networks) if layers is None else (networks, layers, layers)
    truths = {name: np.zeros(shape) for name in rule.truths}
    rule.check(Evidence("a measure", "more alike", True, np.zeros(shape), tuple(groups), truths))


def usable(rule: Grounding, measures: Sequence[Measure]) -> list[Measure]:
    """The measures that have something to say: what networks answer is the truth itself, or the same at every layer."""
    able = [m for m in measures if m.info.on == "representation" or rule.kind not in _NO_OUTPUTS]
    if not able:
        raise InputError(
            f"{measures[0].key} looks at {measures[0].info.on}, {_NO_OUTPUTS[rule.kind]}. Leave out the grounding "
            f"{rule.name!r}, or name a measure of representations."
        )
    return able


def evaluate(
    trials: Sequence[Trial], bench: Bench, written: Callable[[pd.DataFrame], object] | None = None
) -> pd.DataFrame:
    """Rows for every trial and measure; `written` is handed all that there are whenever more are there."""
    import pandas as pd

    for trial in trials:  # before anything is compared for nothing
        trial.check()
    found: dict[str, pd.DataFrame] = {}
    for part in _together(trials):
        for trial, rows in _evaluated(part, bench):
            found[trial.grounding] = rows.assign(valid=trial.validity.valid)
            if written is not None:
                written(pd.concat(found.values(), ignore_index=True))
    ordered = [found[trial.grounding] for trial in trials]
    return pd.concat(ordered, ignore_index=True)


def with_settings(rows: pd.DataFrame, settings: Mapping[str, Any]) -> pd.DataFrame:
    """Rows with what they are of, in the columns of every table of results."""
    about = {name: settings[name] for name in REPETITION}
    return rows.assign(**about)[list(COLUMNS)]


def _together(trials: Sequence[Trial]) -> list[list[Trial]]:
    """Trials whose networks are all among those of the first of them; layers come one by one."""
    parts: list[list[Trial]] = []
    for trial in sorted(trials, key=lambda trial: -len(trial.views)):
        digests = {name: view.digest for name, view in trial.views.items()}
        for part in parts if digests else ():
            widest = part[0].views
            if all(name in widest and widest[name].digest == known for name, known in digests.items()):
                part.append(trial)
                break
        else:
            parts.append([trial])
    return parts


def _evaluated(trials: Sequence[Trial], bench: Bench) -> Iterator[tuple[Trial, pd.DataFrame]]:
    """The rows of trials that share a comparison; it is made when the first of them is not there yet."""
    comparison: Comparison | None = None
    for trial in trials:
        measures = usable(trial.rule, bench.measures)
        path = None if bench.rows is None else bench.rows / f"{trial.grounding}-{trial.key(measures)[:16]}.csv"
        if path is not None and path.exists():
            yield trial, _read(path)
            continue
        if comparison is None and not trial.stacks:
            comparison = _compared(trials, bench)
        rows = _rows(trial, measures, comparison, bench)
        if path is not None:
            write_whole(path, _text(rows))
            rows = _read(path)  # as a later run will have them
        yield trial, rows


def _compared(trials: Sequence[Trial], bench: Bench) -> Comparison:
    """One comparison for all: by the measures, and by the answers where a grounding asks for them."""
    wanted: list[Any] = list(bench.measures)
    truths = {name for trial in trials for name in trial.rule.truths}
    wanted += [TRUTHS[name] for name in sorted(truths) if TRUTHS[name] not in {m.key for m in bench.measures}]
    return _compare(trials[0].views, wanted, bench)


def _compare(views: Mapping[str, Activations], measures: Sequence[Any], bench: Bench) -> Comparison:
    how = {"store": bench.store, "engine": bench.engine, "progress": bench.progress}
    return compare(dict(views), list(measures), **how)


def _rows(trial: Trial, measures: Sequence[Measure], comparison: Comparison | None, bench: Bench) -> pd.DataFrame:
    import pandas as pd

    given = _of_layers(trial, measures, bench) if comparison is None else _of_networks(trial, measures, comparison)
    seconds = _seconds(trial, measures)
    rows: list[dict[str, Any]] = []
    for measure, evidence in zip(measures, given, strict=True):
        about = {"grounding": trial.grounding, "measure": measure.name}
        about["measure_variant"] = measure.info.variant or "published"
        counts = {"networks": trial.networks, "n": trial.inputs, "seconds": seconds[measure.key]}
        for quality in trial.rule.evaluate(evidence):
            facts = {name: getattr(quality, name) for name in ("metric", "variant", "value", "chance", "low", "high")}
            rows.append(about | facts | {"p": quality.p, "coverage": quality.coverage, "ties": quality.ties} | counts)
    return pd.DataFrame(rows)


def _of_networks(trial: Trial, measures: Sequence[Measure], comparison: Comparison) -> Iterator[Evidence]:
    names = list(trial.views)
    truths = {name: comparison[TRUTHS[name]].reordered(names).values for name in trial.rule.truths}
    for measure in measures:
        values = comparison[measure.key].reordered(names).values
        yield _evidence(measure, values, trial.groups, truths)


def _evidence(
    measure: Measure, values: Array, groups: Sequence[str] = (), truths: Mapping[str, Array] | None = None
) -> Evidence:
    info = measure.info
    return Evidence(measure.key, info.larger_is, info.symmetric, values, tuple(groups), truths or {})


def _of_layers(trial: Trial, measures: Sequence[Measure], bench: Bench) -> Iterator[Evidence]:
    found = [_layer_values(stack, measures, bench) for stack in trial.stacks]
    for number, measure in enumerate(measures):
        yield _evidence(measure, np.stack([values[number] for values in found]))


def _layer_values(stack: Stack, measures: Sequence[Measure], bench: Bench) -> list[Array]:
    """Per measure the values of all pairs of layers of one network, `(L, L)`.

    Two layers with maps are compared by whole maps or by positions, a layer without maps with averaged ones.
    """
    bench = replace(bench, progress=False)
    names, mapped = list(stack.rows), [name for name in stack.rows if name in stack.flat]
    every = _compare(stack.rows, measures, bench)
    values = [every[m.key].reordered(names).values.copy() for m in measures]
    at = np.ix_([names.index(name) for name in mapped], [names.index(name) for name in mapped])
    sides = (
        (stack.flat, [m for m in measures if m.name in FLAT]),
        (stack.positions, [m for m in measures if m.name not in FLAT]),
    )
    for views, wanted in sides if len(mapped) > 1 else ():
        between = _compare(views, wanted, bench) if wanted else {}
        for number, measure in enumerate(measures):
            if measure.key in between:
                values[number][at] = between[measure.key].reordered(mapped).values
    return values


def _seconds(trial: Trial, measures: Sequence[Measure]) -> dict[str, float]:
    """CPU seconds of each measure for one pair of these views, from nothing."""
    views = list((trial.views or trial.stacks[0].rows).values())[:2]
    found = {}
    with single_threaded():
        for measure in measures:
            start = time.process_time()
            if measure.info.on == "networks":
                found[measure.key] = np.nan
                continue
            outcome(measure, Pair(Representation(views[0]), Representation(views[1])))
            found[measure.key] = round(time.process_time() - start, 4)
    return found


def _text(rows: pd.DataFrame) -> bytes:
    return rows.to_csv(index=False).encode()


def _read(path: Path) -> pd.DataFrame:
    return read_table(path, f"{path} is no table of results: {{reason}}. Remove it, and it is made again.")
