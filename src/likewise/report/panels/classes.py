"""Which classes does a network find alike? Epoch by epoch, which classes are confused, and how networks differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise._base.arrays import Array
from likewise.classes.agreement import alignment
from likewise.classes.epoch_report import panels as curve_titles
from likewise.classes.from_sources import count_pairs
from likewise.classes.inspector import Inspector
from likewise.classes.pictures import LARGEST, TITLES
from likewise.classes.similarity import ClassSimilarity
from likewise.errors import LikewiseError
from likewise.matrices.heatmap import colour_range
from likewise.matrices.score import LEVEL
from likewise.report.panels.panel import Finding, Material, Panel, counted, pack, rounded, tested
from likewise.report.runs import Runs

SHORT_NAMES = (
    "NCSM, CCSM and TNCSM: matrices of class similarity, from the classifier's weights, from confusions, and from the "
    "mean features of classes. SAI (similarity alignment index): how far two of them agree. WSI (weights similarity "
    "index): how alike the rows of the classifier are. NIDM and WIDM: how near mistakes are to the truth, by the "
    "network's own similarity and by WordNet."
)
FRAMES = 40  # epochs in the slider
CONFUSED = "The networks confuse "


@dataclass(frozen=True)
class Confusions:
    """The confusion matrix of every network, (networks, true class, answer), and the answers it counts."""

    names: tuple[str, ...]
    classes: tuple[str, ...]
    labels: Array
    predictions: Array
    tables: Array

    @property
    def sound(self) -> Array:
        """Which networks are right on more than half of the inputs: the mistakes of others are noise."""
        return np.asarray((self.predictions == self.labels).mean(axis=1) > 0.5)


def panel(material: Material) -> Panel | None:
    """Class similarity by epoch, and confusion matrices."""
    runs, confusions = material.runs, _confusions(material.runs)
    trainings = [_training(name, inspector) for name, inspector in runs.inspections.items()]
    saved = [_saved(name, matrix) for name, matrix in runs.classes.items() if len(matrix) <= LARGEST]
    films = [film for film in [*trainings, *saved] if film is not None]
    findings = [*_alignment(runs)]
    answer = f"{counted(len(runs.inspections), 'training')} watched."
    data: dict[str, Any] = {"films": films, "confusion": None, "short_names": SHORT_NAMES}
    if confusions is not None:
        findings += [*_most_confused(confusions), *_class_difference(confusions)]
        answer += _most_frequent(confusions)
        names = material.networks.names
        rows = [i for i, name in enumerate(confusions.names) if name in names]
        data["confusion"] = {
            "classes": list(confusions.classes),
            "networks": [names.index(confusions.names[i]) for i in rows],
            "tables": [pack(confusions.tables[i]) for i in rows],
        }
    if not films and confusions is None and not findings:
        return None
    return Panel(
        "classes",
        "Which classes does a network find alike?",
        answer,
        "Matrices are of classes: how alike a network's weights, mistakes or features make them, 1 on the diagonal. "
        "The slider moves through the epochs of a training; curves show the indices of every epoch, their chance level "
        "dashed, and the ends of its phases dotted. In the confusion matrix, rows are true classes and columns are "
        "answers.",
        data,
        (),
        ("films", "confusion"),
        tuple(findings),
        tuple(_advice(findings)),
    )


def _advice(findings: Sequence[Finding]) -> Iterator[Finding]:
    """The classes to look at, where networks surely confuse them more than others."""
    for finding in findings:
        if finding.significant and finding.text.startswith(CONFUSED):
            both, _, counts = finding.text.removeprefix(CONFUSED).partition(" most: ")
            yield Finding(
                f"Look at inputs of the classes {both}, which are confused most: {counts}", finding.evidence, "classes"
            )


def _training(name: str, inspector: Inspector) -> dict[str, Any] | None:
    """The matrices and curves of a training."""
    epochs = sorted(inspector.records.reports)
    if not epochs or len(inspector.classes) > LARGEST:
        return None
    frame_rows = np.unique(np.linspace(0, len(epochs) - 1, min(FRAMES, len(epochs))).round().astype(int))
    frames = [inspector.matrices(epochs[row]) for row in frame_rows]
    kinds = [kind for kind in TITLES if all(kind in frame for frame in frames)]
    order = (inspector.reference or frames[-1][kinds[0]]).order() if kinds else list(inspector.classes)
    table, chance = inspector.curves(), inspector.chance()
    curves = [
        {"title": title, "values": [rounded(v) for v in table[key]], "chance": rounded(chance.get(key, np.nan))}
        for key, title in curve_titles().items()
        if key in table and np.isfinite(table[key]).any()
    ]
    try:
        phases = inspector.phases()
        ends = [int(end) for end in (phases.surge_end, phases.refinement_end) if end is not None]
    except (LikewiseError, AttributeError):
        ends = []
    grids = {kind: np.concatenate([frame[kind].only(order).values for frame in frames]) for kind in kinds}
    return {
        "name": name,
        "classes": order,
        "epochs": [epochs[row] for row in frame_rows],
        "all": epochs,
        "kinds": [_kind(TITLES[kind], kind, grid) for kind, grid in grids.items()],
        "curves": curves,
        "phases": ends,
    }


def _saved(name: str, matrix: ClassSimilarity) -> dict[str, Any]:
    """One matrix of classes, as a training of one epoch."""
    order = matrix.order()
    kinds = [_kind(matrix.short, matrix.kind, matrix.only(order).values)]
    return {"name": name, "classes": order, "epochs": [0], "all": [], "kinds": kinds, "curves": [], "phases": []}


def _kind(title: str, kind: str, grid: Array) -> dict[str, Any]:
    """Matrices of one kind over epochs, their range, and how much of it they use off the diagonal."""
    bounds: tuple[float | None, float | None] = (0.0, 1.0)
    if kind != "confusion":
        bounds = (-1.0, 1.0) if np.nanmax(np.abs(grid), initial=0) <= 1 else (0.0, None)
    off = grid.reshape(-1, grid.shape[1], grid.shape[1])[:, ~np.eye(grid.shape[1], dtype=bool)]
    reach = [float(np.nanmin(off)), float(np.nanmax(off))] if np.isfinite(off).any() else [0.0, 1.0]
    return {"title": title, "frames": pack(grid), "scale": list(colour_range(grid, bounds)), "reach": reach}


def _confusions(runs: Runs) -> Confusions | None:
    """The confusion matrix of each network, where answers and labels are recorded."""
    for influence in runs.inputs:
        if (influence.labels >= 0).all() and (influence.predictions >= 0).all():
            count = int(max(influence.labels.max(), influence.predictions.max())) + 1
            classes = influence.classes if len(influence.classes) >= count else tuple(map(str, range(count)))
            return _count(influence.names, classes, influence.labels, influence.predictions)
    for matrix in runs.transfers:
        if matrix.answers is not None:
            predictions = matrix.answers.subset(matrix.names).predictions
            classes = tuple(map(str, range(matrix.answers.logits.shape[2])))
            return _count(matrix.names, classes, matrix.labels, predictions)
    return None


def _count(names: Sequence[str], classes: Sequence[str], labels: Array, predictions: Array) -> Confusions | None:
    if not 2 < len(classes) <= LARGEST:
        return None
    tables = np.stack([count_pairs(labels, answers, len(classes)) for answers in predictions]).astype(float)
    return Confusions(tuple(names), tuple(classes), labels, predictions, tables)


def _most_frequent(confusions: Confusions) -> str:
    """The most frequent mistake of networks that are right on more than half of the inputs."""
    sound = confusions.sound
    total, classes = confusions.tables[sound].sum(axis=0), confusions.classes
    wrong = total.sum() - np.trace(total)
    if not wrong:
        return ""
    who = (
        "Over all networks" if sound.all() else f"Over the {int(sound.sum())} networks that are right on more than half"
    )
    i, j = divmod(int(np.where(np.eye(len(total)), -1, total).argmax()), len(total))
    return (
        f" {who}, the most frequent mistake is {classes[j]} instead of {classes[i]}: {int(total[i, j])} of "
        f"{int(wrong)} mistakes."
    )


def _most_confused(confusions: Confusions) -> Iterator[Finding]:
    """The classes most often confused, compared with mistakes that fall anywhere; each input counts once."""
    from scipy.stats import binomtest

    labels, classes = confusions.labels, confusions.classes
    sound = confusions.sound
    answers = confusions.predictions[sound]
    wrong = answers != labels
    inputs = np.flatnonzero(wrong.any(axis=0))
    if not len(inputs):
        return
    draw = np.random.default_rng(0)
    counts = np.zeros((len(classes), len(classes)))
    for row in inputs:  # one mistake per input, or networks that share an input would count as many
        network = draw.choice(np.flatnonzero(wrong[:, row]))
        counts[labels[row], answers[network, row]] += 1
    both = counts + counts.T
    i, j = divmod(int(np.triu(both, 1).argmax()), len(classes))
    pairs = len(classes) * (len(classes) - 1) // 2
    p = min(1.0, pairs * binomtest(int(both[i, j]), len(inputs), 1 / pairs, alternative="greater").pvalue)
    confusing = int((confusions.tables[sound, i, j] + confusions.tables[sound, j, i] > 0).sum())
    yield tested(
        f"{CONFUSED}{classes[i]} and {classes[j]} most: on {int(both[i, j])} of {len(inputs)} inputs that "
        f"any network gets wrong, by {confusing} of {int(sound.sum())} networks that are right on more than half.",
        f"Mistakes that fall anywhere would give {len(inputs) / pairs:.1f} (p = {p:.2g}, corrected for {pairs} pairs "
        "of classes).",
        "classes",
        p <= LEVEL,
        f"whether the networks confuse any two classes more than others (n = {len(inputs)} inputs)",
    )


def _class_difference(confusions: Confusions) -> Iterator[Finding]:
    """The class on which two networks differ most: exact test of how often each alone is right, corrected for all."""
    from scipy.stats import binomtest

    sound, labels, classes = confusions.sound, confusions.labels, confusions.classes
    names = [name for name, fair in zip(confusions.names, sound, strict=True) if fair]
    right = confusions.predictions[sound] == labels
    differences = []
    for k in range(len(classes)):
        correct = right[:, labels == k].astype(int)
        only = correct @ (1 - correct).T  # inputs that the row gets right and the column wrong
        differences += [(int(only[i, j]), int(only[j, i]), i, j, k) for i, j in np.argwhere(only > only.T).tolist()]
    if not differences:
        return
    a, b, i, j, k = max(differences, key=lambda difference: difference[0] - difference[1])
    tests = len(names) * (len(names) - 1) // 2 * len(classes)
    p = min(1.0, float(binomtest(a, a + b).pvalue) * tests)
    yield tested(
        f"Networks differ most on the class {classes[k]}: {names[i]} alone is right on {a} inputs of it, {names[j]} "
        f"alone on {b}.",
        f"Exact test of which network alone is right, chance 1 to 1: p = {p:.2g} after correction for {tests} tests.",
        "classes",
        p <= LEVEL,
        f"whether two networks differ on any one class (n = {int((labels == k).sum())} inputs of it)",
    )


def _alignment(runs: Runs) -> Iterator[Finding]:
    """What a training did to the alignment with meaning, where classes have one."""
    for name, inspector in runs.inspections.items():
        epochs = sorted(inspector.records.reports)
        if inspector.reference is None or len(epochs) < 2:
            continue
        kind = next((k for k in ("weights", "features") if k in inspector.matrices(epochs[-1])), None)
        if kind is None:
            continue
        first, last = (
            alignment(inspector.matrices(epoch)[kind], inspector.reference, "pearson")
            for epoch in (epochs[0], epochs[-1])
        )
        significant = bool(last.p <= LEVEL)
        text = (
            f"{name} ends up aligned with meaning (WordNet): {float(last):.2f}, chance 0; after the first epoch "
            f"{float(first):.2f}."
        )
        if not significant:
            text = (
                f"Not enough data to say whether {name} is aligned with meaning (n = {len(inspector.classes)} "
                f"classes): {float(last):.2f} after epoch {epochs[-1]}."
            )
        evidence = f"Correlation of {kind}; p = {last.p:.2g} by permuting the classes."
        yield Finding(text, evidence, "classes", significant)
