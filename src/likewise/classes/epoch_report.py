"""From the matrices of an epoch to one flat dictionary with stable names.

Every number is an `Index`, declared in `indices`. What it needs (a matrix, the reference, a count) decides
whether it is reported; those of mistakes are reported for every split, a plain name for the test split,
with the ending "_train" or "_adversarial" for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from likewise._base.registry import Registry, module_of
from likewise.classes.agreement import METRICS, Both, Scaled, chance, semantic_order
from likewise.classes.confusion import ranks
from likewise.classes.similarity import ClassSimilarity
from likewise.errors import UnknownNameError, did_you_mean


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


def check_index(name: str) -> None:
    """Refuse the name of no index; those of every split also end with "_train" or "_adversarial"."""
    endings = ("", "_train", "_adversarial")
    names = [f"{i.name}{ending}" for i in INDICES for ending in (endings if i.per_split else ("",))]
    if name not in names:
        raise UnknownNameError(
            f"no index named {name!r}.{did_you_mean(str(name), names)} likewise.classes.INDICES lists them."
        )


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
