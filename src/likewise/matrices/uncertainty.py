"""Scores compared with chance and with intervals, as numbers for a pair or as m x m arrays for many networks.

`comparison` computes them; here they become frames, text and HTML.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from likewise._base.names import visible, visible_frame

if TYPE_CHECKING:
    import pandas as pd

ENOUGH = 10  # shuffles beyond a score from which those of its own pair tell how small p is
SEVERAL = 3  # pairs whose shuffles tell it together; both directions of one pair do not
NO_NULL = "it does not look at single inputs, so shuffling them gives no null."


def pooled_note(permutations: int, pairs: int) -> str:
    """How small p of several pairs were found; nothing where each pair has its own shuffles alone."""
    if permutations < ENOUGH or pairs < SEVERAL:
        return ""
    below = (1 + ENOUGH) / (1 + permutations)
    return f"p below {below:.2g} from the shuffles of all {pairs} pairs, standardised"


class _PairNumbers:
    """Numbers of one pair, or of all pairs of several networks: as a frame, in print and in a notebook."""

    FIELDS: ClassVar[tuple[str, ...]]
    measure: str
    names: tuple[str, ...]
    null: str = ""

    def to_frame(self) -> pd.DataFrame:
        """One row per pair."""
        import pandas as pd

        names = self.names or ("x", "y")
        pairs = [(i, j) for i in range(len(names)) for j in range(len(names)) if i != j] if self.names else [(0, 1)]
        return pd.DataFrame(
            [{"a": names[i], "b": names[j], "measure": self.measure, **self._at(i, j)} for i, j in pairs]
        )

    def _at(self, i: int, j: int) -> dict[str, float]:
        grids = {name: getattr(self, name) for name in self.FIELDS}
        return {name: float(grid[i, j] if isinstance(grid, np.ndarray) else grid) for name, grid in grids.items()}

    def __repr__(self) -> str:
        inside = f"{self.measure!r}, {len(self.names)} networks" if self.names else self._sentence()
        return f"{type(self).__name__}({inside})"

    def __str__(self) -> str:
        if not self.names:
            return self._sentence()
        frame = visible_frame(self.to_frame().drop(columns="measure"))
        text = frame.to_string(index=False, float_format="{:.4g}".format, max_rows=40)
        return "\n".join(filter(None, [visible(repr(self)), text, visible(self.null)]))

    def _repr_html_(self) -> str:
        frame = visible_frame(self.to_frame().drop(columns="measure"))
        table = frame.to_html(index=False, float_format="{:.4g}".format, max_rows=40)
        lines = [f"<p>{html.escape(visible(line))}</p>" for line in (repr(self), self.null) if line]
        return "".join([lines[0], table, *lines[1:]])

    def _sentence(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class Calibration(_PairNumbers):
    """A score compared with its null: floats for a pair, m x m arrays for several networks.

    Attributes:
        measure: The name of the measure, with its variant and options.
        value: The score.
        null_mean: Mean of the scores with one side's inputs shuffled.
        null_quantile: What 95 % of them do not pass: t below.
        calibrated: max(0, (s - t) / (best - t)): 0 is chance, 1 is as alike as can be.
        p: Share of shuffles at least as alike, the score itself counted among them; shuffles whose score is undefined
            are left out. Of several pairs, where fewer than ten of a pair's own shuffles are, the share of the
            shuffles of all pairs, each in standard deviations from the mean of its pair.
        p_less: Share of shuffles at least as unlike: small where networks are less alike than chance.
        q: p corrected for the number of pairs: the false discovery rate of Benjamini and Hochberg.
        names: What the networks are called, empty for a pair.
        permutations: How many shuffles there were: none for a measure that does not look at single inputs.
        groups: How many groups inputs were shuffled within, 0 for all inputs together.
        units: What was shuffled: inputs, or clusters of them.
        null: How small p were found where there are several pairs.
    """

    FIELDS = ("value", "null_mean", "null_quantile", "calibrated", "p", "p_less", "q")

    measure: str
    value: Any
    null_mean: Any
    null_quantile: Any
    calibrated: Any
    p: Any
    p_less: Any
    q: Any
    names: tuple[str, ...] = ()
    permutations: int = 0
    groups: int = 0
    units: str = "inputs"
    null: str = ""

    def _sentence(self) -> str:
        if not self.permutations:
            return f"{self.measure} = {self.value:.4g}; {NO_NULL}"
        within = f" within {self.groups} groups" if self.groups else ""
        noise = f"{self.units} shuffled{within} give" if within or self.units != "inputs" else "noise gives"
        return (
            f"{self.measure} = {self.value:.4g}; {noise} {self.null_mean:.4g} (95 %: "
            f"{self.null_quantile:.4g}); calibrated {self.calibrated:.4g}, p = {self.p:.3g}"
        )


@dataclass(frozen=True, repr=False)
class Interval(_PairNumbers):
    """A score with an interval over inputs: floats for a pair, m x m arrays for several networks.

    Attributes:
        measure: The name of the measure, with its variant and options.
        value: The score.
        low: The lower end; both ends hold the mean score of as many other inputs in `level` of all cases.
        high: The upper end.
        level: The share of cases in which the interval holds that mean.
        names: What the networks are called, empty for a pair.
        reasons: Why the ends of a pair are NaN.
        groups: How many groups of inputs were left out in turn.
        method: How it was computed.
    """

    FIELDS = ("value", "low", "high")

    measure: str
    value: Any
    low: Any
    high: Any
    level: float
    names: tuple[str, ...] = ()
    reasons: Mapping[tuple[str, str], str] = field(default_factory=dict)
    groups: int = 0
    method: str = "jackknife over groups of inputs"

    def _sentence(self) -> str:
        return f"{self.measure} = {self.value:.4g}  [{self.low:.4g}, {self.high:.4g}] at {self.level:.0%}"
