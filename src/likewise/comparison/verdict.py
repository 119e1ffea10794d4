"""What a score says against chance, found by shuffling its inputs when somebody asks.

The null shuffles the inputs of one side; where both views carry labels it shuffles within classes, since
networks trained on the same labels are always more alike than noise. A verdict is two-sided: "more" and "less"
share the 5 % of unrelated pairs that may be misjudged.
"""

from __future__ import annotations

import time
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise._base.threads import one_thread
from likewise.comparison.arguments import as_views
from likewise.comparison.schedule import attempt
from likewise.comparison.significance import null_draws
from likewise.errors import LikewiseError
from likewise.matrices.score import Score, sentence
from likewise.measures.facts import Info, Measure
from likewise.measures.pair import Pair
from likewise.measures.registry import get
from likewise.measures.representation import Representation
from likewise.measures.workspace import Workspace

PERMUTATIONS = 99
SECONDS = 0.2  # what showing a score may take


@dataclass(frozen=True, slots=True)
class Judge:
    """Finds the verdict of a score while its inputs are there, without keeping them alive."""

    inputs: tuple[Any, Any]  # weak references
    measure: Measure
    reduce: Any
    seconds: float  # what the score took

    @classmethod
    def of(cls, inputs: tuple[Any, Any], measure: Measure, reduce: Any, seconds: float) -> Judge:
        return cls((_weak(inputs[0]), _weak(inputs[1])), measure, reduce, seconds)

    def __call__(self, score: Score) -> str:
        """The verdict in a sentence; nothing where it would take long, or the inputs are gone or have changed."""
        started = time.perf_counter()
        pair = self._pair() if self.seconds <= SECONDS else None
        if pair is None:
            return ""
        within = _labels_of(pair)
        null = self._null(pair, within, started + SECONDS, float(score))
        if null is None:
            return ""
        null = null[~np.isnan(null)]
        if not null.size:
            return f"Shuffled inputs give no score at {score.sizes}, so there is nothing to hold it against."
        more, less = two_sided(float(score), null, self.measure.info)
        classes = 0 if within is None else len(np.unique(within))
        return sentence(score, more, less, float(null.mean()), int(null.size), classes)

    def _pair(self) -> Pair | None:
        """The pair, if both inputs are still there."""
        x, y = (reference() for reference in self.inputs)
        if x is None or y is None:
            return None
        views = as_views({"x": x, "y": y}, self.reduce, [self.measure], keep_names=True)
        workspace = Workspace()
        a, b = (Representation(view, workspace) for view in views.values())
        return Pair(a, b)

    def _null(self, pair: Pair, within: Any, until: float, value: float) -> np.ndarray | None:
        """Scores of shuffled inputs; None where time runs out or the inputs were changed meanwhile."""
        scores: list[float] = []
        with one_thread(for_inputs=(pair.a.view, pair.b.view)):
            again = attempt(self.measure, pair)[0]
            if not abs(again - value) <= 1e-9 * max(1.0, abs(value)):
                return None
            for score in null_draws(pair, self.measure, PERMUTATIONS, 0, within):
                scores.append(score)
                if time.perf_counter() > until:
                    return None
        return np.array(scores)


def _weak(values: Any) -> Any:
    try:
        return weakref.ref(values)
    except TypeError:  # lists and tuples cannot be watched
        return _nothing


def _nothing() -> None:
    return None


def two_sided(value: float, null: np.ndarray, info: Info) -> tuple[float, float]:
    """Shares of a null at least as alike and at least as unlike, the score itself counted among them."""
    sign = 1.0 if info.similarity else -1.0
    slack = 1e-9 * max(abs(value), float(np.abs(null).max()))  # rounding is not a difference
    more = 1 + int((sign * null >= sign * value - slack).sum())
    less = 1 + int((sign * null <= sign * value + slack).sum())
    return more / (1 + null.size), less / (1 + null.size)


def call_of(measure: Measure) -> str:
    """What to call for a null; a measure that has no name to look up is the caller's."""
    try:
        known = get(measure.key).name == measure.name
    except LikewiseError:
        known = False
    return f"likewise.compare(x, y, {measure.key!r}, calibrate=True)" if known else "The same call with calibrate=True"


def _labels_of(pair: Pair) -> np.ndarray | None:
    """The labels both views carry, if they do."""
    answers = [rep.view.outputs for rep in (pair.a, pair.b)]
    labels = [each.labels.cpu().numpy() for each in answers if each and each.labels is not None]
    if len(labels) < 2:
        return None
    first, second = labels
    useful = 1 < len(np.unique(first)) < len(first)
    return first if useful and np.array_equal(first, second) else None
