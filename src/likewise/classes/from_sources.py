"""Class similarity from what there is: weights, mistakes, features, logits, or WordNet.

Everything is computed in float64. Rows that have no direction (a zero weight row, a class without a
sample) are NaN, with a warning; they are never filled in.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from likewise import wordnet
from likewise.classes.similarity import ClassSimilarity, named
from likewise.errors import InputError, quoted_list


def from_weights(
    weight: Any,
    classes: Sequence[str] | None = None,
    *,
    head: str | None = None,
    inputs: Any = None,
    wnids: Sequence[str | None] | None = None,
) -> ClassSimilarity:
    """NCSM: cosine of the rows of the classifier's weights `(c, d)`; needs no data, ignores the bias.

    `weight` is the matrix, or a network, whose classifier is found (1 x 1 convolutions and detectors
    too) or named by `head`. Where several layers could be it, show it a batch of `inputs`. Classes the
    network knows by name need not be given; given in another order, its rows follow them. A row of
    zeros has no direction: NaN, with a warning.

    >>> from_weights([[1.0, 0.0], [1.0, 1.0]]).values.round(3).tolist()
    [[1.0, 0.707], [0.707, 1.0]]
    """
    if hasattr(weight, "named_modules"):
        from likewise.classes.of_network import classifier_rows, row_order

        count = None if classes is None else len(classes)
        weight, known = classifier_rows(weight, head, inputs, count)
        if known is not None and classes is None:
            classes, wnids = known.names, wnids or known.wnids
        elif known is not None and classes is not None:
            order = row_order(classes, known)
            weight = weight if order is None else weight[order]
    rows = array(weight, "the weights")
    rows = rows.reshape(len(rows), -1) if rows.ndim == 4 and rows.shape[2:] == (1, 1) else rows
    if rows.ndim != 2:
        raise InputError(f"weights must be (classes, width), got {rows.shape}. Pass one row per class.")
    names = named(classes, len(rows))
    values = cosines(rows, names, "its weights are all zero")
    about = {"width": int(rows.shape[1])}
    return ClassSimilarity(values, names, "weights", wnids=wnids, about=about)


def from_confusion(
    confusion: Any,
    predictions: Any = None,
    classes: Sequence[str] | None = None,
    *,
    split: str | None = "test",
    wnids: Sequence[str | None] | None = None,
) -> ClassSimilarity:
    """CCSM: the confusion matrix `(c, c)`, rows the true classes, each row summing to 1, then 1 on the diagonal.

    Instead of the matrix, the true labels and the predictions can be given. Not symmetric. A class
    without samples keeps zeros off the diagonal, with a warning.

    >>> from_confusion([0, 0, 1, 1], [0, 1, 1, 1]).values.tolist()
    [[1.0, 0.5], [0.0, 1.0]]
    """
    counts = array(confusion, "the confusion matrix")
    if predictions is not None:
        counts = counted(confusion, predictions, None if classes is None else len(classes))
    check_counts(counts)
    names = named(classes, len(counts))
    totals = counts.sum(axis=1)
    empty = [name for name, total in zip(names, totals, strict=True) if total == 0]
    if empty:
        warn(f"no sample of {quoted_list(empty)} was classified: its row of the confusion matrix is zero.")
    values = counts / np.where(totals > 0, totals, 1)[:, None]
    np.fill_diagonal(values, 1.0)
    return ClassSimilarity(values, names, "confusion", split, wnids, {"samples": int(counts.sum())})


def from_features(
    features: Any,
    labels: Any,
    classes: Sequence[str] | None = None,
    *,
    split: str | None = "test",
    wnids: Sequence[str | None] | None = None,
) -> ClassSimilarity:
    """TNCSM: cosine of the class means of features `(n, d)`; for networks without a classifier too.

    A class without samples has no mean: NaN, with a warning.
    """
    rows, truth = array(features, "the features"), whole(labels, "labels")
    if rows.ndim != 2 or truth.shape != (len(rows),) or not len(rows):
        raise InputError(
            f"features must be (inputs, width) with one label per input, got {rows.shape} and {truth.shape}."
        )
    count = int(truth.max()) + 1 if classes is None else len(classes)
    check_labels(truth, count)
    names = named(classes, count)
    sums = np.zeros((count, rows.shape[1]))
    np.add.at(sums, truth, rows)
    return from_sums(sums, np.bincount(truth, minlength=count), names, split=split, wnids=wnids)


def from_sums(
    sums: np.ndarray,
    counts: np.ndarray,
    classes: Sequence[str] | None = None,
    *,
    split: str | None = "test",
    wnids: Sequence[str | None] | None = None,
) -> ClassSimilarity:
    """TNCSM from what was added up on the way: feature sums `(c, d)` and samples `(c,)` of each class."""
    names = named(classes, len(sums))
    means = sums / np.maximum(counts, 1)[:, None]
    values = cosines(means, names, "it has no sample, or its mean feature is zero")
    about = {"samples": int(counts.sum()), "width": int(sums.shape[1])}
    return ClassSimilarity(values, names, "features", split, wnids, about)


def from_logits(
    logits: Any,
    classes: Sequence[str] | None = None,
    *,
    split: str | None = "test",
    wnids: Sequence[str | None] | None = None,
) -> ClassSimilarity:
    """LCSM: correlation over inputs of the logits of two classes `(n, c)`; needs neither weights nor labels."""
    rows = array(logits, "the logits")
    if rows.ndim != 2 or len(rows) < 2:
        raise InputError(f"logits must be (inputs, classes), at least two inputs; got {rows.shape}.")
    names = named(classes, rows.shape[1])
    centred = rows - rows.mean(axis=0)
    centred[:, np.ptp(rows, axis=0) == 0] = 0.0  # the mean of equal numbers may miss them
    values = cosines(centred.T, names, "its logit is the same for every input")
    return ClassSimilarity(values, names, "logits", split, wnids, {"samples": len(rows)})


def from_wordnet(classes: str | Any, *, names: Sequence[str] | None = None, measure: str = "path") -> ClassSimilarity:
    """SCSM: how alike the classes are in meaning, by path, Wu-Palmer ("wup") or Leacock-Chodorow ("lch").

    `classes` is the name of a known list ("cifar100"), data that carries WordNet ids, or ids and
    synset names ("n02084071", "dog.n.01") themselves.

    >>> from_wordnet("cifar10")["cat", "dog"].__round__(3)
    0.2
    """
    if isinstance(classes, str):
        found = wordnet.classes(classes)
        names, ids = names or found.names, list(found.wnids)
    elif hasattr(classes, "wnids"):
        if classes.wnids is None or not all(classes.wnids):
            raise InputError(
                f"{getattr(classes, 'name', 'the data')!r} carries no WordNet ids. Name its classes yourself: "
                "from_wordnet(['dog.n.01', ...], names=...)."
            )
        names, ids = names or classes.classes, list(classes.wnids)
    else:
        ids = [wordnet.find(name).wnid for name in classes]
        names = names or [str(name) for name in classes]
    values = wordnet.similarity(ids, measure)
    return ClassSimilarity(values, names, "wordnet", wnids=ids, about={"measure": measure})


def cosines(rows: np.ndarray, names: Sequence[str], why: str) -> np.ndarray:
    """Cosines between rows, exactly 1 on the diagonal; NaN, with a warning, for rows without a direction."""
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    hollow = ~(norms > 0) | ~np.isfinite(norms)
    if hollow.any():
        missing = [name for name, bad in zip(names, hollow, strict=True) if bad]
        warn(f"the similarity of {quoted_list(missing)} is undefined: {why}, or not finite.")
    unit = rows / np.where(hollow, np.nan, norms)[:, None]
    values = np.clip(unit @ unit.T, -1.0, 1.0)
    np.fill_diagonal(values, np.where(hollow, np.nan, 1.0))
    return values


def counted(labels: Any, predictions: Any, classes: int | None = None) -> np.ndarray:
    """The confusion matrix `(c, c)` of true labels and predictions, rows the truth."""
    truth, answer = whole(labels, "labels"), whole(predictions, "predictions")
    if truth.ndim != 1 or truth.shape != answer.shape or not len(truth):
        raise InputError(
            f"labels and predictions must be one number per input each, got {truth.shape} and {answer.shape}."
        )
    count = classes or int(max(truth.max(), answer.max())) + 1
    check_labels(truth, count)
    check_labels(answer, count, "predictions")
    return np.bincount(truth * count + answer, minlength=count**2).reshape(count, count)


def check_counts(counts: np.ndarray) -> None:
    """Refuse what is no confusion matrix."""
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or len(counts) < 2:
        raise InputError(
            f"a confusion matrix is square, one row per true class; got {counts.shape}. Or pass labels and predictions."
        )
    if (counts < 0).any() or not np.isfinite(counts).all():
        raise InputError("a confusion matrix holds counts; some entries are negative or not finite.")


def check_labels(labels: np.ndarray, count: int, what: str = "labels") -> None:
    """Refuse labels that are no class."""
    if len(labels) and not 0 <= labels.min() <= labels.max() < count:
        raise InputError(
            f"{what} run from {labels.min()} to {labels.max()}, but there are {count} classes. They count "
            f"from 0 to {count - 1}."
        )


def array(values: Any, what: str) -> np.ndarray:
    """A float64 array of anything array-like, on the CPU."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = (values.double() if values.is_floating_point() else values).numpy()
    found = np.asarray(values)
    if found.dtype.kind not in "biuf":
        raise InputError(f"{what} must be numbers, got {found.dtype.name} entries.")
    return found.astype(np.float64)


def whole(values: Any, what: str) -> np.ndarray:
    """An array of whole numbers."""
    found = np.asarray(values.detach().cpu().numpy() if hasattr(values, "detach") else values)
    if found.dtype.kind not in "iu":
        raise InputError(f"{what} must be whole numbers, got {found.dtype.name} entries.")
    return found.astype(np.int64)


def warn(text: str) -> None:
    """A warning that points at whoever called into this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("likewise."):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, UserWarning, stacklevel=level)
