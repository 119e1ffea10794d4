"""Scores of all pairs: what is to be scored, what has been, and the keys under which a store holds it.

Scores stand in arrays: with many networks, an object per pair would outweigh the views.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from likewise import __version__
from likewise._base.hashing import digest, value_digest
from likewise._base.progress import Progress
from likewise._base.warnings import warn
from likewise.errors import FailedMeasureWarning
from likewise.matrices.similarity import SimilarityMatrix
from likewise.measures.facts import Measure
from likewise.measures.saturation import saturated
from likewise.views import Activations
from likewise.work.store import Store

Item = tuple[int, int, int]  # which measure, of which network, to which


class Outcome(NamedTuple):
    """A score, or NaN and the reason why there is none.

    `final` says that the inputs are the reason. A function that failed may be mended, or what it
    calls, and a worker may be killed by anything: such pairs are not stored, and tried again.
    """

    value: float
    reason: str = ""
    final: bool = True


def score_key(a: Activations, b: Activations, measure: Measure) -> str:
    """What a score depends on: both views' values, the measure, its variant, options and version."""
    return pair_key(_digest(a, measure), _digest(b, measure), measure_key(measure), measure.info.symmetric)


def _digest(view: Activations, measure: Measure) -> str:
    """A hash of what a measure looks at."""
    return view.digest_with_network if measure.info.on == "networks" else view.digest


def pair_key(a: str, b: str, measure: str, symmetric: bool) -> str:
    """The key of a score from the digests of both views and the measure's key."""
    first, second = (b, a) if symmetric and b < a else (a, b)
    return digest([f"{first} {second} {measure}"])


def measure_key(measure: Measure) -> str:
    """A hash of everything about a measure that its scores depend on."""
    options = {name: _plain(value) for name, value in sorted(measure.resolved.items())}
    # a function of the user's goes by what it computes, for want of a version; its name says nothing
    name, code = (measure.name, "") if measure.built_in else ("", value_digest(measure.given))
    facts = [name, measure.info.variant, measure.info.version, options, code]
    return digest([json.dumps(facts, sort_keys=True)])


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return value_digest(value)


class Job:
    """What is to be scored, and what has been: `values[k, i, j]` is measure k of networks i and j."""

    def __init__(self, names: list[str], views: list[Activations], measures: list[Measure]) -> None:
        self.names, self.views, self.measures = names, views, measures
        m = len(views)
        self.values = np.full((len(measures), m, m), np.nan)
        for measure, grid in zip(measures, self.values, strict=True):
            if measure.info.identity is not None:
                np.fill_diagonal(grid, measure.info.identity)
        self.reasons: dict[Item, str] = {}
        self.failed: dict[Item, str] = {}
        self.files: list[tuple[Path, ...]] = []  # of the views, once they are in a store
        self.wanted = np.stack([self._wanted(measure) for measure in measures])

    def _wanted(self, measure: Measure) -> np.ndarray:
        """Ordered pairs to compute; the diagonal too where it is not known beforehand."""
        m = len(self.views)
        pairs = np.triu(np.ones((m, m), dtype=bool), 1)
        if not measure.info.symmetric:
            pairs |= pairs.T
        if measure.info.identity is None or m == 1:
            np.fill_diagonal(pairs, True)
        return pairs

    @property
    def total(self) -> int:
        """How many scores are wanted."""
        return int(self.wanted.sum())

    def record(self, item: Item, result: Outcome) -> None:
        """Write a score, or why it is undefined, into the matrix of its measure."""
        k, i, j = item
        self.values[item] = result.value
        if self.measures[k].info.symmetric:
            self.values[k, j, i] = result.value
        if result.reason:
            self.reasons[item] = result.reason
        if not result.final:
            self.failed[item] = result.reason

    def matrix(self, measure: Measure, about: Mapping[str, Any]) -> SimilarityMatrix:
        """The finished matrix of a measure, with what is known of the networks."""
        k = self.measures.index(measure)
        reasons = {}
        for (which, i, j), reason in self.reasons.items():
            if which == k:
                reasons[self.names[i], self.names[j]] = reason
                if measure.info.symmetric:
                    reasons[self.names[j], self.names[i]] = reason
        return SimilarityMatrix(
            names=self.names,
            values=self.values[k],
            measure=measure.key,
            larger_is=measure.info.larger_is,
            bounds=measure.info.bounds,
            aliases=measure.info.aliases,
            reasons=reasons,
            about={"likewise": __version__, "n": self.views[0].n, **about},
            saturated=self._saturated(measure, k),
        )

    def _saturated(self, measure: Measure, k: int) -> dict[tuple[str, str], str]:
        """Pairs whose score any network of their widths would get, with the reason."""
        found = {}
        for i, j in np.argwhere(~np.isnan(self.values[k])) if measure.saturation else ():
            a, b = self.views[i], self.views[j]
            reason = saturated(measure, float(self.values[k, i, j]), (a.n, a.d, b.d))
            if i != j and reason:
                found[self.names[i], self.names[j]] = reason
        return found

    def undefined_alone(self) -> np.ndarray:
        """Diagonals to look at: a network undefined with every other may be so with itself."""
        m = len(self.views)
        undefined = np.zeros_like(self.wanted)
        for k, measure in enumerate(self.measures):
            if measure.info.identity is not None and m > 1:
                missing = np.isnan(self.values[k]) | np.eye(m, dtype=bool)
                np.fill_diagonal(undefined[k], missing.all(axis=0) & missing.all(axis=1))
        return undefined

    def warn_of_failures(self) -> None:
        """Say once per measure that it failed, and how first."""
        for k, measure in enumerate(self.measures):
            mine = [reason for (which, _, _), reason in self.failed.items() if which == k]
            if mine:
                warn(
                    f"{measure.key} gave no score for {len(mine)} of {int(self.wanted[k].sum())} "
                    f"pairs, and the run went on. The first reason: {mine[0]}",
                    FailedMeasureWarning,
                )


class Ledger:
    """Writes down every score as it comes: in the job, in the store, on the bar."""

    def __init__(self, job: Job, store: Store | None, bar: Progress | None) -> None:
        self.job, self.store, self.bar = job, store, bar
        if store is not None:
            self._keys = [measure_key(measure) for measure in job.measures]

    def _key(self, item: Item) -> str:
        k, i, j = item
        measure = self.job.measures[k]
        a, b = (_digest(self.job.views[at], measure) for at in (i, j))
        return pair_key(a, b, self._keys[k], measure.info.symmetric)

    def take_stored(self, todo: np.ndarray) -> None:
        """Scores that are in the store already; they are no longer to do."""
        if self.store is None:
            return
        open_items = np.argwhere(todo)
        for start in range(0, len(open_items), 5000):
            items = [(int(k), int(i), int(j)) for k, i, j in open_items[start : start + 5000]]
            keys = [self._key(item) for item in items]
            known = self.store.find(keys)
            for item, key in zip(items, keys, strict=True):
                if key in known:
                    self.job.record(item, Outcome(*known[key]))
                    todo[item] = False
                    self._advance()

    def record(self, item: Item, result: Outcome) -> None:
        """Record a score in the job and in the store, and move the bar on."""
        self.job.record(item, result)
        if self.store is not None and result.final:
            k, i, j = item
            key, name = self._key(item), self.job.measures[k].key
            a, b = self.job.views[i].digest, self.job.views[j].digest
            self.store.put(key, result.value, result.reason, name, a, b)
        self._advance()

    def _advance(self) -> None:
        if self.bar is not None:
            self.bar.advance()
