"""What may follow from the phases of a training while it runs: a lower learning rate, or its end.

A decision is part of the epoch's report, so it is on disk with it and is not taken twice by a training that is resumed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.classes.epoch_report import check_index
from likewise.classes.learning.phases import at_the_end
from likewise.errors import InputError, brief

PHASES = ("surge", "rest")


@dataclass(frozen=True)
class Steering:
    """After which phase of which curve a training stops, or goes on with a lower learning rate."""

    stop_after: str | None = None
    reduce_lr_after: str | None = None
    lr_factor: float = 0.1
    phases_of: str = "wsi_max"

    def __post_init__(self) -> None:
        for name in ("stop_after", "reduce_lr_after"):
            phase = getattr(self, name)
            if phase is not None and phase not in PHASES:
                raise InputError(f"{name} is {phase!r}. Give 'surge' or 'rest'.")
        if not (isinstance(self.lr_factor, (int, float)) and 0 < self.lr_factor < 1):
            raise InputError(f"lr_factor is {brief(self.lr_factor)}. Give a factor between 0 and 1.")
        if self.is_on:
            check_index(self.phases_of)

    @property
    def is_on(self) -> bool:
        """Whether anything may follow."""
        return self.stop_after is not None or self.reduce_lr_after is not None

    def decide(
        self, reports: Mapping[int, Mapping[str, float]], epoch: int, values: Mapping[str, float]
    ) -> dict[str, float]:
        """What follows after this epoch: `stopped` and `lr_factor`, where they do.

        Args:
            reports: The reports so far, by epoch.
            epoch: The number of the epoch.
            values: Its report.
        """
        if not self.is_on:
            return {}
        if self.phases_of not in values:
            raise InputError(
                f"the phases of {self.phases_of!r} are to steer the training, and epoch {epoch} has no such index. "
                "Give report() the classifier's weights, or name another index in phases_of."
            )
        earlier = [reports[number] for number in sorted(reports) if number < epoch]
        seen = self._seen([report.get(self.phases_of, math.nan) for report in earlier] + [values[self.phases_of]])
        reduced = any("lr_factor" in report for report in earlier)
        lower = {"lr_factor": self.lr_factor} if self.reduce_lr_after in seen and not reduced else {}
        return lower | ({"stopped": 1.0} if self.stop_after in seen else {})

    @staticmethod
    def _seen(curve: list[float]) -> set[str]:
        """The phases that are over, or have begun and are certain, by this record."""
        values = np.asarray(curve, dtype=float)
        values = values[np.isfinite(values)]
        found = at_the_end(values, range(len(values)))
        phases = {"surge": found.surge_end is not None, "rest": found.clear}
        return {name for name, is_seen in phases.items() if is_seen}


def lower(optimisers: Iterable[Any], schedulers: Iterable[Any], factor: float) -> None:
    """Multiply the learning rates of torch's optimisers, and the rates their schedulers count from.

    Args:
        optimisers: Optimisers of torch.
        schedulers: Schedulers of torch.
        factor: What the rates are multiplied by.
    """
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group["lr"] *= factor
    for scheduler in schedulers:
        if hasattr(scheduler, "base_lrs"):  # all but the one of plateaus, which counts from the optimiser's
            scheduler.base_lrs = [rate * factor for rate in scheduler.base_lrs]
