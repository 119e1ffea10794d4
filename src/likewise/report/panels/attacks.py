"""The panel of attacks: who falls together, who stands, which ensemble and teacher to pick, and what that is worth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from likewise.analysis.component_analysis import component_importance
from likewise.analysis.picks import Pick, pick_ensemble
from likewise.analysis.teachers import TeacherPick, pick_teacher
from likewise.errors import LikewiseError
from likewise.matrices.score import LEVEL
from likewise.report.families import Zoo
from likewise.report.findings import Finding
from likewise.report.panels.matrix import Panel
from likewise.report.panels.packing import number, packed
from likewise.report.runs import Runs
from likewise.transfer.matrix import TransferMatrix
from likewise.transfer.success_rates import wilson

SIZE = 3  # members of the ensemble that is picked
LEAST = 20  # networks of which component importance says anything


def attacks_panel(runs: Runs, zoo: Zoo) -> tuple[Panel | None, list[Finding]]:
    """What fools one network and another, and what follows from it."""
    if not runs.transfers:
        return None, []
    matrix = runs.transfers[0]
    matrix = matrix.reordered([name for name in zoo.names if name in matrix.names])
    ensemble, teacher = _ensemble(matrix), _teacher(matrix)
    found = [*_robust(matrix), *_together(matrix), *_ensemble_finding(ensemble), *_teacher_finding(teacher)]
    about = matrix.about
    attack = ", ".join(f"{key} {about[key]}" for key in ("attack", "eps", "iterations") if key in about)
    own = np.diag(matrix.rates)
    strongest = matrix.names[int(np.nanargmin(own))] if np.isfinite(own).any() else "none"
    panel = Panel(
        "attacks",
        "Does what fools one network fool another?",
        f"{len(matrix)} networks, {len(matrix.labels)} inputs{f' ({attack})' if attack else ''}. {strongest} is "
        f"fooled least by "
        f"its own examples ({np.nanmin(own):.0%}).",
        "A cell is the share of inputs, among those both networks classify correctly, on which the example made from "
        "the row "
        "fools the column. The diagonal is how often an attack fools the very network it was made for. Bright columns "
        "are easily "
        "fooled by anybody, bright rows make examples that travel. Examples travel between alike networks.",
        {
            "networks": [zoo.names.index(name) for name in matrix.names],
            "rates": packed(matrix.rates),
            "counts": packed(matrix.counts),
            "mistakes": packed(matrix.same_mistakes),
            "own": [_own(matrix, i) for i in range(len(matrix))],
            "importance": _importance(matrix, zoo),
            "ensemble": None if ensemble is None else _trial(ensemble),
            "teacher": None if teacher is None else _teacher_rows(teacher),
        },
        _warnings(matrix),
        ("rates", "own", "picks"),
    )
    return panel, found


def _warnings(matrix: TransferMatrix) -> tuple[str, ...]:
    few = int((matrix.counts < 30).sum()) - int((np.diag(matrix.counts) < 30).sum())
    if not few:
        return ()
    return (f"{few // 2} pairs have fewer than 30 inputs that both classify correctly: their rates are rough.",)


def _own(matrix: TransferMatrix, i: int) -> dict[str, Any]:
    """How often a network is fooled by its own examples, with an interval over inputs (Wilson)."""
    rate, count = float(matrix.rates[i, i]), int(matrix.counts[i, i])
    low, high = wilson(rate, count) if count else (np.nan, np.nan)
    accuracy = number(matrix.accuracies[i])
    return {"rate": number(rate), "low": number(low), "high": number(high), "count": count, "accuracy": accuracy}


def _robust(matrix: TransferMatrix) -> Iterator[Finding]:
    own = [_own(matrix, i) for i in range(len(matrix))]
    known = sorted((i for i, one in enumerate(own) if one["rate"] is not None), key=lambda i: own[i]["rate"])
    if len(known) < 2:
        return
    first, second = known[:2]
    a, b = own[first], own[second]
    apart = a["high"] < b["low"]
    text = (
        f"{matrix.names[first]} withstands its own attack best: {a['rate']:.0%} [{a['low']:.0%}, {a['high']:.0%}] of "
        f"{a['count']} inputs fool it, {matrix.names[second]} {b['rate']:.0%} [{b['low']:.0%}, {b['high']:.0%}]."
    )
    how = "The intervals lie apart." if apart else "The intervals overlap."
    if not apart:
        text = f"Which network withstands attacks best cannot be told (n = {a['count']}): {text}"
    yield Finding(text, f"Intervals over inputs (Wilson, 95 %). {how}", "attacks", apart)


def _together(matrix: TransferMatrix) -> Iterator[Finding]:
    """The pair that falls together most, against the pair in the middle."""
    from scipy.stats import binomtest

    rates = matrix.percent / 100
    upper = np.triu_indices(len(matrix), 1)
    known = [(float(rates[i, j]), int(i), int(j)) for i, j in zip(*upper, strict=True) if np.isfinite(rates[i, j])]
    if len(known) < 3:
        return
    rate, i, j = max(known)
    middle = float(np.median([value for value, *_ in known]))
    count = 2 * int(matrix.counts[i, j])  # examples of either network
    low, high = wilson(rate, count)
    p = min(1.0, len(known) * binomtest(round(rate * count), count, middle, alternative="greater").pvalue)
    told = p <= LEVEL
    text = (
        f"{matrix.names[i]} and {matrix.names[j]} fall together most: what fools one fools the other on {rate:.0%} "
        f"[{low:.0%}, {high:.0%}] of {int(matrix.counts[i, j])} inputs; the pair in the middle, {middle:.0%}."
    )
    if not told:
        text = (
            f"Whether any pair falls together more than others cannot be told (n = {int(matrix.counts[i, j])}): {text}"
        )
    chance = f"As many in a pair like the one in the middle: p = {p:.2g}, corrected for {len(known)} pairs."
    yield Finding(text, chance, "attacks", told)


def _ensemble(matrix: TransferMatrix) -> Pick | None:
    if matrix.answers is None or len(matrix) < SIZE + 1:
        return None
    try:
        return pick_ensemble(matrix, matrix.answers, SIZE)
    except LikewiseError:  # no network errs, or pairs without a score
        return _without_undefined(matrix)


def _without_undefined(matrix: TransferMatrix) -> Pick | None:
    """The same among networks that have a score with all others."""
    kept = [name for i, name in enumerate(matrix.names) if np.isfinite(matrix.values[i]).all()]
    if len(kept) <= SIZE or len(kept) == len(matrix) or matrix.answers is None:
        return None
    try:
        return pick_ensemble(matrix.reordered(kept), matrix.answers.subset(kept), SIZE)
    except LikewiseError:
        return None


def _ensemble_finding(pick: Pick | None) -> Iterator[Finding]:
    if pick is None or pick.held_out is None:
        return
    gain, errors = pick.held_out.gains["random"], pick.held_out.errors["pick"]
    told = gain.low > 0
    members = ", ".join(pick.members)
    number_of = f"{100 * gain.value:.2f} points [{100 * gain.low:.2f}, {100 * gain.high:.2f}]"
    text = (
        f"As an ensemble, pick {members}: on held-out inputs it errs {100 * errors.value:.1f} %, {number_of} "
        f"less than random members."
    )
    if not told:
        text = (
            f"Which ensemble to pick cannot be told (n = {pick.held_out.inputs}): {members} would err {number_of} "
            f"less than random members."
        )
    yield Finding(
        text,
        f"Tried on {pick.held_out.inputs} inputs that the choice was not made on; 0 is the gain of chance.",
        "attacks",
        told,
    )


def _teacher(matrix: TransferMatrix) -> TeacherPick | None:
    kept = [name for i, name in enumerate(matrix.names) if np.isfinite(matrix.values[i]).all()]
    if len(kept) < 4:
        return None
    part = matrix.reordered(kept)
    sound = np.where(part.accuracies > 0.5, part.accuracies, np.inf)  # who knows nothing is no student to advise
    weakest = kept[int(sound.argmin())]
    try:
        return pick_teacher(weakest, part, answers=part.answers)
    except LikewiseError:
        return None


def _teacher_finding(pick: TeacherPick | None) -> Iterator[Finding]:
    if pick is None:
        return
    yield Finding(
        f"Whom {pick.student} should learn from cannot be told here (n = 0 students tried); the advice of one study is "
        f"{pick.teacher}, the {pick.rule}.",
        "Over 25 teachers of one student, likeness went with accuracy by -0.51 (p = 0.03, uncorrected); chance is 0.",
        "attacks",
        False,
    )


def _trial(pick: Pick) -> dict[str, Any]:
    assert pick.held_out is not None
    rows = [
        [choice, *(number(value) for value in row)]
        for choice, row in zip(*_split(pick.held_out.to_frame()), strict=True)
    ]
    return {
        "members": list(pick.members),
        "reasons": list(pick.reasons),
        "columns": list(pick.held_out.to_frame().columns),
        "rows": rows,
    }


def _split(frame: Any) -> tuple[list[str], list[list[float]]]:
    return [str(name) for name in frame.index], frame.to_numpy().tolist()


def _teacher_rows(pick: TeacherPick) -> dict[str, Any]:
    rows = [
        [
            str(name),
            number(row["similarity"]),
            "yes" if row["same_family"] else "no",
            number(row["accuracy"]),
            "yes" if row["considered"] else "no",
        ]
        for name, row in pick.candidates.iterrows()
    ]
    return {"teacher": pick.teacher, "student": pick.student, "reasons": list(pick.reasons), "rows": rows}


def _importance(matrix: TransferMatrix, zoo: Zoo) -> dict[str, Any] | None:
    """Which components go with transfer, where there are networks enough to tell."""
    table = {name: dict(zoo.components[name]) for name in matrix.names if name in zoo.components}
    if len(table) < max(LEAST, len(matrix)) or not np.isfinite(matrix.values[~np.eye(len(matrix), dtype=bool)]).all():
        return None
    try:
        found = component_importance(matrix, table)
    except LikewiseError:
        return None
    rows = [[name, number(value), number(found.held_out[name])] for name, value in found.all_pairs.items()]
    return {"rows": rows, "r2": number(found.r2), "r2_held_out": number(found.r2_held_out)}
