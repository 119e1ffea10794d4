"""A score: a float that says what it means when it is printed."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from likewise.measures import Measure, Pair

LOOKS = 20  # permutations behind a printed verdict
TOO_LARGE = 4000  # inputs above which printing does not measure the null by itself


class Score(float):
    """The value of a measure for two networks.

    It is a float in every computation; printed, it tells its direction, its range, what unrelated networks would
    score (from a few permutations of the inputs of one side), and what follows.
    """

    measure: Measure

    def __new__(cls, value: float, *, measure: Measure, pair: Pair) -> Score:
        made = super().__new__(cls, value)
        made.measure = measure
        made._pair = pair  # type: ignore[attr-defined]
        return made

    def __reduce__(self) -> Any:
        return (float, (float(self),))

    @cached_property
    def null(self) -> np.ndarray | None:
        """Scores with one side's inputs shuffled, or None where that says nothing or takes long."""
        from likewise.trust import null_scores

        pair: Pair = self._pair  # type: ignore[attr-defined]
        if not self.measure.info.paired or pair.n > TOO_LARGE:
            return None
        return null_scores(pair, self.measure, LOOKS, seed=0)

    def __repr__(self) -> str:
        return f"{self.measure.key} = {float(self):.4g}  ({self._meaning()})\n{self.verdict}"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)

    def _meaning(self) -> str:
        from likewise.measures.explain import bounds

        info = self.measure.info
        itself = "" if info.identity is None else f"; {info.identity:g} with itself"
        return f"{bounds(info)}, larger is {info.larger_is}{itself}"

    @property
    def verdict(self) -> str:
        """What the value says against chance, in a sentence."""
        pair: Pair = self._pair  # type: ignore[attr-defined]
        sizes = f"n = {pair.n}, d = {pair.a.d}"
        sizes += f" and {pair.b.d}" if pair.a.d != pair.b.d else ""
        if self.null is None:
            if not self.measure.info.paired:
                return "It does not look at single inputs, so shuffling them gives no null."
            return f"likewise.calibrate(x, y, {self.measure.name!r}) tells it from noise."
        null, value = self.null[~np.isnan(self.null)], float(self)
        if not null.size:
            return (
                f"Shuffled inputs give no score at {sizes}, so there is nothing to hold it against."
            )
        slack = 1e-9 * max(abs(value), np.abs(null).max())  # rounding is not a difference
        above, below = value > null.max() + slack, value < null.min() - slack
        better, worse = (above, below) if self.measure.info.similarity else (below, above)
        if better:
            return f"More alike than noise, which gives {null.mean():.2g} at {sizes}."
        if worse:
            return f"Less alike than noise, which gives {null.mean():.2g} at {sizes}."
        return f"{value:.2g} is what noise gives at {sizes}."
