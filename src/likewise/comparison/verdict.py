"""What a score says against chance, as a sentence that names its p and its null.

The null shuffles the inputs of one side; where both views carry labels it shuffles within classes, since
networks trained on the same labels are always more alike than noise. A verdict is two-sided: "more" and "less"
share the 5 % of unrelated pairs that may be misjudged.
"""

from __future__ import annotations

import time
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from likewise.matrices.score import Score
    from likewise.measures import Info, Measure, Pair

LEVEL = 0.05
PERMUTATIONS = 99
SECONDS = 0.2  # what showing a score may take


@dataclass(frozen=True, slots=True)
class Origin:
    """How the pair behind a score can be had again, without keeping it alive."""

    inputs: tuple[Any, Any]  # weak references
    measure: Measure
    reduce: Any
    seconds: float  # what the score took

    @classmethod
    def of(cls, inputs: tuple[Any, Any], measure: Measure, reduce: Any, seconds: float) -> Origin:
        return cls((_weak(inputs[0]), _weak(inputs[1])), measure, reduce, seconds)

    def pair(self) -> Pair | None:
        """The pair, if both inputs are still there."""
        from likewise.comparison.arguments import as_views
        from likewise.measures.pair import Pair
        from likewise.measures.representation import Representation
        from likewise.measures.workspace import Workspace

        x, y = (reference() for reference in self.inputs)
        if x is None or y is None:
            return None
        views = as_views({"x": x, "y": y}, self.reduce, [self.measure], keep_names=True)
        workspace = Workspace()
        a, b = (Representation(view, workspace) for view in views.values())
        return Pair(a, b)


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


def against_chance(score: Score, origin: Origin | None) -> str:
    """The verdict, or the call that gives it where it would take long or the inputs are gone."""
    call = f"{_call(score)} tells it from noise."
    if origin is None or origin.seconds > SECONDS:
        return call
    started = time.perf_counter()
    pair = origin.pair()
    if pair is None:
        return call
    within = _labels_of(pair)
    null = _null(pair, origin.measure, within, started + SECONDS, float(score))
    if null is None:
        return call
    null = null[~np.isnan(null)]
    if not null.size:
        return f"Shuffled inputs give no score at {score.sizes}, so there is nothing to hold it against."
    more, less = two_sided(float(score), null, score.info)
    return sentence(score, more, less, float(null.mean()), int(null.size), _count(within))


def _call(score: Score) -> str:
    """What to call for the verdict; a measure that has no name to look up is the caller's."""
    from likewise.errors import LikewiseError
    from likewise.measures.registry import get

    try:
        known = get(score.measure).name == score.info.name
    except LikewiseError:
        known = False
    return (
        f"likewise.compare(x, y, {score.measure!r}, calibrate=True)" if known else "The same call with calibrate=True"
    )


def _null(pair: Pair, measure: Measure, within: Any, until: float, value: float) -> np.ndarray | None:
    """Scores of shuffled inputs; None where time runs out or the inputs were changed meanwhile."""
    from likewise._base.threads import one_thread
    from likewise.comparison.schedule import attempt
    from likewise.comparison.significance import null_draws

    scores: list[float] = []
    with one_thread(for_inputs=(pair.a.view, pair.b.view)):
        again = attempt(measure, pair)[0]
        if not abs(again - value) <= 1e-9 * max(1.0, abs(value)):
            return None
        for score in null_draws(pair, measure, PERMUTATIONS, 0, within):
            scores.append(score)
            if time.perf_counter() > until:
                return None
    return np.array(scores)


def _labels_of(pair: Pair) -> np.ndarray | None:
    """The labels both views carry, if they do."""
    answers = [rep.view.outputs for rep in (pair.a, pair.b)]
    labels = [each.labels.cpu().numpy() for each in answers if each and each.labels is not None]
    if len(labels) < 2:
        return None
    first, second = labels
    useful = 1 < len(np.unique(first)) < len(first)
    return first if useful and np.array_equal(first, second) else None


def _count(within: np.ndarray | None) -> int:
    return 0 if within is None else len(np.unique(within))


def calibration_sentence(score: Score) -> str:
    """The verdict of a score that carries its calibration."""
    found = score.calibration
    assert found is not None
    return sentence(score, found.p, found.p_less, found.null_mean, found.permutations, found.groups)


def sentence(score: Score, more: float, less: float, null: float, permutations: int, groups: int) -> str:
    """More, less, or as alike as chance, with p, the number of shuffles and what they kept."""
    p = min(1.0, 2 * min(more, less))
    kept = f"the {groups} classes" if groups else ""
    if "confounder=" in score.measure:
        kept = f"{kept} and the confounder" if kept else "the confounder"
    shuffled = f"the inputs{' within classes' * bool(groups)}"
    if "confounder=" in score.measure:
        shuffled = f"what the confounder leaves of {shuffled}"
    how = f"at {score.sizes} (p = {p:.2g} from {permutations} shuffles of {shuffled})."
    gives = "give" if groups else "gives"
    if p > LEVEL:
        return f"{float(score):.2g} is what {f'{kept} alone' if kept else 'noise'} {gives} {how}"
    word = "More" if more < less else "Less"
    chance = f"{kept} alone would make them, which" if kept else "noise, which"
    return f"{word} alike than {chance} {gives} {null:.2g} {how}"
