"""Which networks are alike? The matrix of every measure, the outlier, the most and the least alike pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from likewise._base.arrays import Array
from likewise.matrices.score import LEVEL, range_text, untrained_note
from likewise.report.families import ReportNetworks
from likewise.report.grids import ScoreGrid
from likewise.report.panels.panel import Finding, Material, Panel, counted, pack
from likewise.transfer.matrix import CLOSE

Pair = tuple[int, int]
FEW_INPUTS = 100
GRIDS = ("values", "ranks", "null", "q", "low", "high")


def panel(material: Material) -> Panel | None:
    """The matrices, with chance and intervals."""
    networks, scores = material.networks, material.scores
    if not scores:
        return None
    count = len(networks.names)
    chance = ""
    if scores[0].has_null:
        beyond = int((scores[0].q[np.triu_indices(count, 1)] <= LEVEL).sum())
        chance = f" By {scores[0].label}, {beyond} pairs are more alike than chance (q ≤ 0.05)."
    return Panel(
        "matrix",
        "Which networks are alike?",
        f"{count} networks, {counted(comb(count, 2), 'pair')}, {counted(len(scores), 'measure')}.{chance}",
        "Bright is alike and dark is unlike, for similarities and distances; grey is undefined. Point at a cell, or "
        "use the arrow keys, for its value, what chance gives, its interval over inputs and the number of inputs. "
        "Click it, or press Enter, for everything about the pair. Ranks are shares of pairs that are less alike.",
        {"measures": [_measure(score, networks) for score in scores]},
        tuple(_warnings(networks, scores)),
        ("matrix", "pair"),
        (*_outlier(material), *_extremes(material)),
    )


def _measure(score: ScoreGrid, networks: ReportNetworks) -> dict[str, Any]:
    matrix, index = score.matrix, {name: i for i, name in enumerate(networks.names)}
    grids = {name: getattr(score, name) for name in GRIDS}
    return {
        "label": score.label,
        "view": score.view,
        "larger_is": matrix.larger_is,
        "range": range_text(matrix.bounds),
        "n": score.n,
        "scale": _scale(score),
        "reasons": [[index[a], index[b], reason] for (a, b), reason in matrix.reasons.items()],
        "saturated": [[index[a], index[b]] for a, b in matrix.saturated],
        "notes": [*matrix.legend(), *matrix.notes()],
        **{name: pack(grid) for name, grid in grids.items() if name == "values" or np.isfinite(grid).any()},
    }


def _scale(score: ScoreGrid) -> list[float]:
    """The values that colours span: those of the pairs, and the ends of the range where they are near."""
    values = score.values[~np.eye(len(score.values), dtype=bool)]
    values = values[np.isfinite(values)]
    if not len(values):
        return [0.0, 1.0]
    low, high = float(values.min()), float(values.max())
    reach = high - low
    first, last = score.matrix.bounds
    if reach == 0:  # one pair: its position between 0 and the end of the range
        return [min(0.0, low), float(last) if last is not None and np.isfinite(last) else max(2 * high, 1.0)]
    low = float(first) if first is not None and low - first < reach / 2 else low
    high = float(last) if last is not None and last - high < reach / 2 else high
    return [low, high]


def _warnings(networks: ReportNetworks, scores: Sequence[ScoreGrid]) -> Iterator[str]:
    if networks.note:
        yield networks.note
    if networks.untrained:
        yield untrained_note(", ".join(sorted(networks.untrained)))
    few = min((score.n for score in scores if 0 < score.n < FEW_INPUTS), default=0)
    if few:
        yield f"Few inputs: {few}. Many measures are far from what more inputs would give."
    saturated = [score.label for score in scores if score.matrix.saturated]
    if saturated:
        labels = ", ".join(saturated)
        yield f"Saturated for some pairs, where any network of that width would score the same: {labels}."
    accuracies = [networks.accuracies[name] for name in networks.names if name in networks.accuracies]
    if accuracies and max(accuracies) - min(accuracies) > CLOSE:
        low, high = 100 * min(accuracies), 100 * max(accuracies)
        yield (
            f"Accuracies are {high - low:.0f} points apart, from {low:.0f} to {high:.0f} %: answers and attack "
            "transfer partly reflect accuracy."
        )
    if networks.outside:
        yield (
            f"Left out of findings on attacks and on where views disagree, since their accuracy is surely more than "
            f"{100 * CLOSE:.0f} points away: {', '.join(sorted(networks.outside))}."
        )


def _outlier(material: Material) -> Iterator[Finding]:
    """The network least like the others, if more views agree on it than views that pick at random would."""
    names, views = material.networks.names, material.views
    m, count = len(names), len(views)
    if m < 4:
        return
    picks = [_least_alike(view.ranks, 1.0) for view in views]
    outlier = max(set(picks), key=picks.count)
    families = material.networks.families
    if families is not None and families.clusters.k > 1 and [names[outlier]] in families.clusters.groups():
        return  # that it is a family of its own is said already
    agree = picks.count(outlier)
    p = min(1.0, m * sum(comb(count, k) * (1 / m) ** k * (1 - 1 / m) ** (count - k) for k in range(agree, count + 1)))
    measures = [score for score in material.scores if np.isfinite(score.alike).any()]
    same = sum(_least_alike(score.alike, np.inf) == outlier for score in measures)
    votes = f"{agree} of {count} views and {same} of {len(measures)} measures find it least like the others."
    text = f"{names[outlier]} is the outlier: {votes}"
    if p > LEVEL:
        text = f"Not enough data to name the outlier (n = {counted(count, 'view')}). {names[outlier]}: {votes}"
    chance = f"Views that pick any of {m} networks at random would agree so with p = {p:.2g}."
    yield Finding(text, chance, "matrix", p <= LEVEL)


def _least_alike(grid: Array, undefined: float) -> int:
    """The row with the smallest mean; a row without any value counts as `undefined`."""
    finite = np.isfinite(grid)
    counts = finite.sum(axis=1)
    means = np.where(finite, grid, 0.0).sum(axis=1) / np.maximum(counts, 1)
    return int(np.where(counts > 0, means, undefined).argmin())


def _extremes(material: Material) -> Iterator[Finding]:
    """The most and the least alike pair by the first measure, compared with chance and with the next pair."""
    scores, names = material.scores, material.networks.names
    score = next((s for s in scores if s.matrix is material.networks.main), scores[0])
    finite = [pair for pair in combinations(range(len(names)), 2) if np.isfinite(score.alike[pair])]
    pairs = sorted(finite, key=lambda pair: -score.alike[pair])
    if len(pairs) == 1:
        yield _pair_finding(score, names, pairs[0], "")
    elif pairs:
        yield _pair_finding(score, names, pairs[0], "most", pairs[1])
        yield _pair_finding(score, names, pairs[-1], "least", pairs[-2])


def _pair_finding(
    score: ScoreGrid, names: tuple[str, ...], pair: Pair, word: str, second: Pair | None = None
) -> Finding:
    a, b = names[pair[0]], names[pair[1]]
    low, high = score.low[pair], score.high[pair]
    interval = f" [{low:.3g}, {high:.3g}]" if np.isfinite(low) and np.isfinite(high) else ""
    subject = f"The {word} alike pair is {a} and {b}" if word else f"{a} and {b}"
    text = f"{subject}: {score.label} {_value(score, pair)}{interval}"
    beyond, chance = _compare_with_chance(score, pair)
    apart = second is not None and score.has_intervals and _intervals_apart(score, pair, second)
    runner_up = ""
    if second is not None and not apart:
        why = "their intervals overlap" if score.has_intervals else "there are no intervals"
        others = f"{names[second[0]]} and {names[second[1]]} ({_value(score, second)})"
        runner_up = f" Not enough data to tell them from {others}: {why}."
    if word == "least":  # the claim is that it is least of all, not that it is beyond chance
        return Finding(f"{text}.{runner_up}", chance, "matrix", apart)
    if beyond is None:
        return Finding(f"{text}. Whether that is more than chance was not tested.", chance, "matrix", False)
    verdict = "more alike than chance" if beyond else "no more alike than chance"
    return Finding(f"{text}, {verdict}.{runner_up}", chance, "matrix", True)


def _value(score: ScoreGrid, pair: Pair) -> str:
    return f"{score.sign * score.alike[pair]:.3g}"


def _compare_with_chance(score: ScoreGrid, pair: Pair) -> tuple[bool | None, str]:
    """Whether a pair is more alike than chance, None if that was not tested, and the numbers."""
    q, null = score.q[pair], score.null[pair]
    if not np.isfinite(q):
        return None, "No null was recorded: likewise compare --calibrate adds it."
    return bool(q <= LEVEL), f"Shuffled inputs give {null:.2g} (q = {q:.2g} over all pairs, n = {score.n} inputs)."


def _intervals_apart(score: ScoreGrid, pair: Pair, second: Pair) -> bool:
    low, high = score.ends()
    return bool(low[pair] > high[second] or high[pair] < low[second])
