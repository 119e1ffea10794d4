"""Class similarity from what there is: weights, mistakes, features, logits, or WordNet.

Everything is computed in float64. Rows that have no direction (a zero weight row, a class without a
sample) are NaN, with a warning; they are never filled in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from likewise import wordnet
from likewise._base.arrays import as_array, check_labels
from likewise._base.warnings import warn
from likewise.classes.similarity import ClassSimilarity, named, numbered
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

    `weight` is the matrix, or a network or its address, whose classifier is found (of detectors and
    segmenters too) or named by `head`. Where several layers could be it, show it a batch of `inputs`.
    Classes the network knows by name need not be given; given in another order, its rows follow them.
    Rows that are no classes (no object, background, "N/A") are left out, and `about` says how many. Of
    a detector with anchors, the rows of a class at all anchors count side by side. A row of zeros has
    no direction: NaN, with a warning.

    >>> from_weights([[1.0, 0.0], [1.0, 1.0]]).values.round(3).tolist()
    [[1.0, 0.707], [0.707, 1.0]]
    """
    about: dict[str, Any] = {}
    if isinstance(weight, str) or hasattr(weight, "named_modules"):
        from likewise.classes.classifier import classifier_rows, row_order

        count = None if classes is None else len(classes)
        weight, known, about = classifier_rows(weight, head, inputs, count)
        if known is not None and classes is None:
            classes, wnids = known.names, wnids or known.wnids
        elif known is not None and classes is not None:
            order = row_order(classes, known)
            weight = weight if order is None else weight[order]
    rows = as_array(weight, "the matrix of weights")
    rows = rows.reshape(len(rows), -1) if rows.ndim > 2 and set(rows.shape[2:]) == {1} else rows
    if rows.ndim != 2:
        raise InputError(f"weights must be (classes, width), got {rows.shape}. Pass one row per class.")
    names = named(classes, len(rows))
    values = cosines(rows, names, "its weights are all zero")
    return ClassSimilarity(values, names, "weights", wnids=wnids, about={"width": int(rows.shape[1])} | about)


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
    if predictions is not None:
        confusion = count_pairs(confusion, predictions, None if classes is None else len(classes))
    counts = as_counts(confusion)
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
    layers: str | None = None,
    reduce: str | None = None,
    head: str | None = None,
    batch_size: int | None = None,
    device: Any = None,
    progress: bool = True,
) -> ClassSimilarity:
    """TNCSM: cosine of the class means of features `(n, d)`; for networks without a classifier too.

    Instead of features and labels, a network or its address and data (an image folder, say) can be given.
    Its features are then what its classifier is given, or its embedding where it has none, or another of
    its `layers`; maps and tokens need a `reduce`. A class without samples has no mean: NaN, with a warning.
    """
    if isinstance(features, str) or hasattr(features, "named_modules"):
        from likewise.classes.classifier import class_features

        how: dict[str, Any] = {"batch_size": batch_size, "device": device, "progress": progress}
        view, data = class_features(features, labels, layers=layers, reduce=reduce, head=head, **how)
        names, ids = classes or named(data.classes, len(data.classes)), wnids or data.wnids
        found = from_features(view.values, data.labels, names, split=split, wnids=ids)
        layer = view.about.get("embedding") or view.about["layer"]
        return replace(found, about=dict(found.about) | {"network": view.name, "layer": layer})
    rows = feature_rows(features)
    truth = check_labels(labels, len(rows), None if classes is None else len(classes)).cpu().numpy()
    count = int(truth.max()) + 1 if classes is None else len(classes)
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
    rows = as_array(logits, "the matrix of logits")
    if rows.ndim != 2 or len(rows) < 2:
        raise InputError(f"logits must be (inputs, classes), at least two inputs; got {rows.shape}.")
    names = named(classes, rows.shape[1])
    centred = rows - rows.mean(axis=0)
    centred[:, np.ptp(rows, axis=0) == 0] = 0.0  # rounding: the mean of equal values may differ from them
    values = cosines(centred.T, names, "its logit is the same for every input")
    return ClassSimilarity(values, names, "logits", split, wnids, {"samples": len(rows)})


def from_wordnet(
    classes: str | Any,
    *,
    names: Sequence[str] | None = None,
    measure: str = "path",
    senses: Mapping[str, str] | None = None,
) -> ClassSimilarity:
    """SCSM: how alike the classes are in meaning, by path, Wu-Palmer ("wup") or Leacock-Chodorow ("lch").

    `classes` is the name of a known list ("cifar100"), data or another class similarity, whose classes are
    known by WordNet id or name, or ids and synset names ("n02084071", "dog.n.01") themselves. `senses` says
    what names mean that could mean several things: `{"fish": "fish.n.01"}`.

    >>> from_wordnet("cifar10")["cat", "dog"].__round__(3)
    0.2
    """
    if isinstance(classes, str):
        found = wordnet.classes(classes)
        names, ids = names or found.names, list(found.wnids)
    elif hasattr(classes, "wnids"):
        if isinstance(classes, ClassSimilarity) and numbered(classes) and not classes.ids:
            raise InputError(
                f"the classes of {classes.short} have no names but their numbers. Name them where it is made, as in "
                "from_weights(net, classes=...), or give data whose classes have names."
            )
        own = wordnet.ClassNames(tuple(map(str, classes.classes)), classes.wnids)
        names, ids = names or own.names, list(wordnet.depicted(own, senses))
    else:
        ids = [wordnet.find(name).wnid for name in classes]
        names = names or [str(name) for name in classes]
    values = wordnet.similarity(ids, measure)
    return ClassSimilarity(values, names, "wordnet", wnids=ids, about={"measure": measure})


def cosines(rows: np.ndarray, names: Sequence[str], why: str) -> np.ndarray:
    """Cosines between rows, exactly 1 on the diagonal; NaN, with a warning, for rows without a direction."""
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    undefined = ~(norms > 0) | ~np.isfinite(norms)
    if undefined.any():
        missing = [name for name, bad in zip(names, undefined, strict=True) if bad]
        warn(f"the similarity of {quoted_list(missing)} is undefined: {why}, or not finite.")
    unit = rows / np.where(undefined, np.nan, norms)[:, None]
    values = np.clip(unit @ unit.T, -1.0, 1.0)
    np.fill_diagonal(values, np.where(undefined, np.nan, 1.0))
    return values


def count_pairs(labels: Any, predictions: Any, classes: int | None = None) -> np.ndarray:
    """The confusion matrix `(c, c)` of true labels and predictions, rows the truth."""
    truth = check_labels(labels, None, classes).cpu().numpy()
    answers = check_labels(predictions, len(truth), classes, what="predictions").cpu().numpy()
    if not len(truth):
        raise InputError("there are no labels and no predictions. Give one of each per input.")
    count = classes or int(max(truth.max(), answers.max())) + 1
    return np.bincount(truth * count + answers, minlength=count**2).reshape(count, count)


def as_counts(confusion: Any) -> np.ndarray:
    """A confusion matrix as floats, or a sentence on why it is none."""
    counts = as_array(confusion, "the confusion matrix")
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or len(counts) < 2:
        raise InputError(
            f"a confusion matrix is square, one row per true class; got {counts.shape}. Or pass labels and predictions."
        )
    if (counts < 0).any() or not np.isfinite(counts).all():
        raise InputError("a confusion matrix holds counts; some entries are negative or not finite.")
    return counts


def feature_rows(features: Any) -> np.ndarray:
    """Features `(n, d)` as floats."""
    rows = as_array(features, "the matrix of features")
    if rows.ndim != 2 or not len(rows):
        raise InputError(f"features must be (inputs, width), got {rows.shape}. Give one row per input.")
    return rows
