"""What a changed network answers otherwise: inputs that flip, classes that drift, and whether it is right less often.

Each number comes with how sure it is: the share of flips with an interval over inputs, the change of accuracy by
McNemar's exact test, a class by Fisher's exact test of its flips against those of all other classes, with the false
discovery rate over classes held at 5 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from likewise._base.arrays import Array
from likewise.errors import InputError
from likewise.measures.families.functional import shared_logits
from likewise.measures.pair import pair_of
from likewise.transfer.success_rates import wilson
from likewise.views import Activations

LEVEL = 0.05


@dataclass(frozen=True)
class Flip:
    """An input that is answered otherwise: its place, both answers, the true class where it is known.

    `margin` is how sure both networks are of their own answer against the other's: the smaller of the two differences
    of probability, so that flips of a coin come last.
    """

    row: int
    before: str
    after: str
    truth: str | None
    margin: float


@dataclass(frozen=True)
class ClassDrift:
    """A class: of its inputs, how many flip, and what share of them is right before and after.

    Inputs belong to their true class, or to the one first answered where labels are not known; then accuracies are
    NaN. `q` is how likely so many flips are by chance, over all classes.
    """

    name: str
    count: int
    flips: int
    before: float
    after: float
    q: float

    @property
    def sure(self) -> bool:
        """Whether it flips more than the other classes do."""
        return self.q <= LEVEL


@dataclass(frozen=True)
class Answers:
    """What two networks answer to the same n inputs.

    flips     inputs whose most likely class changes, the surest first
    low, high a 95 % interval of the share of flips (Wilson)
    accuracy  shares of inputs classified correctly, before and after; None where labels are not known
    p         of equal accuracies, by McNemar's exact test
    classes   those with inputs, the most drifting first
    """

    n: int
    flips: tuple[Flip, ...]
    low: float
    high: float
    accuracy: tuple[float, float] | None
    p: float
    classes: tuple[ClassDrift, ...]

    @property
    def disagreement(self) -> float:
        """The share of inputs whose most likely class changes."""
        return len(self.flips) / self.n


def answer_changes(a: Activations, b: Activations, data_classes: Sequence[str]) -> Answers | str:
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
        for row, margin in sorted(zip(rows, margins, strict=True), key=lambda each: (-each[1], each[0]))
    ]
    accuracy = None if labels is None else (float((p == labels).mean()), float((q == labels).mean()))
    low, high = wilson(len(flips) / len(p), len(p))
    sure = 1.0 if labels is None else mcnemar(p == labels, q == labels)
    return Answers(len(p), tuple(flips), low, high, accuracy, sure, _drift(p, q, labels, names))


def _class_names(view: Activations, data_classes: Sequence[str], count: int) -> list[str]:
    known = view.classes
    names = known.names if known is not None and len(known) == count else tuple(data_classes)
    return list(names) if len(names) == count else [str(i) for i in range(count)]


def _margins(before: Tensor, after: Tensor) -> Array:
    """The smaller of what either network gives its own answer above the other's, (n,)."""
    first, second = before.double().softmax(dim=1), after.double().softmax(dim=1)
    own, other = before.argmax(dim=1, keepdim=True), after.argmax(dim=1, keepdim=True)
    left = first.gather(1, own) - first.gather(1, other)
    right = second.gather(1, other) - second.gather(1, own)
    return np.asarray(left.minimum(right)[:, 0].cpu().numpy())


def mcnemar(before: Array, after: Array) -> float:
    """How likely so uneven a change of right and wrong inputs is where neither way is likelier.

    Exact: of the inputs that only one gets right, each is as likely to be either's.

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
    found, chances = [], []
    for group in np.unique(groups).tolist():
        inside = groups == group
        flips, count = int((flipped & inside).sum()), int(inside.sum())
        others = int(flipped.sum()) - flips
        table = [[flips, count - flips], [others, len(p) - count - others]]
        chances.append(float(fisher_exact(table, alternative="greater").pvalue))
        before, after = (np.nan if labels is None else float((one[inside] == group).mean()) for one in (p, q))
        found.append((names[group], count, flips, before, after))
    corrected = false_discovery_control(chances)
    judged = [ClassDrift(*each, q=float(chance)) for each, chance in zip(found, corrected, strict=True)]
    return tuple(sorted(judged, key=lambda each: (-each.flips / each.count, each.name)))
