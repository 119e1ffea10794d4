"""Class alignment: two networks are alike if they find the same classes alike.

A measure of the functional family that lives here, beside the class similarities it compares.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from likewise.classes.agreement import alignment
from likewise.classes.from_sources import from_confusion, from_features, from_logits
from likewise.classes.similarity import ClassSimilarity
from likewise.errors import UndefinedError
from likewise.measures.facts import SCALE, SHIFT
from likewise.measures.families.functional import shared_logits, true_labels
from likewise.measures.pair import Pair
from likewise.measures.registry import measure


@measure(
    name="class-alignment",
    family="functional",
    on="outputs",
    aliases=("SAI",),
    larger_is="more alike",
    bounds=(-1, 1),
    identity=1,
    paired=False,
    rows=3,
    source="Deep Similarity Inspector, SAI of two networks",
    limits={"of": ("logits", "features", "confusion"), "metric": ("pearson", "spearman", "cosine", "ssim")},
    cost="n·c²",
    invariant_to={SCALE, SHIFT},
)
def class_alignment(pair: Pair, *, of: str = "logits", metric: str = "pearson", labels: Any = None) -> float:
    """Whether two networks find the same classes alike.

    Each network's class similarity is the correlation of the logits of two classes over the inputs (or
    `of` the class means of features, or the confusion matrix, which both need the labels); the
    off-diagonal entries of the two matrices are then compared by `metric`. 1: the same kinships; 0:
    unrelated ones. Cosine is the published index and is high for anything. Undefined for two classes.

    Options:
        of: What class similarities are taken from: "logits", "features" or "confusion".
        metric: What compares them: "pearson", "spearman", "cosine" or "ssim".
        labels: The true class of each input; by default those that the views carry.

    Example:
        >>> f"{likewise.measures.class_alignment(x, x + noise):.3f}"
        '0.491'
    """
    classes = shared_logits(pair)[0].shape[1]
    if classes < 3:
        raise UndefinedError(f"class alignment is undefined for {pair}: {classes} classes have one similarity only.")
    a, b = _class_similarities(pair, of, labels)
    value = float(alignment(a, b, metric))
    if math.isnan(value):
        raise UndefinedError(
            f"class alignment is undefined for {pair}: a matrix is constant, or a class has no sample."
        )
    return value


def _at_one_scale(logits: Tensor) -> Tensor:
    """Each class over a power of two where scales are extreme: correlations do not notice."""
    peaks = logits.abs().amax(dim=0).double()
    if not bool(((peaks > 1e100) | ((peaks > 0) & (peaks < 1e-100))).any()):
        return logits
    half = torch.frexp(peaks).exponent.double() / -2  # in two steps, as one may be more than a float holds
    return logits.double() * half.floor().exp2() * half.ceil().exp2()


def _class_similarities(pair: Pair, of: str, labels: Any) -> list[ClassSimilarity]:
    """How alike each network finds the classes, both in the order of the first's."""
    logits = shared_logits(pair)
    if of == "logits":
        return [from_logits(_at_one_scale(rows)) for rows in logits]
    names, truth = [str(i) for i in range(logits[0].shape[1])], true_labels(pair, labels)
    if of == "features":
        both = zip((pair.a, pair.b), truth, strict=True)
        return [from_features(rep.values, labels, names) for rep, labels in both]
    answers = [rows.argmax(dim=1) for rows in logits]
    return [from_confusion(truth[i], answers[i], names) for i in range(2)]
