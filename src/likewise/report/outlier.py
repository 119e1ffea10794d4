"""The odd one out: the network that most views find least like the others."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from likewise._base.arrays import Array
from likewise.matrices.score import LEVEL
from likewise.report.families import ReportNetworks
from likewise.report.grids import comparable_scores
from likewise.report.panels.panel import Material


@dataclass(frozen=True)
class OddOne:
    """The network that most views find least like the others, and how likely so many agree by chance."""

    name: str
    views: tuple[str, ...]
    voting: int
    same: int  # measures that agree
    measures: int
    p: float

    @property
    def significant(self) -> bool:
        """Whether more views agree than views that pick at random would."""
        return self.p <= LEVEL


def odd_one_out(material: Material) -> OddOne | None:
    """The outlier; attacks say nothing of networks whose accuracy is far from the others'."""
    networks, m = material.networks, len(material.networks.names)
    if m < 4:
        return None
    far = np.array([name in networks.outside for name in networks.names])
    picks = {view.name: _least_alike(comparable_scores(view.ranks, view.name, far), 1.0) for view in material.views}
    votes = list(picks.values())
    if not votes:
        return None
    odd = max(set(votes), key=votes.count)
    judging = [v for v in material.views if np.isfinite(comparable_scores(v.ranks, v.name, far)[odd]).any()]
    count = len(judging)  # the views that can say something of it
    agree = votes.count(odd)
    p = min(1.0, m * sum(comb(count, k) * (1 / m) ** k * (1 - 1 / m) ** (count - k) for k in range(agree, count + 1)))
    grids = [comparable_scores(s.alike, s.view, far) for s in material.scores]
    grids = [grid for grid in grids if np.isfinite(grid[odd]).any()]
    same = sum(_least_alike(grid, np.inf) == odd for grid in grids)
    names = tuple(name for name, pick in picks.items() if pick == odd)
    return OddOne(networks.names[odd], names, count, same, len(grids), p)


def _least_alike(grid: Array, undefined: float) -> int:
    """The row with the smallest mean; a row without any value counts as `undefined`."""
    finite = np.isfinite(grid)
    counts = finite.sum(axis=1)
    means = np.where(finite, grid, 0.0).sum(axis=1) / np.maximum(counts, 1)
    return int(np.where(counts > 0, means, undefined).argmin())


def alone(networks: ReportNetworks) -> list[str]:
    """The networks that are a family by themselves."""
    if networks.families is None or networks.families.clusters.k == 1:
        return []
    return [group[0] for group in networks.families.clusters.groups() if len(group) == 1]
