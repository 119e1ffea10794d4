"""The first screen: at most three plain sentences, and a table of the networks.

Which are alike, which is the odd one out, and what to do next. Each sentence has its evidence, a test behind a link;
what has none is no sentence. Networks whose accuracy is far from the others' are in none about attacks, one fact is one
sentence, and families are those of the whole page.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from likewise.matrices.score import LEVEL
from likewise.matrices.shares import wilson
from likewise.report.families import ReportNetworks
from likewise.report.grids import VIEWS, ScoreGrid
from likewise.report.outlier import OddOne, alone, odd_one_out
from likewise.report.panels.panel import Finding, Material, Panel
from likewise.report.words import listed

ALIKE, ODD, ALONE, NEXT = "Alike", "The odd one out", "By themselves", "What next"


@dataclass(frozen=True)
class NetworkRow:
    """What the table says of a network.

    Attributes:
        name: The network.
        accuracy: The share of inputs it is right on, NaN if that is not known.
        low: The end of a 95 % interval of that share over inputs (Wilson).
        high: The other end.
        family: Its family, -1 for none.
        nearest: The network that is most alike to it, empty if no pair has a score.
        score: Their score.
        alone: Whether no other network is in its family.
        odd: Whether it is the odd one out.
        note: What else to know of it.
    """

    name: str
    accuracy: float
    low: float
    high: float
    family: int
    nearest: str
    score: float
    alone: bool
    odd: bool
    note: str


@dataclass(frozen=True)
class Summary:
    """The first screen.

    Attributes:
        sentences: What was found, by the question it answers.
        rows: The networks, in the order of the report.
        measure: The measure of the map and the matrix, as it is labelled.
        missing: What the runs lack, since they were not finished.
    """

    sentences: dict[str, Finding]
    rows: tuple[NetworkRow, ...]
    measure: str
    missing: tuple[str, ...] = ()


def summary(material: Material, panels: list[Panel]) -> Summary:
    """The first screen of results."""
    score = main_score(material)
    outlier = odd_one_out(material)
    found: dict[str, Finding | None] = {}
    if score is not None:
        found[ALIKE] = _alike(material, score)
    by_itself = alone(material.networks)
    found[ODD] = _odd(outlier, by_itself)
    found[ALONE] = None if found[ODD] else _alone(by_itself)  # several are no odd one
    found[NEXT] = next(_next(material, panels, score), None)
    sentences = {question: finding for question, finding in found.items() if finding is not None}
    odd = None if outlier is None or not outlier.significant else outlier.name
    rows = tuple(_row(material, score, i, odd) for i in range(len(material.networks.names)))
    return Summary(sentences, rows, "" if score is None else score.label, tuple(material.runs.missing))


def main_score(material: Material) -> ScoreGrid | None:
    """The scores that the map and the matrix show: those that families were found in, else the first."""
    mains = (score for score in material.scores if score.matrix is material.networks.main)
    return next(mains, material.scores[0] if material.scores else None)


# --- which are alike ---------------------------------------------------------------------------------


def _alike(material: Material, score: ScoreGrid) -> Finding | None:
    families, names = material.networks.families, material.networks.names
    if families is not None and families.clusters.k > 1:
        groups = [group for group in families.clusters.groups() if len(group) > 1]
        if groups:
            return Finding(_of_groups(groups), f"Families by {score.label}; tested on the map.", "map")
    pairs = [pair for pair in combinations(range(len(names)), 2) if np.isfinite(score.alike[pair])]
    sure = [pair for pair in pairs if score.q[pair] <= LEVEL]
    if not sure:
        return None
    best = max(sure, key=lambda pair: score.alike[pair])
    value, chance = score.sign * score.alike[best], score.null[best]
    text = f"{names[best[0]]} and {names[best[1]]} are more alike than chance: {score.label} is {value:.2f}, "
    text += f"where shuffled inputs give {chance:z.2f}"
    if len(pairs) > 1:
        others = f"all {len(pairs)}" if len(sure) == len(pairs) else f"{len(sure)} of {len(pairs)}"
        text += f". They score highest; {others} pairs are more alike than chance"
    return Finding(f"{text}.", f"q ≤ {LEVEL} over {len(pairs)} pairs, from shuffled inputs.", "matrix")


def _of_groups(groups: list[list[str]]) -> str:
    """The families in words: up to three with their members, of more the number."""
    if len(groups) == 1:
        return f"{listed(groups[0])} are alike, one family."
    if len(groups) <= 3:
        first, *others = (listed(group) for group in groups)
        return f"{first} are alike; so are {'; and '.join(others)}."
    sizes = ", ".join(f"{group[0]} and {len(group) - 1} like it" for group in groups[:3])
    return f"The networks form {len(groups)} families of alike ones, such as {sizes}."


# --- which is the odd one out ------------------------------------------------------------------------


def _odd(outlier: OddOne | None, by_itself: list[str]) -> Finding | None:
    if outlier is not None and outlier.significant:
        count = f"all {outlier.voting}" if len(outlier.views) == outlier.voting else f"{len(outlier.views)}"
        text = f"{outlier.name}: of all networks it is least like the others, by {count} ways of looking "
        text += f"({listed(outlier.views)})."
        return Finding(text, f"Ways that pick at random would agree so with p = {outlier.p:.2g}.", "matrix")
    return _alone(by_itself) if len(by_itself) == 1 else None


def _alone(by_itself: list[str]) -> Finding | None:
    """The networks that are in no family with others."""
    if not by_itself:
        return None
    verb = "is" if len(by_itself) == 1 else "are each"
    return Finding(
        f"{listed(by_itself)} {verb} in no family with any other network.", "Families are tested on the map.", "map"
    )


# --- what to do next ---------------------------------------------------------------------------------


def _next(material: Material, panels: list[Panel], score: ScoreGrid | None) -> Iterator[Finding]:
    """What follows, the most urgent first."""
    if material.runs.missing:
        yield Finding("Finish the run: the same command resumes where it was stopped.", "", "provenance")
    yield from _weak(material.networks)
    advice = {finding.panel: finding for panel in panels for finding in panel.advice}
    yield from (advice[panel] for panel in ("attacks", "disagreement", "classes", "layers") if panel in advice)
    yield from _more_evidence(material, score)


def _weak(networks: ReportNetworks) -> Iterator[Finding]:
    """Networks that are surely less accurate than the others."""
    inside = [name for name in networks.accuracies if name not in networks.outside]
    if not inside:
        return
    least, most = (end(networks.accuracies[name] for name in inside) for end in (min, max))
    weak = [name for name in networks.outside if networks.accuracies[name] < least]
    if not weak:
        return
    shares = [100 * networks.accuracies[name] for name in weak]
    own = f"{shares[0]:.0f} %" if len(weak) == 1 else f"{min(shares):.0f} to {max(shares):.0f} %"
    others = f"{100 * least:.0f} to {100 * most:.0f} %" if len(inside) > 1 else f"{100 * least:.0f} %"
    verb, them = ("is", "it") if len(weak) == 1 else ("are", "them")
    yield Finding(
        f"Find out why {listed(sorted(weak))} {verb} right on only {own} of inputs (the others on {others}), and "
        f"compare the others without {them}.",
        "Intervals of these accuracies over inputs, held over all pairs of networks, lie apart.",
        "networks",
    )


def _more_evidence(material: Material, score: ScoreGrid | None) -> Iterator[Finding]:
    """What to run to be able to say more."""
    if score is None:
        return
    if not score.has_null and not any(other.view == VIEWS[2] for other in material.scores):
        yield Finding(
            "Compare again with --calibrate --intervals: so far, nothing tells these scores from chance.",
            "No null was recorded.",
            "matrix",
        )
    else:
        inputs = f" ({score.n} so far)" if score.n else ""
        yield Finding(f"Show the networks more inputs{inputs}: that narrows every interval.", "", "matrix")


# --- the table ---------------------------------------------------------------------------------------


def _row(material: Material, score: ScoreGrid | None, i: int, odd: str | None) -> NetworkRow:
    networks = material.networks
    name = networks.names[i]
    accuracy = networks.accuracies.get(name, float("nan"))
    count = networks.counts.get(name, 0)
    low, high = wilson(accuracy, count) if count > 1 and accuracy == accuracy else (float("nan"), float("nan"))
    alike = np.full(1, np.nan) if score is None else score.alike[i]
    nearest, value = "", float("nan")
    if score is not None and np.isfinite(alike).any():
        j = int(np.nanargmax(alike))
        nearest, value = networks.names[j], score.sign * float(alike[j])
    notes = ["the odd one out"] if name == odd else []
    notes += ["accuracy far from the others'"] if name in networks.outside else []
    notes += ["not trained"] if name in networks.untrained else []
    single = name in alone(networks)
    family = networks.family(name)
    return NetworkRow(name, accuracy, low, high, family, nearest, value, single, name == odd, ", ".join(notes))
