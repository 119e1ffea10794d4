"""Phases of learning on one curve of class similarity, of two kinds.

A network that learns shows a *surge*, a *refinement* and *rest*; one that learns badly (a far too high learning rate) a
*drop* and slow *growth*. All is read off the curve, smoothed by a running median of three.

The surge ends at the first epoch that has climbed 95 % of the way from the start to the top. Rest begins at the first
epoch from which the curve stays within 10 % of that climb around its level over the last fifth of the epochs, and has
to last ten epochs and a fifth of the record; what lies between is refinement. A curve that falls by a quarter of its
range and grows again by as much shows the other kind where that growth is slow (95 % of it takes ten epochs and a fifth
of the record); where it is quick, as in the first epochs, the surge is looked for after the fall. A fallen curve that
has begun to grow again does not rest.

Fewer than twenty epochs are too short a record, a climb not four times larger than the curve's own noise is no surge,
and a top within the last fifth no end of one. Until rest or slow growth is seen, nobody can tell which kind it will be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from likewise.errors import InputError, brief

SHORTEST = 20  # epochs; of fewer, nothing can be told yet
REST = 10  # epochs that rest, or growth after a drop, has to last
REGROWN = 0.25  # of a curve's range: fallen and grown again by so much, it is of the other kind
UNSURE = "cannot tell yet: "


@dataclass(frozen=True)
class Phases:
    """The phases of a curve, and since when their kind is certain.

    Attributes:
        surge_end: The last epoch of the surge; None where none is seen.
        refinement_end: The last epoch of the refinement, after which the curve rests; None where it does not.
        reason: Why the kind is not told.
        drop_end: The last epoch of the drop that slow growth follows; None where there is none.
        certain_from: The first epoch from which on the kind was told, and did not change any more; None where it
            cannot be told.
    """

    surge_end: int | None
    refinement_end: int | None
    reason: str = ""
    drop_end: int | None = None
    certain_from: int | None = None

    @property
    def kind(self) -> str | None:
        """Either "refinement" (surge, refinement, rest) or "growth" (drop, slow growth); None where it is not told."""
        if self.drop_end is not None:
            return "growth"
        return None if self.refinement_end is None else "refinement"

    @property
    def clear(self) -> bool:
        """Whether the curve surged, was refined, and rests."""
        return self.kind == "refinement"

    def __str__(self) -> str:
        certain = "" if self.certain_from is None else f" (certain from epoch {self.certain_from})"
        if self.drop_end is not None:
            return f"drop to epoch {self.drop_end}, then slow growth{certain}"
        if self.surge_end is None or self.refinement_end is None:
            return self.reason
        refined = self.refinement_end > self.surge_end
        middle = f"refinement to epoch {self.refinement_end}, " * refined
        return f"surge to epoch {self.surge_end}, {middle}then rest{certain}"


def phases(curve: Sequence[float], epochs: Sequence[int] | None = None) -> Phases:
    """The phases of a curve, and the first epoch from which on their kind was certain.

    Args:
        curve: One number per epoch; what is not finite is left out.
        epochs: The numbers of the epochs; by default from 0.

    Example:
        >>> rise = [0.0, 0.4, 0.7, 0.9, 1.0, 0.9, 0.8, 0.72, 0.7] + [0.7] * 11
        >>> print(phases(rise))
        surge to epoch 3, refinement to epoch 6, then rest (certain from epoch 19)
    """
    values, numbers = _recorded(curve, epochs)
    found = at_the_end(values, numbers)
    if found.kind is None:
        return found
    first = len(values)
    while first > SHORTEST and at_the_end(values[: first - 1], numbers).kind == found.kind:
        first -= 1
    return replace(found, certain_from=numbers[first - 1])


def surge_end(curve: Sequence[float], epochs: Sequence[int] | None = None) -> int | None:
    """The last epoch of the surge as far as it can be told from this record; None where none is seen to have ended.

    Args:
        curve: One number per epoch.
        epochs: The numbers of the epochs.
    """
    return at_the_end(*_recorded(curve, epochs)).surge_end


def _recorded(curve: Sequence[float], epochs: Sequence[int] | None) -> tuple[np.ndarray, list[int]]:
    """The finite values, and the numbers of their epochs."""
    try:
        values = np.asarray(curve, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"a curve is one number per epoch, got {brief(curve)}.") from None
    try:
        numbers = list(range(len(values))) if epochs is None else [int(e) for e in epochs]
    except (TypeError, ValueError):
        raise InputError(f"epochs are {brief(epochs)}. Give whole numbers.") from None
    if values.ndim != 1 or len(numbers) != len(values):
        raise InputError(f"a curve is one number per epoch, got {values.shape} for {len(numbers)} epochs.")
    numbers = [e for e, value in zip(numbers, values, strict=True) if np.isfinite(value)]
    if any(later <= earlier for earlier, later in pairwise(numbers)):
        raise InputError(f"epochs are {brief(numbers)}. Give them in rising order, each once.")
    return values[np.isfinite(values)], numbers


def at_the_end(values: np.ndarray, numbers: Sequence[int]) -> Phases:
    """The phases of a curve without holes, by all of its record."""
    if len(values) < SHORTEST:
        return Phases(None, None, f"{UNSURE}{len(values)} epochs are recorded, {SHORTEST} are needed")
    smooth, noise = _median3(values), 1.4826 * float(np.median(np.abs(np.diff(values)))) / 2**0.5
    tail = max(2, len(values) // 5)
    needed, level = max(tail, REST), float(np.median(smooth[-tail:]))
    turn = _turn(smooth, level, max(4 * noise, REGROWN * float(np.ptp(smooth)), 1e-9))
    if turn is not None and _is_slow(smooth[turn:], level, needed):
        return Phases(None, None, drop_end=numbers[turn])
    begin = turn or 0
    start, top = float(smooth[begin]), float(smooth[begin:].max())
    climb = top - start
    if climb <= max(4 * noise, 1e-9):
        return Phases(None, None, "no clear phases: the curve does not climb from where it started")
    surge = begin + int(np.argmax(smooth[begin:] >= start + 0.95 * climb))
    if surge >= len(values) - tail:
        return Phases(None, None, f"{UNSURE}the curve was still climbing when the record ended")
    restless = np.flatnonzero(np.abs(smooth - level) > 0.1 * climb)
    rest = max(surge, int(restless[-1]) + 1 if len(restless) else 0)
    over = f"{UNSURE}surge to epoch {numbers[surge]}, then"
    if rest > len(values) - needed:
        return Phases(numbers[surge], None, f"{over} not {needed} epochs of rest yet")
    if top - level > REGROWN * climb and _grows(values[rest:], climb):
        return Phases(numbers[surge], None, f"{over} a fall, after which the curve has begun to grow again")
    return Phases(numbers[surge], numbers[max(surge, rest - 1)])


def _turn(smooth: np.ndarray, level: float, least: float) -> int | None:
    """The lowest epoch of a curve that falls by `least` before it and ends above it by as much; None without one."""
    fallen = np.maximum.accumulate(smooth) - smooth
    turns = np.flatnonzero((fallen > least) & (level - smooth > least))
    return int(turns[smooth[turns].argmin()]) if len(turns) else None


def _is_slow(regrown: np.ndarray, level: float, needed: int) -> bool:
    """Whether 95 % of the growth from the first value to the level takes more than so many epochs."""
    return int(np.argmax(regrown >= regrown[0] + 0.95 * (level - regrown[0]))) > needed


def _grows(rest: np.ndarray, climb: float) -> bool:
    """Whether the last third of what looks like rest lies above an earlier one, by more than its noise explains.

    The noise is that of second differences, which a steady slope does not have.
    """
    noise = 1.4826 * float(np.median(np.abs(np.diff(rest, 2)))) / 6**0.5
    third = len(rest) // 3
    first, middle, last = (float(np.median(part)) for part in (rest[:third], rest[third:-third], rest[-third:]))
    return last - min(first, middle) > max(6 * noise / third**0.5, 0.005 * climb)


def _median3(values: np.ndarray) -> np.ndarray:
    padded = np.concatenate([values[:1], values, values[-1:]])
    return np.median(np.stack([padded[:-2], padded[1:-1], padded[2:]]), axis=0)
