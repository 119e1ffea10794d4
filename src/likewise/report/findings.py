"""What a report says first: sentences with numbers, each with how sure it is and the panel that shows it.

A sentence is told only if its evidence carries it: p or q of at most 0.05 after correction, or an interval that leaves
out what chance gives. Else it says that it cannot be told, and why. Every rule is a function; rules that have nothing
to look at give nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from math import comb

import numpy as np

from likewise.matrices.score import LEVEL
from likewise.report.families import Zoo
from likewise.report.grids import Scored
from likewise.report.panels.disagreement import Gap, View
from likewise.report.runs import Runs


@dataclass(frozen=True)
class Finding:
    """A sentence, how sure it is, the panel that shows it, and whether its evidence carries it."""

    text: str
    evidence: str
    panel: str
    told: bool = True


@dataclass(frozen=True)
class Material:
    """What the rules look at."""

    runs: Runs
    zoo: Zoo
    scores: list[Scored]
    views: list[View]
    gaps: list[Gap]
    more: list[Finding] = field(default_factory=list)  # of panels that have rules of their own


Rule = Callable[[Material], Iterator[Finding]]


def findings(material: Material) -> list[Finding]:
    """All that the rules find, what is told before what cannot be."""
    rules: tuple[Rule, ...] = (_families, _odd_one, _extremes, _gap)
    found = [finding for rule in rules for finding in rule(material)] + material.more
    return sorted(found, key=lambda finding: not finding.told)


def _families(material: Material) -> Iterator[Finding]:
    families = material.zoo.families
    if families is None:
        return
    groups = families.found.groups()
    listed = "; ".join(_listed(group) for group in groups[:4]) + (
        f"; {len(groups) - 4} more" if len(groups) > 4 else ""
    )
    stable = (
        f"parts of the networks give them with an adjusted Rand index of {families.stability:.2f} (chance 0)"
        if families.stability == families.stability
        else "too few networks to draw parts of them"
    )
    chance = f"p = {families.p:.2g} against the same scores in random places"
    told = families.p <= LEVEL
    text = f"There are {len(groups)} families by {families.found.matrix.measure}: {listed}."
    if not told:
        text = (
            f"Whether the {len(groups)} families by {families.found.matrix.measure} are more than chance cannot "
            f"be told (n = {len(families.found.names)})."
        )
    yield Finding(text, f"{chance}; {stable}.", "map", told)


def _listed(names: list[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _odd_one(material: Material) -> Iterator[Finding]:
    """The network least like the others, if more views agree on it than views that pick at random would."""
    m, views = len(material.zoo.names), material.views
    if m < 4:
        return
    picks = []
    for view in views:
        mean = np.nanmean(np.where(np.isnan(view.ranks).all(axis=1, keepdims=True), 1.0, view.ranks), axis=1)
        picks.append(int(mean.argmin()))
    odd = max(set(picks), key=picks.count)
    agree, count = picks.count(odd), len(picks)
    p = min(1.0, m * sum(comb(count, k) * (1 / m) ** k * (1 - 1 / m) ** (count - k) for k in range(agree, count + 1)))
    measures = [one for one in material.scores if np.isfinite(one.alike).any()]
    same = sum(int(np.nanargmin(_row_means(one))) == odd for one in measures)
    counted = f"{agree} of {count} views and {same} of {len(measures)} measures find it least like the others"
    text = f"{material.zoo.names[odd]} is the odd one out: {counted}."
    if p > LEVEL:
        text = (
            f"Which network is the odd one out cannot be told (n = {count} view{'s' * (count > 1)}). "
            f"{material.zoo.names[odd]}: {counted}."
        )
    chance = f"Views that pick any of {m} networks at random would agree so with p = {p:.2g}."
    yield Finding(text, chance, "likeness", p <= LEVEL)


def _row_means(one: Scored) -> np.ndarray:
    known = np.isfinite(one.alike)
    sums = np.where(known, one.alike, 0.0).sum(axis=1)
    counts = known.sum(axis=1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.inf)


def _extremes(material: Material) -> Iterator[Finding]:
    """The most and the least alike pair by the first measure, against chance and against the next pair."""
    one = next((s for s in material.scores if material.zoo.main is not None and s.matrix is material.zoo.main), None)
    one = one or next(iter(material.scores), None)
    if one is None:
        return
    names, order = material.zoo.names, _sorted_pairs(one)
    if not order:
        return
    if len(order) == 1:
        yield _of_pair(one, names, order[0], "")
        return
    for first, second, word in ((order[0], order[1], "most"), (order[-1], order[-2], "least")):
        yield _of_pair(one, names, first, word, second)


def _sorted_pairs(one: Scored) -> list[tuple[int, int]]:
    """Pairs that have a score, the most alike first."""
    known = [(i, j) for i, j in combinations(range(len(one.alike)), 2) if np.isfinite(one.alike[i, j])]
    return sorted(known, key=lambda place: -one.alike[place])


def _of_pair(
    one: Scored, names: tuple[str, ...], place: tuple[int, int], word: str, second: tuple[int, int] | None = None
) -> Finding:
    a, b = names[place[0]], names[place[1]]
    value = f"{one.label} {_value(one, place)}"
    rank = f"The {word} alike pair is {a} and {b}" if word else f"{a} and {b}"
    beyond, chance = _against_chance(one, place)
    apart = second is not None and one.has_intervals and _lies_apart(one, place, second)
    runner = ""
    if second is not None and not apart:
        why = "their intervals overlap" if one.has_intervals else "there are no intervals"
        runner = (
            f" {names[second[0]]} and {names[second[1]]} ({_value(one, second, False)}) cannot be told from it: {why}."
        )
    if word == "least":  # that it is least of all is the claim, not that it is beyond chance
        return Finding(f"{rank}: {value}.{runner}", chance, "likeness", apart)
    if beyond is None:
        return Finding(f"{rank}: {value}. Whether that is more than chance cannot be told.", chance, "likeness", False)
    verdict = "more alike than chance" if beyond else "no more alike than chance"
    return Finding(f"{rank}: {value}, {verdict}.{runner}", chance, "likeness", True)


def _value(one: Scored, place: tuple[int, int], interval: bool = True) -> str:
    text = f"{one.sign * one.alike[place]:.3g}"
    low, high = one.low[place], one.high[place]
    return f"{text} [{low:.3g}, {high:.3g}]" if interval and np.isfinite(low) and np.isfinite(high) else text


def _against_chance(one: Scored, place: tuple[int, int]) -> tuple[bool | None, str]:
    """Whether a pair is more alike than chance, None if nobody asked, and the numbers."""
    q, null = one.q[place], one.null[place]
    if not np.isfinite(q):
        return None, "No null was recorded: likewise compare --calibrate adds it."
    return bool(q <= LEVEL), f"Shuffled inputs give {null:.2g} (q = {q:.2g} over all pairs, n = {one.n} inputs)."


def _lies_apart(one: Scored, place: tuple[int, int], second: tuple[int, int]) -> bool:
    low, high = one.ends()
    return bool(low[place] > high[second] or high[place] < low[second])


def _gap(material: Material) -> Iterator[Finding]:
    if not material.gaps:
        return
    told = [gap for gap in material.gaps if gap.told]
    gap = told[0] if told else material.gaps[0]
    if told:
        yield Finding(
            f"The views disagree most on {gap.a} and {gap.b}: {gap.sentence}",
            f"Ranks {gap.high:.2f} and {gap.low:.2f} of 1; their intervals, widened for the number of pairs, lie "
            f"apart.",
            "views",
        )
        return
    yield Finding(
        f"Whether the views really disagree on a pair cannot be told. The widest gap: {gap.sentence}",
        f"Ranks {gap.high:.2f} and {gap.low:.2f} of 1; their intervals overlap, or there are none (n = "
        f"{len(material.zoo.names)} networks).",
        "views",
        False,
    )
