"""Scores that say nothing: any network of that width would get them.

A network with as many neurons as there are inputs can express every function on these inputs, so measures that
ask what one network can express of the other give a number that follows from the widths alone. Such a measure
declares where that is and which number it gives; `testing.check_measure` tries it on noise, both ways.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

CLOSE = 0.01  # share of the number that widths give; dead neurons leave a little below it

Sizes = tuple[int, int, int]  # inputs, neurons of the first and of the second network


@dataclass(frozen=True)
class Saturation:
    """Where a score follows from the sizes alone, and what it is there."""

    where: str  # in words, for tables
    holds: Callable[[Sizes], bool]  # whether it is so at these sizes
    gives: Callable[[Sizes], float]  # the score that any two networks of these sizes get
    reason: Callable[[Sizes], str]  # a sentence for the reader of such a score

    def explain(self, value: float, sizes: Sizes) -> str:
        """Why any network of these sizes would get this score, or nothing."""
        if value != value or not self.holds(sizes):
            return ""
        fixed = self.gives(sizes)
        return self.reason(sizes) if abs(value - fixed) <= CLOSE * max(1.0, abs(fixed)) else ""


def _one(sizes: Sizes) -> float:
    return 1.0


def _expressed(sizes: Sizes) -> str:
    n, a, b = sizes
    return (
        f"{max(a, b)} neurons can express anything on {n} inputs, so any network with as many that are "
        "independent gets this score. Show the networks more inputs."
    )


def either_wide(gives: Callable[[Sizes], float] = _one, *, less: int = 1) -> Saturation:
    """Where one of the networks has n - `less` neurons or more: 1 for measures that centre."""
    at = f"n - {less}" if less else "n"
    return Saturation(
        f"where one network has {at} neurons or more",
        lambda sizes: max(sizes[1:]) >= sizes[0] - less,
        gives,
        _expressed,
    )


def second_wide() -> Saturation:
    """Where the second network has n - 1 neurons or more."""
    return Saturation(
        "where the second network has n - 1 neurons or more",
        lambda sizes: sizes[2] >= sizes[0] - 1,
        _one,
        lambda sizes: _expressed((sizes[0], 0, sizes[2])),
    )


def all_neighbors(k: int) -> Saturation:
    """Where every other input is a neighbour."""
    return Saturation(
        "where k is n - 1",
        lambda sizes: k >= sizes[0] - 1,
        _one,
        lambda sizes: (
            f"with k = {k} all other of the {sizes[0]} inputs are neighbours, so any network gets this "
            "score. Choose a smaller k."
        ),
    )


def ranks(sizes: Sizes) -> tuple[int, int]:
    """The most directions either network can have after centring, the smaller first."""
    n, a, b = sizes
    low, high = sorted((min(a, n - 1), min(b, n - 1)))
    return low, high
