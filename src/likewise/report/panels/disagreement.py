"""Where the views of a network disagree: ranks of pairs by view, how far measures rank alike, and the widest gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from likewise._base.arrays import Array
from likewise.analysis.matrix_agreement import agreement
from likewise.errors import LikewiseError
from likewise.matrices.similarity import SimilarityMatrix
from likewise.report.families import Zoo
from likewise.report.grids import VIEWS, Scored, ranked

PERMUTATIONS, RESAMPLES, MANY = 1999, 200, 30  # half of both from so many pairs of measures on
FEW = 4  # networks from which on rank agreement can be told


@dataclass(frozen=True, eq=False)
class View:
    """One view of the networks: its measures, the rank of each pair over them, and between which ranks it may lie."""

    name: str
    measures: tuple[Scored, ...]
    ranks: Array
    low: Array
    high: Array


@dataclass(frozen=True)
class Gap:
    """A pair on which two views disagree: its ranks in both, and whether their intervals lie apart."""

    a: str
    b: str
    more: str
    less: str
    high: float
    low: float
    told: bool

    @property
    def spread(self) -> float:
        """How far the ranks lie apart."""
        return self.high - self.low

    @property
    def sentence(self) -> str:
        """In words."""
        return (
            f"{self.more} puts {self.a} and {self.b} among the {_share(1 - self.high)} most alike pairs, "
            f"{self.less} among the {_share(self.low)} least."
        )


def _share(part: float) -> str:
    """A share of pairs, rounded up to a twentieth."""
    return f"{5 * max(1, int(np.ceil(20 * part - 1e-9)))} %"


def views_of(scores: Sequence[Scored]) -> list[View]:
    """The views that have a measure."""
    found = []
    for name in VIEWS:
        own = tuple(one for one in scores if one.view == name)
        if own:
            mean = _mean([one.ranks for one in own])
            low, high = (_mean(part) for part in zip(*(_rank_ends(one) for one in own), strict=True))
            found.append(View(name, own, ranked(mean), low, high))
    return found


def _mean(grids: Sequence[Array]) -> Array:
    """The mean over grids, of those that are defined."""
    stack = np.stack(grids)
    counts = np.isfinite(stack).sum(axis=0)
    return np.where(counts > 0, np.nansum(stack, axis=0) / np.maximum(counts, 1), np.nan)


def _rank_ends(one: Scored) -> tuple[Array, Array]:
    """Between which ranks each pair may lie: what lies apart from it for certain is less or more alike.

    Intervals are widened for the number of pairs, since a pair is picked for its gap.
    """
    from scipy.stats import norm

    upper = np.triu_indices(len(one.alike), 1)
    known = np.isfinite(one.alike[upper])
    count = int(known.sum())
    if not one.has_intervals or not count:
        return np.full((2, *one.alike.shape), np.nan)[0], np.full(one.alike.shape, np.nan)
    low, high = one.ends(float(norm.ppf(1 - 0.025 / count) / norm.ppf(0.975)))
    lows, highs = np.sort(low[upper][np.isfinite(low[upper])]), np.sort(high[upper][np.isfinite(high[upper])])
    below = np.searchsorted(highs, low, side="left") / count
    above = 1 - np.searchsorted(lows, high, side="right") / max(len(lows), 1)
    undefined = ~np.isfinite(low) | ~np.isfinite(high)
    return np.where(undefined, np.nan, below), np.where(undefined, np.nan, 1 - above)


def gaps(views: Sequence[View], zoo: Zoo, most: int = 200) -> list[Gap]:
    """The pairs on which views disagree, the widest first."""
    if len(views) < 2 or len(zoo.names) < 3:
        return []
    found = []
    for i, j in combinations(range(len(zoo.names)), 2):
        own = sorted(
            (float(view.ranks[i, j]), place) for place, view in enumerate(views) if view.ranks[i, j] == view.ranks[i, j]
        )
        if len(own) < 2:
            continue
        (low, less), (high, more) = own[0], own[-1]
        told = bool(views[more].low[i, j] > views[less].high[i, j])
        names = (zoo.names[i], zoo.names[j], _called(views[more]), _called(views[less]))
        found.append(Gap(*names, high, low, told))
    return sorted(found, key=lambda gap: -gap.spread)[:most]


def _called(view: View) -> str:
    """A view by its measure, where it has one only."""
    if len(view.measures) == 1:
        return view.measures[0].label
    return f"{view.name} ({len(view.measures)} measures)"


def rank_agreement(scores: Sequence[Scored], *, seed: int = 0) -> dict[str, Array] | None:
    """Spearman's correlation of ranks between all measures, intervals over networks, p and q by Mantel's test."""
    from scipy.stats import false_discovery_control

    count = len(scores)
    if count < 2:
        return None
    found = {name: np.full((count, count), np.nan) for name in ("rho", "low", "high", "p", "q", "networks")}
    for i, j in combinations(range(count), 2):
        one = _agreement(scores[i], scores[j], seed, half=count * (count - 1) // 2 >= MANY)
        for name, value in (one or {}).items():
            found[name][i, j] = found[name][j, i] = value
    upper = np.triu_indices(count, 1)
    told = np.isfinite(found["p"][upper])
    if not told.any():
        return None
    q = np.full(len(upper[0]), np.nan)
    q[told] = false_discovery_control(found["p"][upper][told])
    found["q"][upper] = q
    found["q"] = np.where(np.isnan(found["q"]), found["q"].T, found["q"])
    np.fill_diagonal(found["rho"], 1.0)
    return found


def _agreement(one: Scored, two: Scored, seed: int, *, half: bool) -> dict[str, Any] | None:
    """How far two measures rank pairs alike, over the networks that have a score with all others in both."""
    both = np.isfinite(one.alike) & np.isfinite(two.alike)
    kept = list(range(len(both)))
    while kept and (missing := (~both[np.ix_(kept, kept)]).sum(axis=1) - 1).max() > 0:
        kept.pop(int(missing.argmax()))
    if len(kept) < FEW:
        return None
    square = np.ix_(kept, kept)
    names = [str(place) for place in kept]
    pair = [SimilarityMatrix(names, np.nan_to_num(each.alike[square])) for each in (one, two)]
    try:
        draws: dict[str, Any] = {"permutations": PERMUTATIONS // (1 + half), "resamples": RESAMPLES // (1 + half)}
        found = agreement(*pair, how="spearman", seed=seed, **draws)
    except LikewiseError:  # all pairs of one are equally alike
        return None
    return {
        "rho": found.correlation,
        "low": found.low,
        "high": found.high,
        "p": found.p,
        "networks": found.networks,
    }
