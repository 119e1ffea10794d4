"""Functional measures: two networks are alike if they answer alike.

They look at outputs, not at activations: logits `(n, c)`, and for some the true labels, which come with the
view or as the option `labels`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from likewise.errors import InputError, UndefinedError, quoted_list
from likewise.measures.facts import SCALE
from likewise.measures.pair import Pair
from likewise.measures.registry import measure
from likewise.views.activations import UNLABELLED, Activations, Outputs

FACTS: dict[str, Any] = {
    "on": "outputs",
    "cost": "n·c",
    "invariant_to": {SCALE},  # the most likely class stays the most likely
}
KLABUNDE = "Klabunde et al. 2023, arXiv:2305.06329"


def _predictions(pair: Pair) -> tuple[Tensor, Tensor]:
    a, b = shared_logits(pair)
    return a.argmax(dim=1), b.argmax(dim=1)


def shared_logits(pair: Pair) -> tuple[Tensor, Tensor]:
    """What both networks answer, the columns of the second in the order of the first's classes."""
    a, b = pair.a.outputs.logits, pair.b.outputs.logits
    if a.shape != b.shape:
        raise InputError(
            f"{pair} answer with {a.shape[1]} and {b.shape[1]} classes. "
            "Only networks with the same classes can be compared by their outputs."
        )
    places = _class_order(pair)
    return a, b if places is None else b[:, places]


def _class_order(pair: Pair) -> list[int] | None:
    """Where the classes of the first network are in the second; None where they are in one order."""
    return _order(pair.a.view, pair.b.view)


def _order(first: Activations, second: Activations) -> list[int] | None:
    ours, theirs = first.classes, second.classes
    if ours is None or theirs is None or len(ours) != len(theirs):
        return None
    from likewise.wordnet import locate  # only where networks say what their classes are

    start = f"{first.label} and {second.label} answer with {len(ours)} classes each, but not the same:"
    rest = f"of the first are not surely among {quoted_list(theirs.names)} of the second."
    remedy = "Only networks with the same classes can be compared by their outputs."
    places = locate(ours, theirs, lambda missing: f"{start} {missing} {rest} {remedy}")
    return None if places == list(range(len(places))) else places


def true_labels(pair: Pair, labels: Any) -> tuple[Tensor, Tensor]:
    """The true labels of both sides, counted as the first network counts its classes."""
    if labels is not None:
        labels = Outputs(pair.a.outputs.logits, labels).labels
        return labels, labels
    for rep in (pair.a, pair.b):
        reason = rep.view.unlabelled
        if reason:
            raise InputError(
                f"the true labels of {pair} are not known: {reason} Or pass labels=... that count as the network does."
            )
    left, right = pair.a.outputs.labels, pair.b.outputs.labels
    if left is None and right is None:
        raise InputError(
            f"the true labels of {pair} are not known. Pass labels=..., or views with Outputs(logits, labels)."
        )
    places = _class_order(pair)
    if right is not None and places is not None:
        right = torch.tensor(places, device=right.device).argsort()[right]
    return (right if left is None else left), (left if right is None else right)


def labelled(views: Sequence[Activations], labels: Any) -> list[Activations]:
    """Views with these labels, which count the classes as the first view's network does."""
    renewed, first = [], views[0]
    for view in views:
        if view.outputs is not None:
            about = {key: value for key, value in view.about.items() if key != UNLABELLED}
            outputs = Outputs(view.outputs.logits, labels)
            places = _order(first, view)
            if places is not None:
                reordered = torch.tensor(places, device=outputs.labels.device)[outputs.labels]
                outputs = Outputs(outputs.logits, reordered)
            view = replace(view, outputs=outputs, about=about, reduce=None)
        renewed.append(view)
    return renewed


def _correct(pair: Pair, labels: Any) -> tuple[Tensor, Tensor]:
    """Which inputs each network gets right."""
    p, q = _predictions(pair)
    left, right = true_labels(pair, labels)
    return p == left, q == right


def _fewest(pair: Pair, options: Mapping[str, Any]) -> tuple[int, str]:
    """The inputs a network gets wrong, or right where those are fewer, of the network with fewer of them."""
    counts = []
    for rep, right in zip((pair.a, pair.b), _correct(pair, options["labels"]), strict=True):
        count = int(right.sum())
        counts += [(pair.n - count, f"those that {rep.name} gets wrong"), (count, f"those that {rep.name} gets right")]
    return min(counts)


@measure(
    name="accuracy-difference",
    aliases=("AbsoluteAccDiff",),
    larger_is="less alike",
    bounds=(0, 1),
    identity=0,
    metric=True,
    paired=False,
    source=KLABUNDE,
    **FACTS,
)
def accuracy_difference(pair: Pair, *, labels: Any = None) -> float:
    """How much more often one network is right than the other.

    |accuracy of X - accuracy of Y|. 0: equally often, though perhaps on different inputs.

    Options:
        labels: The true class of each input; by default those that the views carry.

    Example:
        >>> truth = x.argmax(axis=1)
        >>> f"{likewise.measures.accuracy_difference(x + noise, x + 2 * noise, labels=truth):.3f}"
        '0.170'
    """
    a, b = _correct(pair, labels)
    return abs(float(a.double().mean() - b.double().mean()))


@measure(
    name="disagreement",
    aliases=("Disagreement",),
    larger_is="less alike",
    bounds=(0, 1),
    identity=0,
    metric=True,
    source="Madani et al. 2004; Klabunde et al. 2023, arXiv:2305.06329",
    **FACTS,
)
def disagreement(pair: Pair) -> float:
    """How often two networks predict different classes.

    Share of inputs whose most likely class differs. 0: never; independent networks of accuracy q disagree
    on at least |q - q'|.

    Example:
        >>> f"{likewise.measures.disagreement(x, x + noise):.3f}"
        '0.600'
    """
    p, q = _predictions(pair)
    return float((p != q).double().mean())


@measure(
    name="disagreement-normalised",
    aliases=("min-max-disagreement",),
    larger_is="less alike",
    bounds=(0, 1),
    identity=None,
    support=_fewest,
    source="Klabunde & Lemmerich 2023, arXiv:2205.10070",
    **FACTS,
)
def disagreement_normalised(pair: Pair, *, labels: Any = None) -> float:
    """Disagreement on the scale from the least to the most that the two accuracies allow.

    (d - |e - e'|) / (min(e + e', 1) - |e - e'|), d the disagreement, e and e' the error rates. 0: as alike as the
    accuracies allow; 1: as different. Undefined where the accuracies leave no choice.

    Options:
        labels: The true class of each input; by default those that the views carry.

    Example:
        >>> truth = x.argmax(axis=1)
        >>> f"{likewise.measures.disagreement_normalised(x + noise, x + 2 * noise, labels=truth):.3f}"
        '0.120'
    """
    a, b = (1 - float(right.double().mean()) for right in _correct(pair, labels))
    least, most = abs(a - b), min(a + b, 1.0)
    if most - least < 1e-12:
        raise UndefinedError(
            f"normalised disagreement is undefined for {pair}: error rates {a:.3g} and {b:.3g} allow "
            "one disagreement only."
        )
    return max(0.0, (disagreement.function(pair) - least) / (most - least))


@measure(
    name="jsd",
    aliases=("JSD", "jensen-shannon"),
    larger_is="less alike",
    bounds=(0, 1),
    identity=0,
    source="Lin 1991, doi:10.1109/18.61115",
    **{**FACTS, "invariant_to": ()},
)
def jsd(pair: Pair) -> float:
    """How far apart two networks' predicted probabilities are.

    Mean over inputs of the Jensen-Shannon divergence, base 2, of the softmax of the logits. 0: the same
    probabilities; 1: never the same class possible.

    Example:
        >>> f"{likewise.measures.jsd(x, x + noise):.3f}"
        '0.134'
    """
    p, q = (logits.double().log_softmax(dim=1) for logits in shared_logits(pair))
    mid = torch.logaddexp(p, q) - math.log(2)
    gaps = (p.exp() * (p - mid) + q.exp() * (q - mid)).sum(dim=1) / (2 * math.log(2))
    return float(gaps.clamp(0, 1).mean())


@measure(
    name="error-consistency",
    aliases=("kappa",),
    larger_is="more alike",
    bounds=(-1, 1),
    identity=1,
    support=_fewest,
    source="Geirhos et al. 2020, arXiv:2006.16736",
    **FACTS,
)
def error_consistency(pair: Pair, *, labels: Any = None) -> float:
    """Whether two networks are right and wrong on the same inputs, beyond chance.

    Cohen's kappa of correctness: (o - e) / (1 - e), o the share of inputs both get right or both wrong, e the
    share expected of independent networks of their accuracies. 1: the same inputs; 0: chance; below: opposite.

    Options:
        labels: The true class of each input; by default those that the views carry.

    Example:
        >>> truth = x.argmax(axis=1)
        >>> f"{likewise.measures.error_consistency(x + noise, x + 2 * noise, labels=truth):.3f}"
        '0.619'
    """
    a, b = (right.double() for right in _correct(pair, labels))
    expected = float(a.mean() * b.mean() + (1 - a.mean()) * (1 - b.mean()))
    if expected > 1 - 1e-12:
        raise UndefinedError(f"error consistency is undefined for {pair}: both are always right, or both always wrong.")
    return (float((a == b).double().mean()) - expected) / (1 - expected)


@measure(
    shared_variance=0.7,
    name="same-mistake",
    aliases=("same-mistake-rate",),
    larger_is="more alike",
    bounds=(0, 1),
    identity=1,
    by_label=True,
    source="Klabunde et al. 2023, arXiv:2305.06329",
    **FACTS,
)
def same_mistake(pair: Pair, *, labels: Any = None) -> float:
    """How often two networks that are both wrong are wrong in the same way.

    Of the inputs both get wrong, the share with the same predicted class. 1: always; undefined where they
    are never wrong together.

    Options:
        labels: The true class of each input; by default those that the views carry.

    Example:
        >>> truth = x.argmax(axis=1)
        >>> f"{likewise.measures.same_mistake(x + noise, x + 2 * noise, labels=truth):.3f}"
        '0.833'
    """
    a, b = _correct(pair, labels)
    both = ~a & ~b
    if not bool(both.any()):
        raise UndefinedError(f"{pair} are never wrong on the same input, so no mistake is shared.")
    p, q = _predictions(pair)
    return float((p == q)[both].double().mean())
