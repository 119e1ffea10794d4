"""The panels that every comparison has, as JSON can hold them: likeness, map, views, layers, provenance."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from likewise import __version__
from likewise._base.arrays import Array
from likewise._base.names import short_names
from likewise.analysis.families import embed
from likewise.errors import LikewiseError
from likewise.matrices.layers import LayerMatrix
from likewise.matrices.score import range_text, untrained_note
from likewise.report.families import Zoo
from likewise.report.grids import Scored
from likewise.report.panels.disagreement import Gap, View, rank_agreement
from likewise.report.panels.packing import number, packed
from likewise.report.runs import Runs

FEW_INPUTS = 100
CLOSE = 0.04  # how far accuracies may lie apart before some measures mostly tell them


@dataclass(frozen=True)
class Panel:
    """One question: its answer in a line, what has to be known to read it, and the data that is drawn."""

    id: str
    question: str
    answer: str
    how: str
    data: Any
    warnings: tuple[str, ...] = ()
    blocks: tuple[str, ...] = field(default=())  # places for charts, by name


def networks(zoo: Zoo) -> list[dict[str, Any]]:
    """The networks in the order of the report."""
    short = tick_names(zoo.names)
    return [
        {
            "name": name,
            "short": brief,
            "family": zoo.family(name),
            "accuracy": number(zoo.accuracies.get(name, np.nan)),
            "components": zoo.components.get(name, {}),
        }
        for name, brief in zip(zoo.names, short, strict=True)
    ]


def tick_names(names: Sequence[str], most: int = 22) -> list[str]:
    """Names for an axis: without the ending that all share, cut in the middle, numbered where that makes two the same.

    >>> tick_names(["vit_small_patch16_224", "vit_tiny_patch16_224"])
    ['vit_small', 'vit_tiny']
    >>> tick_names(["a" * 30 + "1" + "b" * 30, "a" * 30 + "2" + "b" * 30])
    ['1 aaaaaaaaaaa…bbbbbbb', '2 aaaaaaaaaaa…bbbbbbb']
    """
    address = re.compile(r"[\w./@:,=#+-]+")
    short = short_names(names) if all(address.fullmatch(name) for name in names) else list(names)
    if len(short) > 1 and max(map(len, short)) > most // 2:
        ending = _common_ending(short)
        ending = ending[min((place for place, sign in enumerate(ending) if sign in "_-./"), default=len(ending)) :]
        if ending and all(len(name) > len(ending) for name in short):
            short = [name.removesuffix(ending) for name in short]
    found = [name if len(name) <= most else f"{name[: most // 2 + 1]}…{name[-(most // 3) :]}" for name in short]
    if len(set(found)) == len(found):
        return found
    return [
        f"{number} {name if len(name) < 20 else name[: most // 2] + '…' + name[-(most // 3) :]}"
        for number, name in enumerate(short, 1)
    ]


def _common_ending(names: Sequence[str]) -> str:
    """The letters that all names end in."""
    count = 0
    while all(len(name) > count and name[-1 - count] == names[0][-1 - count] for name in names):
        count += 1
    return names[0][len(names[0]) - count :]


def families(zoo: Zoo) -> list[dict[str, Any]]:
    """The families, with their keywords."""
    if zoo.families is None:
        return []
    words = zoo.families.keywords or [[]] * zoo.families.found.k
    return [
        {"members": len(group), "keywords": list(own)}
        for group, own in zip(zoo.families.found.groups(), words, strict=True)
    ]


def likeness(zoo: Zoo, scores: Sequence[Scored]) -> Panel:
    """Which networks are alike, by every measure."""
    found = [_measure(one, zoo) for one in scores]
    listed = f"{len(scores)} measure{'s' * (len(scores) > 1)}"
    pairs = len(zoo.names) * (len(zoo.names) - 1) // 2
    told = [int((one.q[np.triu_indices(len(one.q), 1)] <= 0.05).sum()) for one in scores if one.has_null]
    chance = (
        f" By {scores[0].label}, {told[0]} pairs are more alike than chance (q ≤ 0.05)."
        if told and scores[0].has_null
        else ""
    )
    return Panel(
        "likeness",
        "Which networks are alike?",
        f"{len(zoo.names)} networks, {pairs} pair{'s' * (pairs > 1)}, {listed}.{chance}",
        "Bright is alike and dark is unlike, whichever way a measure runs; grey is undefined. Point at a cell, or "
        "move with "
        "the arrow keys, for its value, what chance gives, its interval over inputs and the number of inputs. Click "
        "it, or "
        "press Enter, for everything that is known of the pair. Ranks are shares of pairs that are less alike.",
        {"measures": found},
        tuple(_warnings(zoo, scores)),
        ("matrix", "pair"),
    )


def _measure(one: Scored, zoo: Zoo) -> dict[str, Any]:
    matrix, places = one.matrix, {name: place for place, name in enumerate(zoo.names)}
    grids = {"values": one.values, "ranks": one.ranks, "null": one.null, "q": one.q, "low": one.low, "high": one.high}
    return {
        "label": one.label,
        "view": one.view,
        "larger_is": matrix.larger_is,
        "range": range_text(matrix.bounds),
        "n": one.n,
        "scale": _scale(one),
        "reasons": [[places[a], places[b], reason] for (a, b), reason in matrix.reasons.items()],
        "saturated": [[places[a], places[b]] for a, b in matrix.saturated],
        "notes": [*matrix.legend(), *matrix.notes()],
        **{name: packed(grid) for name, grid in grids.items() if name == "values" or np.isfinite(grid).any()},
    }


def _scale(one: Scored) -> list[float]:
    """Between which values colours run: those of the pairs, and the ends of the range where they are near."""
    values = one.values[~np.eye(len(one.values), dtype=bool)]
    values = values[np.isfinite(values)]
    if not len(values):
        return [0.0, 1.0]
    low, high = float(values.min()), float(values.max())
    reach = high - low
    first, last = one.matrix.bounds
    if reach == 0:  # one pair: where it lies between 0 and the largest there can be
        return [min(0.0, low), float(last) if last is not None and np.isfinite(last) else max(2 * high, 1.0)]
    low = float(first) if first is not None and low - first < reach / 2 else low
    high = float(last) if last is not None and last - high < reach / 2 else high
    return [low, high]


def _warnings(zoo: Zoo, scores: Sequence[Scored]) -> list[str]:
    lines = [zoo.note] if zoo.note else []
    if zoo.untrained:
        lines.append(untrained_note(", ".join(sorted(zoo.untrained))))
    few = sorted({one.n for one in scores if 0 < one.n < FEW_INPUTS})
    if few:
        lines.append(f"Few inputs: {few[0]}. Many measures are far from what more inputs would give.")
    full = [one.label for one in scores if one.matrix.saturated]
    if full:
        lines.append(
            f"Saturated for some pairs, where any network of that width would score the same: {', '.join(full)}."
        )
    known = [zoo.accuracies[name] for name in zoo.names if name in zoo.accuracies]
    if known and max(known) - min(known) > CLOSE:
        lines.append(
            f"Accuracies lie {100 * (max(known) - min(known)):.0f} points apart, from {100 * min(known):.0f} to "
            f"{100 * max(known):.0f} %: answers and attack transfer partly tell accuracy."
        )
    return lines


def map_panel(zoo: Zoo, scores: Sequence[Scored]) -> Panel | None:
    """Where the networks lie, by every measure that has a score for all pairs."""
    found = [{"label": one.label, **places} for one in scores if (places := _maps(one, zoo))]
    if not found or len(zoo.names) < 3:
        return None
    stress = found[0]["mds"]["stress"]
    answer = f"By {found[0]['label']}, distances on the map differ from the true ones by {100 * stress:.0f} % (stress)."
    if zoo.families is not None:
        count = zoo.families.found.k
        answer = f"{count} families by {zoo.families.found.matrix.measure}. {answer}"
    return Panel(
        "map",
        "Where do the networks lie?",
        answer,
        "Alike networks are near each other. Classical scaling (MDS) keeps distances as well as two dimensions can; "
        "stress "
        "says how badly: below 10 % the map may be trusted, above 20 % look at the matrix instead. Spectral is the "
        "map in "
        "which families are found. Colours and marks are families, everywhere in this report.",
        {"maps": found},
        () if stress < 0.2 else (f"Two dimensions hold these distances badly (stress {100 * stress:.0f} %).",),
        ("map",),
    )


def _maps(one: Scored, zoo: Zoo) -> dict[str, Any]:
    if len(one.matrix) < 3 or set(one.matrix.names) != set(zoo.names):
        return {}
    matrix = one.matrix.reordered(zoo.names)
    try:
        places = {how: embed(matrix, how) for how in ("mds", "spectral")}
    except LikewiseError:  # pairs without a score
        return {}
    apart = matrix.distances()
    return {how: {"xy": packed(xy), "stress": number(_stress(apart, xy))} for how, xy in places.items()}


def _stress(apart: Array, xy: Array) -> float:
    """How far distances on a map are from the true ones, after the best common factor: 0 is exact."""
    upper = np.triu_indices(len(apart), 1)
    shown = np.linalg.norm(xy[:, None] - xy[None], axis=-1)[upper]
    true = apart[upper]
    factor = (shown @ true) / max(float(shown @ shown), 1e-300)
    return float(np.sqrt(((factor * shown - true) ** 2).sum() / max(float((true**2).sum()), 1e-300)))


def views_panel(zoo: Zoo, scores: Sequence[Scored], views: Sequence[View], gaps: Sequence[Gap]) -> Panel | None:
    """Where representations, answers, attacks and classes disagree."""
    if len(scores) < 2 or len(zoo.names) < 3:
        return None
    found = rank_agreement(scores)
    names = zoo.names
    listed = [
        {
            "a": names.index(gap.a),
            "b": names.index(gap.b),
            "spread": number(gap.spread),
            "told": gap.told,
            "text": gap.sentence,
        }
        for gap in gaps[:50]
    ]
    answer = f"{len(views)} view{'s' * (len(views) > 1)}: {', '.join(view.name for view in views)}."
    if found is not None:
        upper = np.triu_indices(len(scores), 1)
        known = np.isfinite(found["q"][upper])
        sure = int((found["q"][upper][known] <= 0.05).sum())
        answer += f" Of {int(known.sum())} pairs of measures, {sure} rank the networks alike beyond chance (q ≤ 0.05)."
    else:
        answer += f" Whether measures rank pairs alike cannot be told (n = {len(names)} networks)."
    return Panel(
        "views",
        "Where do the views disagree?",
        answer,
        "Every measure ranks the pairs of networks by likeness. The matrix says how far two measures give the same "
        "ranks: "
        "Spearman's correlation, with a 95 % interval over networks, and Mantel's test, which permutes networks, "
        "since pairs "
        "share them. Below it, the pairs that views rank most differently; those marked ● hold up where scores move "
        "as far "
        "as their intervals, widened for the number of pairs.",
        {
            "agreement": None if found is None else {name: packed(grid) for name, grid in found.items()},
            "labels": [one.label for one in scores],
            "kinds": [one.view for one in scores],
            "views": [{"name": view.name, "ranks": packed(view.ranks)} for view in views],
            "gaps": listed,
        },
        (),
        ("agreement", "gaps"),
    )


def layers_panel(layers: Sequence[LayerMatrix]) -> Panel | None:
    """Which layers of two networks are alike."""
    if not layers:
        return None
    found, lines = [], []
    for one in layers:
        sign = -1 if one.larger_is == "less alike" else 1
        if np.isfinite(one.values).any():
            row, column = map(int, np.unravel_index(np.nanargmax(sign * one.values), one.values.shape))
            lines.append(
                f"The most alike layers of {one.a} and {one.b} are {one.rows[row]} and {one.columns[column]} "
                f"({one.measure} {one.values[row, column]:.3g})."
            )
        facts = {"a": one.a, "b": one.b, "rows": list(one.rows), "columns": list(one.columns), "measure": one.measure}
        found.append({**facts, "larger_is": one.larger_is or "more alike", "values": packed(one.values)})
    return Panel(
        "layers",
        "Which layers are alike?",
        lines[0] if lines else "No pair of layers has a score.",
        "Layers of the first network upwards, of the second to the right, both from the input on. A bright diagonal "
        "says that "
        "both networks do the same in the same order; a bright block, that several layers do the same.",
        {"layers": found},
        (),
        ("layers",),
    )


def provenance(runs: Runs, scores: Sequence[Scored]) -> Panel:
    """What the report was made of, and how to make it again."""
    import torch

    versions = {"likewise": __version__, "python": platform.python_version(), "torch": torch.__version__}
    versions |= {"numpy": np.__version__}
    made = {str(one.matrix.about["likewise"]) for one in scores if "likewise" in one.matrix.about}
    facts = []
    for one in scores:
        about = {
            key: value
            for key, value in one.matrix.about.items()
            if key not in ("likewise", "untrained") and value not in ("", {}, None)
        }
        facts.append((one.label, ", ".join(f"{key} {_word(value)}" for key, value in about.items())))
    data = {"versions": versions, "sources": runs.sources, "commands": runs.commands, "facts": facts}
    others = sorted(made - {__version__})
    return Panel(
        "provenance",
        "How was this made?",
        f"By likewise {__version__}, from {len(runs.sources)} result{'s' * (len(runs.sources) != 1)}.",
        "Every result says which version made it, from how many inputs, with which seed and probe (a hash of the "
        "inputs and "
        "their order). The commands repeat the runs.",
        data,
        (f"Some results are of another version of likewise: {', '.join(others)}.",) if others else (),
    )


def _word(value: Any) -> str:
    if isinstance(value, dict):
        return "(" + ", ".join(f"{key} {_word(each)}" for key, each in value.items()) + ")"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
