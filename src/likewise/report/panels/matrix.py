"""Which networks are alike? The matrix of every measure, the outlier, the most and the least alike pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from likewise.errors import LikewiseError
from likewise.matrices.heatmap import colour_range
from likewise.matrices.labelled import linkage_tree
from likewise.matrices.score import LEVEL, range_text, untrained_note
from likewise.matrices.similarity import ALIKE
from likewise.measures.registry import get
from likewise.report.families import ReportNetworks
from likewise.report.grids import ScoreGrid
from likewise.report.outlier import alone, odd_one_out
from likewise.report.panels.panel import Finding, Material, Panel, counted, pack
from likewise.report.words import full_name, with_full_name
from likewise.transfer.matrix import CLOSE

Pair = tuple[int, int]
FEW_INPUTS = 100
GRIDS = ("values", "ranks", "null", "q", "low", "high")


def panel(material: Material) -> Panel | None:
    """The matrices, with chance and intervals."""
    networks, scores = material.networks, material.scores
    if not scores:
        return None
    return Panel(
        "matrix",
        "Which networks are alike?",
        _answer(scores[0], networks.names),
        "Bright is alike and dark is unlike, for similarities and distances; grey is undefined. Colours span the range "
        "of the measure, the same in every report; where a distance has no largest value, that of these networks. "
        "The tree joins the most alike networks first (average linkage). Point at a cell, or use the arrow keys, for "
        "its value, what chance gives, its interval over inputs and the number of inputs. Click it, or press Enter, "
        "for everything about the pair. Ranks are shares of pairs that are less alike; q is a p-value corrected for "
        "the number of pairs.",
        {"measures": [_measure(score, networks) for score in scores]},
        tuple(_warnings(networks, scores)),
        ("matrix", "pair"),
        (*_outlier(material), *_extremes(material)),
    )


def _answer(score: ScoreGrid, names: Sequence[str]) -> str:
    """The ends of the first measure, and how many pairs are more alike than chance."""
    upper = np.triu_indices(len(names), 1)
    pairs = [pair for pair in combinations(range(len(names)), 2) if np.isfinite(score.alike[pair])]
    if not pairs:
        return f"No pair of {len(names)} networks has a score by {score.label}."
    ranked = sorted(pairs, key=lambda pair: -score.alike[pair])
    ends = [f"{names[i]} and {names[j]} ({_value(score, (i, j))})" for i, j in (ranked[0], ranked[-1])]
    text = f"By {with_full_name(score.label)}: {ends[0]}"
    if len(pairs) > 1:
        text = f"By {with_full_name(score.label)}, {ends[0]} score as most alike, {ends[1]} as least"
    if not score.has_null:
        return f"{text}. What chance gives was not tested."
    beyond = int((score.q[upper] <= LEVEL).sum())
    if len(pairs) == 1:
        return f"{text}. That is {'' if beyond else 'no '}more alike than chance (q {'≤' if beyond else '>'} 0.05)."
    some = f"{beyond} of {len(pairs)} pairs {'is' if beyond == 1 else 'are'}"
    number = f"All {len(pairs)} pairs are" if beyond == len(pairs) else some
    return f"{text}. {number} more alike than chance (q ≤ 0.05)."


def _measure(score: ScoreGrid, networks: ReportNetworks) -> dict[str, Any]:
    matrix, index = score.matrix, {name: i for i, name in enumerate(networks.names)}
    grids = {name: getattr(score, name) for name in GRIDS}
    return {
        "label": score.label,
        "view": score.view,
        "larger_is": matrix.larger_is,
        "range": range_text(matrix.bounds),
        "n": score.n,
        "scale": list(colour_range(score.values, matrix.bounds)),
        "symmetric": bool(np.array_equal(score.values, score.values.T, equal_nan=True)),
        "summary": _summary(matrix.measure),
        "stands_for": full_name(matrix.measure),
        "tree": _tree(score),
        "reasons": [[index[a], index[b], reason] for (a, b), reason in matrix.reasons.items()],
        "saturated": [[index[a], index[b]] for a, b in matrix.saturated],
        "notes": [
            *(line for line in matrix.legend() if not line.startswith(ALIKE)),
            *(line for line in matrix.notes() if not line.startswith("accuracy: ")),
        ],
        **{name: pack(grid) for name, grid in grids.items() if name == "values" or np.isfinite(grid).any()},
    }


def _summary(measure: str) -> str:
    """What a measure looks at, in a sentence; nothing for one of somebody else."""
    try:
        return get(measure).info.summary
    except LikewiseError:
        return ""


def _tree(score: ScoreGrid) -> dict[str, Any] | None:
    """The tree of average linkage over all networks, in the order in which its leaves lie; None where pairs lack."""
    alike = score.alike
    if len(alike) < 3 or not np.isfinite(alike[np.triu_indices(len(alike), 1)]).all():
        return None
    merges, order = linkage_tree(np.where(np.eye(len(alike), dtype=bool), np.nanmax(alike), alike))
    return {"order": order, "merges": [[int(a), int(b), float(f"{height:.4g}")] for a, b, height in merges]}


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
    outlier = odd_one_out(material)
    if outlier is None or outlier.name in alone(material.networks):
        return  # that it is a family of its own is said already
    votes = (
        f"{len(outlier.views)} of {outlier.voting} views and {outlier.same} of {outlier.measures} measures find it "
        "least like the others."
    )
    text = f"{outlier.name} is the outlier: {votes}"
    if not outlier.significant:
        text = f"Not enough data to name the outlier (n = {counted(outlier.voting, 'view')}). {outlier.name}: {votes}"
    chance = f"Views that pick any of {len(material.networks.names)} networks at random would agree so with p = "
    yield Finding(text, f"{chance}{outlier.p:.2g}.", "matrix", outlier.significant)


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
