"""Does what fools one network fool another? Attack transfer, robustness, and which ensemble and teacher to pick."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from likewise.analysis.component_analysis import component_importance
from likewise.analysis.picks import Pick, pick_ensemble
from likewise.analysis.teachers import TeacherPick, pick_teacher
from likewise.errors import LikewiseError
from likewise.matrices.score import LEVEL
from likewise.matrices.shares import wilson
from likewise.report.families import ReportNetworks
from likewise.report.panels.panel import Finding, Material, Panel, pack, rounded, tested
from likewise.report.words import listed, with_full_name
from likewise.transfer.matrix import TransferMatrix

SIZE = 3  # members of the ensemble
LEAST = 20  # component importance needs so many networks
ROUGH = 30  # inputs below which a rate is rough


def panel(material: Material) -> Panel | None:
    """Rates of attack transfer, and what follows from them."""
    networks = material.networks
    if not material.runs.transfers:
        return None
    matrix = material.runs.transfers[0]
    matrix = matrix.reordered([name for name in networks.names if name in matrix.names])
    fair = matrix.reordered([name for name in matrix.names if name not in networks.outside])
    ensemble, teacher = _ensemble(fair), _teacher(fair, networks)
    about = matrix.about
    attack = _attack(about)
    fooled = np.diag(fair.rates)
    strongest = ""
    if np.isfinite(fooled).any():
        name = fair.names[int(np.nanargmin(fooled))]
        strongest = f" {name} is fooled least by its own examples ({np.nanmin(fooled):.0%})."
    rough = int((matrix.counts < ROUGH).sum()) - int((np.diag(matrix.counts) < ROUGH).sum())
    return Panel(
        "attacks",
        "Does what fools one network fool another?",
        f"{len(matrix)} networks, {len(matrix.labels)} inputs{f', {attack}' if attack else ''}.{strongest}",
        "A cell is the share of inputs, among those both networks classify correctly, on which the example made from "
        "the row fools the column. The diagonal is how often an attack fools the network it was made for. Bright "
        "columns are easily fooled by any examples, bright rows make examples that transfer. Examples transfer between "
        "alike networks.",
        {
            "networks": [networks.names.index(name) for name in matrix.names],
            "rates": pack(matrix.rates),
            "counts": pack(matrix.counts),
            "mistakes": pack(matrix.same_mistakes),
            "own": [_robustness(matrix, i) for i in range(len(matrix))],
            "importance": _importance(matrix, networks),
            "ensemble": None if ensemble is None else _ensemble_rows(ensemble),
            "teacher": None if teacher is None else _teacher_rows(teacher),
        },
        (f"{rough // 2} pairs have fewer than {ROUGH} inputs that both classify correctly: their rates are rough.",)
        if rough
        else (),
        ("rates", "own", "picks"),
        (*_most_robust(fair), *_most_transfer(fair), *_ensemble_finding(ensemble), *_teacher_finding(teacher)),
        tuple(_ensemble_advice(ensemble)),
    )


def _attack(about: Mapping[str, Any]) -> str:
    """The attack and how far it goes, in words."""
    if "attack" not in about:
        return ""
    options = {**about, **(about.get("options") or {})}
    size = [f"{key} {options[key]}" for key in ("eps", "iterations") if options.get(key) is not None]
    return f"attacked by {', '.join([with_full_name(str(about['attack'])), *size])}"


def _robustness(matrix: TransferMatrix, i: int) -> dict[str, Any]:
    """How often a network is fooled by its own examples, with an interval over inputs (Wilson)."""
    rate, count = float(matrix.rates[i, i]), int(matrix.counts[i, i])
    low, high = wilson(rate, count) if count else (np.nan, np.nan)
    numbers = {"rate": rate, "low": low, "high": high, "accuracy": matrix.accuracies[i]}
    return {"count": count, **{name: rounded(value) for name, value in numbers.items()}}


def _most_robust(matrix: TransferMatrix) -> Iterator[Finding]:
    rates = {name: _robustness(matrix, i) for i, name in enumerate(matrix.names)}
    names = sorted((name for name in rates if rates[name]["rate"] is not None), key=lambda name: rates[name]["rate"])
    if len(names) < 2:
        return
    a, b = rates[names[0]], rates[names[1]]
    apart = a["high"] < b["low"]
    yield tested(
        f"{names[0]} withstands its own attack best: {a['rate']:.0%} [{a['low']:.0%}, {a['high']:.0%}] of {a['count']} "
        f"inputs fool it, {names[1]} {b['rate']:.0%} [{b['low']:.0%}, {b['high']:.0%}].",
        f"Intervals over inputs (Wilson, 95 %). The intervals {'lie apart' if apart else 'overlap'}.",
        "attacks",
        apart,
        f"which network withstands attacks best (n = {a['count']})",
    )


def _most_transfer(matrix: TransferMatrix) -> Iterator[Finding]:
    """The pair that is most often fooled by the same attacks, compared with the median pair."""
    from scipy.stats import binomtest

    rates = matrix.percent / 100
    upper = zip(*np.triu_indices(len(matrix), 1), strict=True)
    pairs = [(float(rates[i, j]), int(i), int(j)) for i, j in upper if np.isfinite(rates[i, j])]
    if len(pairs) < 3:
        return
    rate, i, j = max(pairs)
    median = float(np.median([value for value, *_ in pairs]))
    inputs = int(matrix.counts[i, j])
    count = 2 * inputs  # examples of either network
    p = min(1.0, len(pairs) * binomtest(round(rate * count), count, median, alternative="greater").pvalue)
    names, directed = (matrix.names[i], matrix.names[j]), (matrix.rates[i, j], matrix.rates[j, i])
    one, other = (f"{float(share):.0%} {_ends(float(share), inputs)}" for share in directed)
    yield tested(
        f"{names[0]} and {names[1]} are most often fooled by the same attacks: of {inputs} inputs, what is made from "
        f"{names[0]} fools {names[1]} on {one}, and the other way round on {other}; the median pair has {median:.0%}.",
        f"If this pair were like the median one: p = {p:.2g}, corrected for {len(pairs)} pairs.",
        "attacks",
        p <= LEVEL,
        f"whether any pair is fooled by the same attacks more often than others (n = {inputs})",
    )


def _ends(rate: float, count: int) -> str:
    low, high = wilson(rate, count)
    return f"[{low:.0%}, {high:.0%}]"


def _scored_with_all(matrix: TransferMatrix) -> TransferMatrix | None:
    """The networks that have a score with all others."""
    names = [name for i, name in enumerate(matrix.names) if np.isfinite(matrix.values[i]).all()]
    return matrix.reordered(names) if names else None


def _ensemble(matrix: TransferMatrix) -> Pick | None:
    """An ensemble of all networks, else of those that have a score with all others."""
    for candidates in (matrix, _scored_with_all(matrix)):
        if matrix.answers is None or candidates is None or len(candidates) <= SIZE:
            return None
        try:
            return pick_ensemble(candidates, matrix.answers.subset(candidates.names), SIZE)
        except LikewiseError:  # no network errs, or pairs without a score
            continue
    return None


def _ensemble_finding(pick: Pick | None) -> Iterator[Finding]:
    if pick is None or pick.held_out is None:
        return
    gain, errors, inputs = pick.held_out.gains["random"], pick.held_out.errors["pick"], pick.held_out.inputs
    members, significant = ", ".join(pick.members), gain.low > 0
    value, low, high = (100 * number for number in (gain.value, gain.low, gain.high))
    less = f"{value:.2f} points [{low:.2f}, {high:.2f}] less than random members."
    if value < 0:
        less = f"{-value:.2f} points [{-high:.2f}, {-low:.2f}] more than random members."
    text = f"As an ensemble, pick {members}: on held-out inputs it errs {100 * errors.value:.1f} %, {less}"
    if not significant:
        text = f"Not enough data to say which ensemble to pick (n = {inputs}): {members} would err {less}"
    evidence = f"Tested on {inputs} inputs that were not used for the choice; the gain of chance is 0."
    yield Finding(text, evidence, "attacks", significant)


def _ensemble_advice(pick: Pick | None) -> Iterator[Finding]:
    """The ensemble to take, where it is surely better than others of its size."""
    if pick is None or pick.held_out is None or pick.held_out.gains["random"].low <= 0:
        return
    gain, errors = (100 * number.value for number in (pick.held_out.gains["random"], pick.held_out.errors["pick"]))
    yield Finding(
        f"For an ensemble, take {listed(pick.members)}: together they err on {errors:.1f} % of held-out inputs, "
        f"{gain:.1f} points less than {SIZE} networks at random.",
        "The interval of the gain lies above 0, on inputs that were not used for the choice.",
        "attacks",
    )


def _teacher(matrix: TransferMatrix, networks: ReportNetworks) -> TeacherPick | None:
    """A teacher for the weakest network that is right on more than half."""
    candidates = _scored_with_all(matrix)
    if candidates is None or len(candidates) < 4:
        return None
    sound = np.where(candidates.accuracies > 0.5, candidates.accuracies, np.inf)
    try:
        families = None if networks.families is None else networks.families.clusters  # one set of them per report
        student = candidates.names[int(sound.argmin())]
        return pick_teacher(student, candidates, families=families, answers=candidates.answers)
    except LikewiseError:
        return None


def _teacher_finding(pick: TeacherPick | None) -> Iterator[Finding]:
    if pick is not None:
        yield Finding(
            f"Not enough data to say which teacher {pick.student} should learn from (n = 0 students trained); the "
            f"advice of one study is {pick.teacher}, the {pick.rule}.",
            "Over 25 teachers of one student, similarity correlated -0.51 with accuracy (p = 0.03, uncorrected); "
            "chance is 0.",
            "attacks",
            False,
        )


def _ensemble_rows(pick: Pick) -> dict[str, Any]:
    assert pick.held_out is not None
    frame = pick.held_out.to_frame()
    rows = [[str(name), *map(rounded, row)] for name, row in zip(frame.index, frame.to_numpy().tolist(), strict=True)]
    sure = pick.held_out.gains["random"].low > 0
    facts = {"members": list(pick.members), "reasons": list(pick.reasons), "sure": sure}
    return {**facts, "columns": list(frame.columns), "rows": rows}


def _teacher_rows(pick: TeacherPick) -> dict[str, Any]:
    words = {True: "yes", False: "no"}
    rows = [
        [
            str(name),
            rounded(row["similarity"]),
            words[bool(row["same_family"])],
            rounded(row["accuracy"]),
            words[bool(row["considered"])],
        ]
        for name, row in pick.candidates.iterrows()
    ]
    return {"teacher": pick.teacher, "student": pick.student, "reasons": list(pick.reasons), "rows": rows}


def _importance(matrix: TransferMatrix, networks: ReportNetworks) -> dict[str, Any] | None:
    """Which components explain transfer, where there are networks enough to say."""
    table = {name: dict(networks.components[name]) for name in matrix.names if name in networks.components}
    off_diagonal = matrix.values[~np.eye(len(matrix), dtype=bool)]
    if len(table) < max(LEAST, len(matrix)) or not np.isfinite(off_diagonal).all():
        return None
    try:
        importance = component_importance(matrix, table)
    except LikewiseError:
        return None
    rows = [[name, rounded(value), rounded(importance.held_out[name])] for name, value in importance.all_pairs.items()]
    return {"rows": rows, "r2": rounded(importance.r2), "r2_held_out": rounded(importance.r2_held_out)}
