"""When learning passes from surge to refinement to rest.

One simple rule on one curve, smoothed by a running median of three. The *surge* ends at the first epoch
that has climbed 95 % of the way from the start to the top. *Rest* begins at the first epoch from which the
curve stays within 10 % of that climb around its level over the last fifth of the epochs; what lies
between is *refinement*. A climb not four times larger than the curve's own noise is no surge, a top within
the last fifth no end of one, and a curve that comes to rest only within the last fifth has not been
seen resting: in these cases there are no clear phases, or the last one is open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from likewise.errors import InputError

SHORTEST = 8  # epochs; below that nothing can be told


@dataclass(frozen=True)
class Phases:
    """The last epoch of the surge and of the refinement; None where it cannot be told, with the reason."""

    surge_end: int | None
    refinement_end: int | None
    reason: str = ""

    @property
    def clear(self) -> bool:
        """Whether both ends were found."""
        return self.surge_end is not None and self.refinement_end is not None

    def __str__(self) -> str:
        if self.surge_end is None:
            return f"no clear phases: {self.reason}"
        if self.refinement_end is None:
            return f"surge to epoch {self.surge_end}, then {self.reason}"
        return f"surge to epoch {self.surge_end}, refinement to epoch {self.refinement_end}, then rest"


def phases(curve: Sequence[float], epochs: Sequence[int] | None = None) -> Phases:
    """Where the surge and the refinement of a curve end; `epochs` are the numbers of its points.

    >>> rise = [0.0, 0.4, 0.7, 0.9, 1.0, 0.9, 0.8, 0.72, 0.7] + [0.7] * 11
    >>> print(phases(rise))
    surge to epoch 3, refinement to epoch 6, then rest
    """
    values = np.asarray(curve, dtype=float)
    numbers = list(range(len(values))) if epochs is None else [int(e) for e in epochs]
    if values.ndim != 1 or len(numbers) != len(values):
        raise InputError(f"a curve is one number per epoch, got {values.shape} for {len(numbers)} epochs.")
    numbers = [e for e, value in zip(numbers, values, strict=True) if np.isfinite(value)]
    values = values[np.isfinite(values)]
    if len(values) < SHORTEST:
        return Phases(None, None, f"{len(values)} epochs are too few, {SHORTEST} are needed")
    smooth = _median3(values)
    noise = 1.4826 * float(np.median(np.abs(np.diff(values)))) / 2**0.5
    start, top = float(smooth[0]), float(smooth.max())
    climb, tail = top - start, max(2, len(values) // 5)
    if climb <= max(4 * noise, 1e-9):
        return Phases(None, None, "the curve does not climb from where it started")
    surge = int(np.argmax(smooth >= start + 0.95 * climb))
    if surge >= len(values) - tail:
        return Phases(None, None, "the curve was still climbing when the training ended")
    level = float(np.median(smooth[-tail:]))
    restless = np.flatnonzero(np.abs(smooth - level) > 0.1 * climb)
    rest = max(surge, int(restless[-1]) + 1 if len(restless) else 0)
    if rest > len(values) - tail:
        return Phases(numbers[surge], None, "still changing when the training ended")
    return Phases(numbers[surge], numbers[max(surge, rest - 1)])


def _median3(values: np.ndarray) -> np.ndarray:
    padded = np.concatenate([values[:1], values, values[-1:]])
    return np.median(np.stack([padded[:-2], padded[1:-1], padded[2:]]), axis=0)
