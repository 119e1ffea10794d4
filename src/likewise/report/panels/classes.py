"""The panel of classes: which a network finds alike, epoch by epoch, what it confuses, and how networks differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from likewise._base.arrays import Array
from likewise.classes.agreement import alignment
from likewise.classes.epoch_report import panels
from likewise.classes.films import LARGEST, TITLES
from likewise.classes.inspector import Inspector
from likewise.errors import LikewiseError
from likewise.matrices.score import LEVEL
from likewise.report.families import Zoo
from likewise.report.findings import Finding
from likewise.report.panels.matrix import Panel
from likewise.report.panels.packing import number, packed
from likewise.report.runs import Runs

FRAMES = 40  # epochs in the slider


def classes_panel(runs: Runs, zoo: Zoo) -> tuple[Panel | None, list[Finding]]:
    """Which classes networks find alike, and which they confuse."""
    confused = _confusions(runs)
    films = [_film(name, one) for name, one in runs.inspections.items()]
    still = [_still(name, matrix) for name, matrix in runs.classes.items() if len(matrix) <= LARGEST]
    films = [film for film in [*films, *still] if film is not None]
    found = [
        *_alignment(runs),
        *(_zoo_confusions(confused) if confused else ()),
        *(_drift(confused) if confused else ()),
    ]
    if not films and confused is None:
        return None, found
    answer = f"{len(runs.inspections)} training{'s' * (len(runs.inspections) != 1)} watched."
    if confused is not None:
        wrong = confused["total"].sum() - np.trace(confused["total"])
        i, j = divmod(
            int(np.where(np.eye(len(confused["total"])), -1, confused["total"]).argmax()), len(confused["total"])
        )
        names = confused["classes"]
        answer += (
            f" Over all networks, {names[i]} is taken for {names[j]} most often: {int(confused['total'][i, j])} of "
            f"{int(wrong)} mistakes."
        )
    data: dict[str, Any] = {"films": films, "confusion": None}
    if confused is not None:
        data["confusion"] = {
            "classes": list(confused["classes"]),
            "networks": [zoo.names.index(name) for name in confused["names"] if name in zoo.names],
            "tables": [
                packed(table)
                for name, table in zip(confused["names"], confused["tables"], strict=True)
                if name in zoo.names
            ],
        }
    return (
        Panel(
            "classes",
            "Which classes does a network find alike?",
            answer,
            "Matrices are of classes: how alike a network's weights, mistakes or features make them, off the "
            "diagonal. The slider "
            "moves through the epochs of a training; curves show the indices of every epoch, their chance level "
            "dashed, and the "
            "ends of its phases dotted. Mistakes count who was taken for whom: rows are true classes, columns are "
            "answers.",
            data,
            (),
            ("films", "confusion"),
        ),
        found,
    )


def _film(name: str, one: Inspector) -> dict[str, Any] | None:
    """The matrices and curves of a training."""
    numbers = sorted(one.records.reports)
    if not numbers or len(one.classes) > LARGEST:
        return None
    chosen = [
        numbers[i] for i in np.unique(np.linspace(0, len(numbers) - 1, min(FRAMES, len(numbers))).round().astype(int))
    ]
    frames = [one.matrices(number) for number in chosen]
    kinds = [kind for kind in TITLES if all(kind in frame for frame in frames)]
    order = (one.reference or frames[-1][kinds[0]]).order() if kinds else list(one.classes)
    table, titles, chance = one.curves(), panels(), one.chance()
    curves = [
        {"title": title, "values": [number(v) for v in table[key]], "chance": number(chance.get(key, np.nan))}
        for key, title in titles.items()
        if key in table and np.isfinite(table[key]).any()
    ]
    try:
        phases = one.phases()
        ends = [int(end) for end in (phases.surge_end, phases.refinement_end) if end is not None]
    except (LikewiseError, AttributeError):
        ends = []
    return {
        "name": name,
        "classes": order,
        "epochs": chosen,
        "all": numbers,
        "kinds": [
            {
                "title": TITLES[kind],
                "frames": packed(
                    np.stack([frame[kind].only(order).off_diagonal() for frame in frames]).reshape(-1, len(order))
                ),
            }
            for kind in kinds
        ],
        "curves": curves,
        "phases": ends,
    }


def _still(name: str, matrix: Any) -> dict[str, Any]:
    order = matrix.order()
    frames = packed(matrix.only(order).off_diagonal())
    return {
        "name": name,
        "classes": order,
        "epochs": [0],
        "all": [],
        "kinds": [{"title": matrix.short, "frames": frames}],
        "curves": [],
        "phases": [],
    }


def _confusions(runs: Runs) -> dict[str, Any] | None:
    """Who was taken for whom by each network, where answers and labels are known."""
    for one in runs.inputs:
        if (one.labels >= 0).all() and (one.predictions >= 0).all():
            count = int(max(one.labels.max(), one.predictions.max())) + 1
            names = one.classes if len(one.classes) >= count else tuple(map(str, range(count)))
            return _tables(one.names, one.labels, one.predictions, names)
    for matrix in runs.transfers:
        if matrix.answers is not None:
            count = matrix.answers.logits.shape[2]
            return _tables(
                matrix.names,
                matrix.labels,
                matrix.answers.subset(matrix.names).predictions,
                tuple(map(str, range(count))),
            )
    return None


def _tables(names: Any, labels: Array, predictions: Array, classes: Any) -> dict[str, Any] | None:
    count = len(classes)
    if not 2 < count <= LARGEST:
        return None
    tables = np.zeros((len(names), count, count))
    for table, answers in zip(tables, predictions, strict=True):
        np.add.at(table, (labels, answers), 1)
    return {
        "names": tuple(names),
        "classes": classes,
        "tables": tables,
        "total": tables.sum(axis=0),
        "predictions": predictions,
        "labels": labels,
    }


def _zoo_confusions(found: dict[str, Any]) -> Iterator[Finding]:
    """The classes most often confused, against mistakes that fall anywhere; each input counts once."""
    from scipy.stats import binomtest

    labels, classes = found["labels"], found["classes"]
    sound = (found["predictions"] == labels).mean(axis=1) > 0.5  # whose mistakes are mistakes, not noise
    answers = found["predictions"][sound]
    wrong = answers != labels
    inputs = np.flatnonzero(wrong.any(axis=0))
    if not len(inputs):
        return
    draw = np.random.default_rng(0)
    counts = np.zeros((len(classes), len(classes)))
    for row in inputs:  # one mistake per input, or networks that share an input would count as many
        chosen = draw.choice(np.flatnonzero(wrong[:, row]))
        counts[labels[row], answers[chosen, row]] += 1
    both = counts + counts.T
    i, j = divmod(int(np.triu(both, 1).argmax()), len(classes))
    pairs = len(classes) * (len(classes) - 1) // 2
    p = min(1.0, pairs * binomtest(int(both[i, j]), len(inputs), 1 / pairs, alternative="greater").pvalue)
    have = int((found["tables"][sound, i, j] + found["tables"][sound, j, i] > 0).sum())
    text = (
        f"The zoo confuses {classes[i]} and {classes[j]} most: on {int(both[i, j])} of {len(inputs)} inputs that any "
        f"network "
        f"errs on, by {have} of {int(sound.sum())} networks that are right on more than half."
    )
    if p > LEVEL:
        text = (
            f"Whether the zoo confuses any two classes more than others cannot be told (n = {len(inputs)} "
            f"inputs): {text}"
        )
    yield Finding(
        text,
        f"Mistakes that fall anywhere would give {len(inputs) / pairs:.1f} (p = {p:.2g}, corrected for {pairs} pairs "
        f"of classes).",
        "classes",
        p <= LEVEL,
    )


def _drift(found: dict[str, Any]) -> Iterator[Finding]:
    """The class on which two networks differ most: exact test of how often each alone is right, corrected for all."""
    from scipy.stats import binomtest

    right, labels = found["predictions"] == found["labels"], found["labels"]
    best: tuple[float, int, int, int, int, int] | None = None
    m, c = len(right), len(found["classes"])
    for k in range(c):
        own = right[:, labels == k].astype(int)
        only = own @ (1 - own).T  # inputs that the row gets right and the column wrong
        for i, j in np.argwhere(only > only.T).tolist():
            a, b = int(only[i, j]), int(only[j, i])
            if best is None or a - b > best[1] - best[2]:
                best = (float(binomtest(a, a + b).pvalue), a, b, i, j, k)
    if best is None:
        return
    p, a, b, i, j, k = best
    tests = m * (m - 1) // 2 * c
    p = min(1.0, p * tests)
    names = found["names"]
    text = (
        f"Networks differ most on the class {found['classes'][k]}: {names[i]} alone is right on {a} inputs of "
        f"it, {names[j]} alone on {b}."
    )
    if p > LEVEL:
        text = (
            f"Whether two networks differ on any one class cannot be told (n = {int((labels == k).sum())} inputs "
            f"of it): {text}"
        )
    yield Finding(
        text,
        f"Exact test of who alone is right, chance 1 to 1: p = {p:.2g} after correction for {tests} tests.",
        "classes",
        p <= LEVEL,
    )


def _alignment(runs: Runs) -> Iterator[Finding]:
    """What a training did to the alignment with meaning, where classes have one."""
    for name, one in runs.inspections.items():
        numbers = sorted(one.records.reports)
        if one.reference is None or len(numbers) < 2:
            continue
        kind = next((k for k in ("weights", "features") if k in one.matrices(numbers[-1])), None)
        if kind is None:
            continue
        first, last = (alignment(one.matrices(n)[kind], one.reference, "pearson") for n in (numbers[0], numbers[-1]))
        told = bool(last.p <= LEVEL)
        text = (
            f"{name} ends up aligned with meaning (WordNet): {float(last):.2f}, chance 0; after the first epoch "
            f"{float(first):.2f}."
        )
        if not told:
            text = (
                f"Whether {name} is aligned with meaning cannot be told (n = {len(one.classes)} classes): "
                f"{float(last):.2f} after epoch {numbers[-1]}."
            )
        yield Finding(text, f"Correlation of {kind}; p = {last.p:.2g} by permuting the classes.", "classes", told)
