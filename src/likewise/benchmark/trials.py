"""Trials: the views a grounding is evaluated on, and from them to rows of results.

A run makes trials of trained networks, a folder of representations is read as trials, and a sweep evaluates those of a
run anew. One comparison serves all trials whose networks are among those of the largest; scores are kept in a store,
and the rows of a trial in a file of their own as soon as they exist.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise import __version__
from likewise._base.arrays import Array
from likewise._base.files import write_whole
from likewise._base.hashing import digest
from likewise._base.machine import single_threaded
from likewise._base.names import csv_text
from likewise._base.progress import warn
from likewise.benchmark.domains import LayerViews
from likewise.benchmark.evaluation import Evidence
from likewise.benchmark.groundings import GROUNDINGS, Grounding
from likewise.benchmark.results.frame import COLUMNS, REPETITION, read_table
from likewise.benchmark.validity import VALID, Validity
from likewise.comparison.compare import compare
from likewise.comparison.pairs import outcome
from likewise.comparison.schedule import measure_key
from likewise.errors import DamagedStoreWarning, InputError
from likewise.matrices.similarity import Comparison
from likewise.measures.function import Measure
from likewise.measures.pair import Pair
from likewise.measures.registry import select
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
    "predictions": "which are what it would be compared with",
}
_FORMAT = 1


def select_measures(measures: Any) -> list[Measure]:
    """Measures by name or set; of "all", those of representations whose libraries are installed."""
    selected = select(measures, on=("representation", "outputs"))
    blind = [measure for measure in selected if measure.info.on == "networks"]
    if blind:
        raise InputError(f"{blind[0].key} looks at networks, and a benchmark compares representations. Leave it out.")
    if measures not in ("all", ["all"]):
        return selected
    return [m for m in selected if not m.missing((1000, 64, 64)) and m.info.on == "representation"]


@dataclass(frozen=True, eq=False)
class Trial:
    """What one grounding is evaluated on: views with groups or outputs, or the layers of several networks.

    Attributes:
        grounding: The name of the grounding.
        views: One view per network, by name.
        groups: The group of each network.
        layers: The layers of each network, for the layer test.
        validity: Whether the groups are what they are meant to be.
    """

    grounding: str
    views: Mapping[str, Activations] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    layers: Sequence[LayerViews] = ()
    validity: Validity = VALID

    @property
    def rule(self) -> Grounding:
        """The grounding itself."""
        return GROUNDINGS.get(self.grounding)

    @property
    def networks(self) -> int:
        """How many networks are compared."""
        return len(self.layers or self.views)

    @property
    def first_views(self) -> list[Activations]:
        """The views of networks, or of the layers of the first network."""
        return list((self.views or self.layers[0].rows).values())

    def check(self) -> None:
        """Refuse what the grounding cannot be evaluated on."""
        check(self.rule, self.networks, self.groups, len(self.layers[0].rows) if self.layers else None)

    def key(self, measures: Sequence[Measure]) -> str:
        """A hash of all that the rows depend on.

        Args:
            measures: The measures that are evaluated.
        """
        views = [self.views, *(form for net in self.layers for form in (net.rows, net.flat, net.positions))]
        digests = [[name, view.digest] for by_name in views for name, view in by_name.items()]
        answers = [view.outputs is not None for view in self.views.values()]
        facts = [_FORMAT, __version__, self.grounding, self.groups, digests, answers]
        return digest([json.dumps([*facts, [[m.key, measure_key(m)] for m in measures]])])


def check(rule: Grounding, networks: int, groups: Sequence[str], layers: int | None = None) -> None:
    """Refuse networks that a grounding cannot be evaluated on, before anything is computed."""
    shape = (networks, networks) if layers is None else (networks, layers, layers)
    truths = {name: np.zeros(shape) for name in rule.truths}
    rule.check(Evidence("a measure", "more alike", True, np.zeros(shape), tuple(groups), truths))


def usable(rule: Grounding, measures: Sequence[Measure]) -> list[Measure]:
    """The measures that apply: outputs are what predictions are judged by, and the same at every layer."""
    able = [m for m in measures if m.info.on == "representation" or rule.kind not in _NO_OUTPUTS]
    if not able:
        raise InputError(
            f"{measures[0].key} looks at {measures[0].info.on}, {_NO_OUTPUTS[rule.kind]}. Leave out the grounding "
            f"{rule.name!r}, or name a measure of representations."
        )
    return able


def with_settings(rows: pd.DataFrame, settings: Mapping[str, Any]) -> pd.DataFrame:
    """Rows with the domain, data, network, preset and seed they are of, in the columns of every table of results."""
    return rows.assign(**{name: settings[name] for name in REPETITION})[list(COLUMNS)]


@dataclass(frozen=True)
class Evaluator:
    """How trials are evaluated: by which measures, with which store, on which engine, and where rows are kept."""

    measures: Sequence[Measure]
    store: Path | None = None
    engine: Any = None
    rows: Path | None = None
    progress: bool = True

    def evaluate(self, trials: Sequence[Trial]) -> pd.DataFrame:
        """Rows for every trial and measure, in the order of trials."""
        import pandas as pd

        done = dict(self.evaluate_each(trials))
        return pd.concat([done[trial.grounding] for trial in trials], ignore_index=True)

    def evaluate_each(self, trials: Sequence[Trial]) -> Iterator[tuple[str, pd.DataFrame]]:
        """Each grounding with its rows, as soon as they exist."""
        for trial in trials:
            trial.check()
        for batch in _share_networks(trials):
            comparison: Comparison | None = None
            for trial in batch:
                measures = usable(trial.rule, self.measures)
                path = None if self.rows is None else self.rows / f"{trial.grounding}-{trial.key(measures)[:16]}.csv"
                rows = None if path is None else _stored_rows(path)
                if rows is None:
                    if comparison is None and not trial.layers:
                        comparison = self._compare_all(batch)
                    rows = self._rows(trial, measures, comparison)
                    if path is not None:
                        write_whole(path, csv_text(rows, index=False).encode())
                        rows = _read_rows(path)  # as a later run will read them
                yield trial.grounding, rows.assign(valid=trial.validity.valid)

    def evidence(self, trial: Trial) -> dict[str, Evidence]:
        """What each measure says of a trial, by its name; scores that are in the store are not computed again.

        Args:
            trial: The trial.
        """
        measures = usable(trial.rule, self.measures)
        if trial.layers:
            return dict(zip([m.name for m in measures], self._of_layers(trial, measures), strict=True))
        comparison = self._compare_all([trial])
        return dict(zip([m.name for m in measures], _of_networks(trial, measures, comparison), strict=True))

    def evidence_each(self, trials: Sequence[Trial]) -> Iterator[tuple[Trial, Measure, Evidence]]:
        """The values of each measure on each trial that it applies to."""
        for batch in _share_networks(trials):
            comparison = None if batch[0].layers else self._compare_all(batch)
            for trial in batch:
                blind = trial.rule.kind in _NO_OUTPUTS
                able = [m for m in self.measures if m.info.on == "representation" or not blind]
                evidence = self._evidence_of(trial, able, comparison) if able else ()
                yield from ((trial, *pair) for pair in zip(able, evidence, strict=True))

    def _evidence_of(
        self, trial: Trial, measures: Sequence[Measure], comparison: Comparison | None
    ) -> Iterator[Evidence]:
        if comparison is None:
            return self._of_layers(trial, measures)
        return _of_networks(trial, measures, comparison)

    def _compare_all(self, trials: Sequence[Trial]) -> Comparison:
        """One comparison for all: by the measures, and by outputs where a grounding needs them."""
        truths = sorted({TRUTHS[name] for trial in trials for name in trial.rule.truths})
        keys = {measure.key for measure in self.measures}
        return self._compare(trials[0].views, [*self.measures, *(name for name in truths if name not in keys)])

    def _compare(self, views: Mapping[str, Activations], measures: Sequence[Any]) -> Comparison:
        options = {"store": self.store, "engine": self.engine, "progress": self.progress}
        return compare(dict(views), list(measures), **options)

    def _rows(self, trial: Trial, measures: Sequence[Measure], comparison: Comparison | None) -> pd.DataFrame:
        import pandas as pd

        evidence = self._evidence_of(trial, measures, comparison)
        seconds = pair_seconds(trial, measures)
        rows: list[dict[str, Any]] = []
        for measure, facts in zip(measures, evidence, strict=True):
            names = {"grounding": trial.grounding, "measure": measure.name}
            names["measure_variant"] = measure.info.variant or "published"
            counts = {"networks": trial.networks, "n": trial.first_views[0].n, "seconds": seconds[measure.key]}
            rows += [names | vars(quality) | counts for quality in trial.rule.evaluate(facts)]
        return pd.DataFrame(rows)

    def _of_layers(self, trial: Trial, measures: Sequence[Measure]) -> Iterator[Evidence]:
        by_network = [self._layer_values(layers, measures) for layers in trial.layers]
        for number, measure in enumerate(measures):
            yield _evidence(measure, np.stack([values[number] for values in by_network]))

    def _layer_values(self, layers: LayerViews, measures: Sequence[Measure]) -> list[Array]:
        """Per measure the values of all pairs of layers of one network, `(L, L)`.

        Two layers with maps are compared by whole maps or by positions, a layer without maps with averaged ones.
        """
        silent = replace(self, progress=False)
        names, mapped = list(layers.rows), [name for name in layers.rows if name in layers.flat]
        averaged = silent._compare(layers.rows, measures)
        values = [averaged[measure.key].reordered(names).values.copy() for measure in measures]
        both = np.ix_(*([names.index(name) for name in mapped] for _ in range(2)))
        for views, flat in ((layers.flat, True), (layers.positions, False)) if len(mapped) > 1 else ():
            numbers = [number for number, measure in enumerate(measures) if (measure.name in FLAT) == flat]
            between = silent._compare(views, [measures[number] for number in numbers]) if numbers else {}
            for number in numbers:
                values[number][both] = between[measures[number].key].reordered(mapped).values
        return values


def _read_rows(path: Path) -> pd.DataFrame:
    return read_table(path.parent, path.name, f"{path} is no table of results: {{reason}}.")


def _stored_rows(path: Path) -> pd.DataFrame | None:
    """The rows that an earlier run kept; None where there are none, or where they are damaged."""
    if not os.path.lexists(path):
        return None
    try:
        return _read_rows(path)
    except InputError:
        warn(f"{path} does not match its checksum; its results are computed anew.", DamagedStoreWarning)
        return None


def _share_networks(trials: Sequence[Trial]) -> list[list[Trial]]:
    """Trials whose networks are all among those of the first of them; layers come one by one."""
    batches: list[list[Trial]] = []
    for trial in sorted(trials, key=lambda trial: -len(trial.views)):
        digests = {name: view.digest for name, view in trial.views.items()}
        for batch in batches if digests else ():
            widest = batch[0].views
            if all(name in widest and widest[name].digest == key for name, key in digests.items()):
                batch.append(trial)
                break
        else:
            batches.append([trial])
    return batches


def _of_networks(trial: Trial, measures: Sequence[Measure], comparison: Comparison) -> Iterator[Evidence]:
    names = list(trial.views)
    truths = {name: comparison[TRUTHS[name]].reordered(names).values for name in trial.rule.truths}
    for measure in measures:
        yield _evidence(measure, comparison[measure.key].reordered(names).values, trial.groups, truths)


def _evidence(
    measure: Measure, values: Array, groups: Sequence[str] = (), truths: Mapping[str, Array] | None = None
) -> Evidence:
    info = measure.info
    return Evidence(measure.key, info.larger_is, info.symmetric, values, tuple(groups), truths or {})


def pair_seconds(trial: Trial, measures: Sequence[Measure]) -> dict[str, float]:
    """CPU seconds of each measure for one pair of these views, from nothing."""
    one, two = trial.first_views[:2]
    seconds = {measure.key: np.nan for measure in measures}
    with single_threaded():
        for measure in measures:
            if measure.info.on == "networks":
                continue
            start = time.process_time()
            outcome(measure, Pair(Representation(one), Representation(two)))
            seconds[measure.key] = round(time.process_time() - start, 4)
    return seconds
