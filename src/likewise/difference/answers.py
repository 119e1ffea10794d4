"""What a changed network answers differently: inputs that flip, classes that drift, and whether it is right less often.

Each number comes with how sure it is: the share of flips with an interval over inputs, the change of accuracy by
McNemar's exact test, a class by Fisher's exact test of its flips and those of all other classes, with the false
discovery rate over classes held at 5 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from likewise._base.arrays import Array
from likewise.errors import InputError
from likewise.matrices.shares import wilson
from likewise.measures.families.functional import shared_logits
from likewise.measures.pair import pair_of
from likewise.views import Activations

LEVEL = 0.05


@dataclass(frozen=True)
class Flip:
    """An input whose most likely class changes."""

    row: int  # its index among the inputs
    before: str  # what the first network answers
    after: str  # what the second answers
    truth: str | None  # the true class, None where labels are missing
    margin: float  # probability of its own answer less that of the other's, the smaller of both networks


@dataclass(frozen=True)
class ClassDrift:
    """How often the inputs of a class flip: those of that label, or first answered so where labels are missing."""

    name: str
    count: int  # how many inputs it has
    flips: int  # how many of them flip
    before: float  # the share that is right before, NaN without labels
    after: float  # the share that is right after, NaN without labels
    q: float  # how likely so many flips are by chance, over all classes

    @property
    def sure(self) -> bool:
        """Whether it flips more than the other classes do."""
        return self.q <= LEVEL


@dataclass(frozen=True)
class AnswerChange:
    """What two networks answer to the same inputs."""

    n: int  # how many inputs there are
    flips: tuple[Flip, ...]  # inputs whose most likely class changes, the largest margins first
    low: float  # the lower end of a 95 % interval of the share of flips (Wilson)
    high: float  # its upper end
    accuracy: tuple[float, float] | None  # shares of inputs classified correctly, before and after; None without labels
    p: float  # of equal accuracies, by McNemar's exact test
    classes: tuple[ClassDrift, ...]  # those with inputs, the most drifting first

    @property
    def disagreement(self) -> float:
        """The share of inputs whose most likely class changes."""
        return len(self.flips) / self.n


def answer_changes(a: Activations, b: Activations, data_classes: Sequence[str]) -> AnswerChange | str:
    """What changed in the answers of two views of the same inputs, or why that cannot be said."""
    if a.outputs is None or b.outputs is None:
        return "a network gives no class per input"
    try:
        before, after = shared_logits(pair_of(a, b))
    except InputError as error:
        return str(error).rstrip(".")
    if before.shape[1] < 2:
        return "the networks answer with one number per input"
    p, q = (logits.argmax(dim=1).cpu().numpy() for logits in (before, after))
    labels = None if a.outputs.labels is None else a.outputs.labels.cpu().numpy()
    names = _class_names(a, data_classes, before.shape[1])
    flipped = p != q
    rows = np.flatnonzero(flipped)
    margins = _margins(before, after)[rows]
    truth = None if labels is None else [names[label] for label in labels]
    flips = [
        Flip(int(row), names[p[row]], names[q[row]], None if truth is None else truth[row], float(margin))
        for row, margin in sorted(zip(rows, margins, strict=True), key=lambda flip: (-flip[1], flip[0]))
    ]
    accuracy = None if labels is None else (float((p == labels).mean()), float((q == labels).mean()))
    low, high = wilson(len(flips) / len(p), len(p))
    sure = 1.0 if labels is None else mcnemar(p == labels, q == labels)
    return AnswerChange(len(p), tuple(flips), low, high, accuracy, sure, _drift(p, q, labels, names))


def _class_names(view: Activations, data_classes: Sequence[str], count: int) -> list[str]:
    classes = view.classes
    names = classes.names if classes is not None and len(classes) == count else tuple(data_classes)
    return list(names) if len(names) == count else [str(i) for i in range(count)]


def _margins(before: Tensor, after: Tensor) -> Array:
    """By how much either network prefers its own answer to the other's: the smaller of the two, (n,)."""
    first, second = before.double().softmax(dim=1), after.double().softmax(dim=1)
    was, now = before.argmax(dim=1, keepdim=True), after.argmax(dim=1, keepdim=True)
    left = first.gather(1, was) - first.gather(1, now)
    right = second.gather(1, now) - second.gather(1, was)
    return np.asarray(left.minimum(right)[:, 0].cpu().numpy())


def mcnemar(before: Array, after: Array) -> float:
    """How likely so uneven a change of right and wrong inputs is if both directions are equally likely.

    Exact: an input that only one gets right is as likely to be either's.

    >>> was = np.array([True] * 10)
    >>> mcnemar(was, ~was), mcnemar(was, was)
    (0.001953125, 1.0)
    """
    from scipy.stats import binomtest

    lost, gained = int((before & ~after).sum()), int((~before & after).sum())
    return float(binomtest(lost, lost + gained, 0.5).pvalue) if lost + gained else 1.0


def _drift(p: Array, q: Array, labels: Array | None, names: Sequence[str]) -> tuple[ClassDrift, ...]:
    from scipy.stats import false_discovery_control, fisher_exact

    groups, flipped = p if labels is None else labels, p != q
    rows, chances = [], []
    for group in np.unique(groups).tolist():
        inside = groups == group
        flips, count = int((flipped & inside).sum()), int(inside.sum())
        others = int(flipped.sum()) - flips
        table = [[flips, count - flips], [others, len(p) - count - others]]
        chances.append(float(fisher_exact(table, alternative="greater").pvalue))
        before, after = (np.nan if labels is None else float((answers[inside] == group).mean()) for answers in (p, q))
        rows.append((names[group], count, flips, before, after))
    corrected = false_discovery_control(chances)
    drifts = [ClassDrift(*row, q=float(chance)) for row, chance in zip(rows, corrected, strict=True)]
    return tuple(sorted(drifts, key=lambda drift: (-drift.flips / drift.count, drift.name)))
