"""The score above which a hit counts, carried over from one embedding model to another.

Scores of two models are on different scales: 0.65 lets few pairs through in one and all of them in the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import stdtrit
from torch import Tensor

from likewise.analysis.embeddings.search import TIE, Search
from likewise.errors import InputError

PAIRS = 2_000_000  # of a query and an item, at most
GROUPS = 10  # of queries, left out in turn
USUAL = 10  # items per query that the old threshold lets through if none is given


@dataclass(frozen=True)
class Threshold:
    """An old score and the new one that takes its place.

    Attributes:
        old: The old score.
        new: The new score; NaN where no score is as precise as the old.
        low: The lower end of the 95 % interval of the new score, over other queries; NaN where too few pairs tell.
        high: The upper end.
        per_query: How many items per query reach the old score.
        agreement: The share of pairs that reach the new score which reached the old.
        precision: The share of pairs that reach the old, and the new, score which have the same label; empty without
            labels, where the new score is the one that as many pairs reach.
    """

    old: float
    new: float
    low: float
    high: float
    per_query: float
    agreement: float
    precision: tuple[float, ...] = ()

    def __str__(self) -> str:
        start = f"an old score of {self.old:.4g} ({self.per_query:.3g} items per query)"
        if self.new != self.new:
            return f"{start} has no new one: none is as precise ({self.precision[0]:.2f})"
        what = f"as precise ({self.precision[1]:.2f})" if self.precision else "reached by as many"
        ends = f"[{self.low:.4g}, {self.high:.4g}]" if self.low == self.low else "(no interval)"
        return f"{start} becomes {self.new:.4g} {ends}, {what}; {100 * self.agreement:.0f} % of the hits are the same"


def carried_over(old: Search, new: Search, score: float | None, relevant: tuple[Tensor, Tensor] | None) -> Threshold:
    """The threshold of a new search that keeps the precision of an old one.

    Args:
        old: The old search.
        new: The new one, of the same queries and items.
        score: The old threshold; by default the one that ten items per query reach.
        relevant: Labels of queries and items: a pair of one label is relevant. By default nothing is known, and as
            many pairs reach the new score as reached the old.
    """
    rows = min(len(old.queries), max(GROUPS, PAIRS // len(old.items)))
    before, after = old.cosines(0, rows), new.cosines(0, rows)
    same = None if relevant is None else relevant[0][:rows, None] == relevant[1]
    if score is None:
        wanted = min(USUAL, (old.others + 1) // 2) * rows
        score = _largest(before, wanted)
    hits = before >= score - TIE
    _check(score, before, hits, rows * old.others)
    value = _choose(hits, after, same)
    ends = _interval(hits, after, same, value)
    chosen = after >= value - TIE
    shares = () if same is None else (_share(same, hits), _share(same, chosen))
    return Threshold(score, value, *ends, float(hits.sum()) / rows, _share(hits, chosen), shares)


def _check(score: float, before: Tensor, hits: Tensor, pairs: int) -> None:
    """Refuse a threshold that no pair reaches, or that every one does."""
    finite = before[before > -torch.inf]
    ends = f"old scores run from {float(finite.min()):.4g} to {float(finite.max()):.4g}"
    if not bool(hits.any()):
        raise InputError(f"no item reaches a threshold of {score:.4g}: {ends}. Give one between.")
    if int(hits.sum()) == pairs:
        raise InputError(f"every item reaches a threshold of {score:.4g}: {ends}. Give one between.")


def _choose(hits: Tensor, after: Tensor, same: Tensor | None) -> float:
    """The score that as many pairs reach; with labels the least that is as precise, NaN if none is."""
    count = int(hits.sum())
    if same is None:
        return _largest(after, count) if count else math.nan
    scores, order = after.flatten().sort(descending=True)
    right = same.flatten()[order].double().cumsum(0)
    precision = right / torch.arange(1, len(right) + 1, dtype=torch.float64, device=right.device)
    last = torch.cat([scores[:-1] - scores[1:] > TIE, scores.new_ones(1).bool()])  # of its tie
    enough = last & (scores > -torch.inf) & (precision >= _share(same, hits) - TIE)
    return float(scores[enough.nonzero()[-1, 0]]) if bool(enough.any()) else math.nan


def _interval(hits: Tensor, after: Tensor, same: Tensor | None, value: float) -> tuple[float, float]:
    """From how the threshold moves where each group of queries is left out (the delete-group jackknife)."""
    group = torch.arange(len(hits), device=hits.device) % GROUPS
    rests = [group != number for number in range(GROUPS)]
    moved = [_choose(hits[rest], after[rest], None if same is None else same[rest]) for rest in rests]
    spread = math.sqrt(GROUPS - 1) * float(np.std(moved))
    reach = float(stdtrit(GROUPS - 1, 0.975)) * spread
    if math.isnan(value + reach):
        return math.nan, math.nan
    return max(-1.0, value - reach), min(1.0, value + reach)


def _largest(values: Tensor, count: int) -> float:
    """The smallest of the `count` largest."""
    flat = values.flatten().cpu().numpy()
    return float(np.partition(flat, len(flat) - count)[len(flat) - count])


def _share(of: Tensor, among: Tensor) -> float:
    """The share of some pairs that are among others too; NaN of none."""
    return float(of[among].double().mean())
