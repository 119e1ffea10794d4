"""From the matrices of an epoch to one flat dictionary with stable names, and from its curves to phases of learning.

Every number is an `Index`, declared in `indices`. What it needs (a matrix, the reference, a count) decides
whether it is reported; those of mistakes are reported for every split, a plain name for the test split,
with the ending "_train" or "_adversarial" for the others.

Phases follow from one rule on one curve, smoothed by a running median of three. The *surge* ends at the first epoch
that has climbed 95 % of the way from the start to the top. *Rest* begins at the first epoch from which the
curve stays within 10 % of that climb around its level over the last fifth of the epochs, and has to last
ten epochs; what lies between is *refinement*. Fewer than twenty epochs are too short a record. A climb not four times
larger than the curve's own noise is no surge, and a top within the last fifth no end of one. A curve that falls
by a quarter of its range and grows as much again shows another course, that of networks that learn badly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from likewise._base.registry import Registry, module_of
from likewise.classes.agreement import METRICS, Both, Scaled, chance, semantic_order
from likewise.classes.confusion import ranks
from likewise.classes.similarity import ClassSimilarity
from likewise.errors import InputError

SHORTEST = 20  # epochs; of fewer, nothing can be told yet
REST = 10  # epochs that rest has to last
REGROWN = 0.25  # of a curve's range: fallen and grown again by so much, it shows no surge and refinement


class Reference:
    """The matrix networks are compared with, and what of it stays the same from epoch to epoch."""

    def __init__(self, matrix: ClassSimilarity) -> None:
        self.matrix = matrix
        self.scaled = Scaled(matrix.values)
        self.ranks = ranks(matrix)
        self._levels: dict[str, float] = {}
        self.level("cosine")  # now rather than in the first epoch

    def __len__(self) -> int:
        return len(self.matrix)

    @cached_property
    def order(self) -> np.ndarray:
        """The classes by WordNet id, the order SSIM looks at."""
        return semantic_order(self.matrix, self.matrix)

    @cached_property
    def ordered(self) -> Scaled:
        """The reference in that order."""
        return self.scaled.reordered(self.order)

    def level(self, metric: str) -> float:
        """The alignment of random weights with the reference."""
        if metric not in self._levels:
            self._levels[metric] = chance(self.ordered if metric == "ssim" else self.scaled, metric).random
        return self._levels[metric]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What an index may read of an epoch; results that several indices share are computed once.

    Attributes:
        matrices: Class similarities by what they are made from.
        tables: Confusion counts (classes, classes) by split.
        reference: The reference, if there is one.
        counted: Other numbers of the epoch.
        split: The split an index is computed on.
    """

    matrices: Mapping[str, ClassSimilarity]
    tables: Mapping[str, np.ndarray]
    reference: Reference | None = None
    counted: Mapping[str, float] = field(default_factory=dict)
    split: str = "test"
    _results: dict[Any, Any] = field(default_factory=dict)

    @property
    def table(self) -> np.ndarray:
        """The confusion counts of the split."""
        return self.tables[self.split]

    @property
    def total(self) -> int:
        """How many inputs of the split were counted."""
        return int(self.table.sum())

    @property
    def errors(self) -> int:
        """How many of them were classified wrong."""
        return self.total - int(self.table.trace())

    def once(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function of the snapshot and these arguments gives, computed once for all indices that read it."""
        key = (function, *arguments)
        if key not in self._results:
            self._results[key] = function(self, *arguments)
        return self._results[key]

    def aligned(self, a: str, b: str, metric: str = "cosine") -> float:
        """The alignment of two matrices, by their names; SSIM looks at them in the order of the reference."""
        return float(self.once(_alignment, a, b, metric))

    def has(self, needs: tuple[str, ...]) -> bool:
        """Whether everything an index needs is there: matrices and counts by name, or "reference"."""
        present = {*self.matrices, *self.counted, *(["reference"] if self.reference else [])}
        return present.issuperset(needs)


def _alignment(epoch: Snapshot, a: str, b: str, metric: str) -> float:
    both = epoch.once(_both, a, b)
    if metric == "ssim" and epoch.reference is not None:
        both = Both(both.a.reordered(epoch.reference.order), epoch.reference.ordered)
    return METRICS[metric](both)


def _both(epoch: Snapshot, a: str, b: str) -> Both:
    return Both(epoch.once(_scaled, a), epoch.once(_scaled, b))


def _scaled(epoch: Snapshot, name: str) -> Scaled:
    if name == "reference" and epoch.reference is not None:
        return epoch.reference.scaled
    return Scaled(epoch.matrices[name].values)


@dataclass(frozen=True)
class Index:
    """One number of an epoch and all that is known of it."""

    name: str
    value: Callable[[Snapshot], float]  # computes it from a `Snapshot`
    reads: str  # what it is, in a few words
    needs: tuple[str, ...] = ()  # what it needs: matrices, "reference", or numbers that were counted
    chance: str = ""  # what it is without any learning, in words
    level: float | Callable[[Reference], float] | None = None  # the same as a number, for curves, or by the reference
    label: str = ""  # the title of its curve, which is then drawn by default
    per_split: bool = False  # whether it is reported for every split
    headline: bool = False  # whether the command prints it


INDICES: Registry[Index] = Registry("index", group="likewise.indices", modules=("likewise.classes.indices",))


def index(*, name: str, reads: str = "", **facts: Any) -> Callable[[Callable[[Snapshot], float]], Any]:
    """Declare an index: a function of a `Snapshot`.

    Args:
        name: Its name.
        reads: What it is, in a few words; by default the first line of its docstring.
        **facts: What else is known of it (see `Index`).
    """

    def declare(function: Callable[[Snapshot], float]) -> Callable[[Snapshot], float]:
        entry = Index(name, function, reads or str(function.__doc__).split("\n")[0], **facts)
        INDICES.add(name, entry, module=module_of(function))
        return function

    return declare


def report(epoch: Snapshot) -> dict[str, float]:
    """All indices of an epoch by name: those of every split first."""
    values: dict[str, float] = {}
    for split in epoch.tables:
        snapshot, ending = replace(epoch, split=split), "" if split == "test" else f"_{split}"
        values |= {f"{i.name}{ending}": i.value(snapshot) for i in INDICES if i.per_split and epoch.has(i.needs)}
    return values | {i.name: i.value(epoch) for i in INDICES if not i.per_split and epoch.has(i.needs)}


def chance_levels(reference: Reference | None) -> dict[str, float]:
    """What indices would be without any learning, by the names they are reported under."""
    if reference is None:
        return {}
    levels = {i.name: i.level for i in INDICES if i.level is not None}
    return {name: level(reference) if callable(level) else level for name, level in levels.items()}


def panels() -> dict[str, str]:
    """The curves that are drawn by default, and their titles."""
    return {i.name: i.label for i in INDICES if i.label}


def headlines() -> list[str]:
    """The indices a command prints."""
    return [i.name for i in INDICES if i.headline]


@dataclass(frozen=True)
class Phases:
    """When the phases of learning end.

    Attributes:
        surge_end: The last epoch of the surge; None where there is none.
        refinement_end: The last epoch of the refinement; None where there is none.
        reason: Why one of them is None.
    """

    surge_end: int | None
    refinement_end: int | None
    reason: str = ""

    @property
    def clear(self) -> bool:
        """Whether both ends were found."""
        return self.surge_end is not None and self.refinement_end is not None

    def __str__(self) -> str:
        if self.surge_end is None:
            return self.reason
        if self.refinement_end is None:
            return f"surge to epoch {self.surge_end}, then {self.reason}"
        refined = self.refinement_end > self.surge_end
        return f"surge to epoch {self.surge_end}, {f'refinement to epoch {self.refinement_end}, ' * refined}then rest"


def phases(curve: Sequence[float], epochs: Sequence[int] | None = None) -> Phases:
    """Where the surge and the refinement of a curve end.

    Args:
        curve: One number per epoch; what is not finite is left out.
        epochs: The numbers of the epochs; by default from 0.

    Example:
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
        return Phases(None, None, f"cannot tell yet: {len(values)} epochs are recorded, {SHORTEST} are needed")
    smooth = _median3(values)
    noise = 1.4826 * float(np.median(np.abs(np.diff(values)))) / 2**0.5
    start, top = float(smooth[0]), float(smooth.max())
    climb, tail = top - start, max(2, len(values) // 5)
    level = float(np.median(smooth[-tail:]))
    turn = _turn(smooth, level, max(4 * noise, REGROWN * float(np.ptp(smooth)), 1e-9))
    if turn is not None:
        return Phases(None, None, f"no clear phases: the curve falls to epoch {numbers[turn]} and grows again")
    if climb <= max(4 * noise, 1e-9):
        return Phases(None, None, "no clear phases: the curve does not climb from where it started")
    surge = int(np.argmax(smooth >= start + 0.95 * climb))
    if surge >= len(values) - tail:
        return Phases(None, None, "cannot tell yet: the curve was still climbing when the record ended")
    restless = np.flatnonzero(np.abs(smooth - level) > 0.1 * climb)
    rest = max(surge, int(restless[-1]) + 1 if len(restless) else 0)
    needed = max(tail, REST)
    if rest > len(values) - needed:
        return Phases(numbers[surge], None, f"refinement, not followed by {needed} epochs of rest yet")
    return Phases(numbers[surge], numbers[max(surge, rest - 1)])


def _turn(smooth: np.ndarray, level: float, least: float) -> int | None:
    """The lowest epoch of a curve that falls by `least` before it and ends above it by as much; None without one."""
    fallen = np.maximum.accumulate(smooth) - smooth
    turns = np.flatnonzero((fallen > least) & (level - smooth > least))
    return int(turns[smooth[turns].argmin()]) if len(turns) else None


def _median3(values: np.ndarray) -> np.ndarray:
    padded = np.concatenate([values[:1], values, values[-1:]])
    return np.median(np.stack([padded[:-2], padded[1:-1], padded[2:]]), axis=0)
