"""Class similarity from what there is: weights, mistakes, features, logits, or WordNet.

Everything is computed in float64. Rows that have no direction (a zero weight row, a class without a
sample) are NaN, with a warning; they are never filled in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from likewise import wordnet
from likewise._base.arrays import as_array, check_labels
from likewise._base.progress import warn
from likewise.classes.network_sources import (
    ANSWERS,
    NOT_SHOWN,
    Ids,
    Names,
    answers_of,
    class_names,
    classifier_rows,
    features_of,
    is_network,
    of_several,
    one_head,
)
from likewise.classes.similarity import ClassSimilarity, named, numbered
from likewise.errors import InputError, quoted_list
from likewise.views.activations import Activations, accuracies
from likewise.views.show import Show, ShowOptions
from likewise.wordnet import ClassNames


@of_several(*NOT_SHOWN)
def from_weights(
    weight: Any, classes: Names = None, *, inputs: Any = None, wnids: Ids = None, **show: Unpack[ShowOptions]
) -> ClassSimilarity:
    """NCSM: cosine of the rows of the classifier's weights `(c, d)`; needs no data, ignores the bias.

    Rows that are no classes (no object, background, "N/A") are left out, and `about` says how many. Of
    a detector with anchors, the rows of a class at all anchors count side by side. A row of zeros has
    no direction: NaN, with a warning.

    Args:
        weight: The matrix, or a network or its address, whose classifier is found (of detectors and segmenters too). A
            list or mapping of these gives one similarity each, by name.
        classes: The names of the classes. Those a network has by name need not be given; given in another order, its
            rows follow them.
        inputs: A batch for the network, where several of its layers could be the classifier.
        wnids: One WordNet id per class, None for a class that has none.
        **show: `head`, the name of the classifier in the network.

    Raises:
        InputError: The weights have no row per class.
        NoClassifierError: The network has no classifier, or several layers could be it.

    Example:
        >>> from_weights([[1.0, 0.0], [1.0, 1.0]]).values.round(3).tolist()
        [[1.0, 0.707], [0.707, 1.0]]
    """
    about: dict[str, Any] = {}
    head = one_head("from_weights", Show.only("from_weights", show, without=NOT_SHOWN))
    if is_network(weight):
        weight, classes, wnids, about = classifier_rows(weight, head, inputs, classes, wnids)
    rows = as_array(weight, "the matrix of weights")
    rows = rows.reshape(len(rows), -1) if rows.ndim > 2 and set(rows.shape[2:]) == {1} else rows
    if rows.ndim != 2:
        raise InputError(f"weights must be (classes, width), got {rows.shape}. Pass one row per class.")
    names = named(classes, len(rows))
    values = cosines(rows, names, "its weights are all zero")
    return ClassSimilarity(values, names, "weights", wnids=wnids, about={"width": int(rows.shape[1])} | about)


@of_several(*ANSWERS)
def from_confusion(
    confusion: Any,
    predictions: Any = None,
    classes: Names = None,
    *,
    data: Any = None,
    split: str | None = "test",
    wnids: Ids = None,
    **show: Unpack[ShowOptions],
) -> ClassSimilarity:
    """CCSM: the confusion matrix `(c, c)`, rows the true classes, each row summing to 1, then 1 on the diagonal.

    Not symmetric. A class without samples keeps zeros off the diagonal, with a warning.

    Args:
        confusion: The confusion matrix, or the true labels; or a view, a network or its address. A list or
            mapping of these gives one similarity each, by name.
        predictions: With true labels, the predicted class of every input.
        classes: The names of the classes; by default those of the network.
        data: What a network is shown; labelled.
        split: The data that was classified.
        wnids: One WordNet id per class, None for a class that has none.
        **show: How a network is shown the data; see `likewise.Show`.

    Raises:
        InputError: The matrix holds no counts, or labels and predictions do not fit.

    Example:
        >>> from_confusion([0, 0, 1, 1], [0, 1, 1, 1]).values.tolist()
        [[1.0, 0.5], [0.0, 1.0]]
    """
    answers = answers_of("from_confusion", confusion, data, show, classes, wnids)
    if answers is not None:
        outputs, classes, wnids = answers
        confusion, predictions = outputs.labels, outputs.predictions
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


@of_several()
def from_features(
    features: Any,
    labels: Any = None,
    classes: Names = None,
    *,
    data: Any = None,
    layers: str | None = None,
    split: str | None = "test",
    wnids: Ids = None,
    **show: Unpack[ShowOptions],
) -> ClassSimilarity:
    """TNCSM: cosine of the class means of features `(n, d)`; for networks without a classifier too.

    A class without samples has no mean: NaN, with a warning.

    Args:
        features: Features of one layer, as an array or a view; or a network or its address. A list or mapping
            of these gives one similarity each, by name.
        labels: The true class of every input, by default those of the view; for a network, its data.
        classes: The names of the classes; by default those of the data.
        data: What a network is shown: labelled data or its address (an image folder, say).
        layers: The layer of the network; by default the input of its classifier, or its embedding where it has none.
        split: The data the features come from.
        wnids: One WordNet id per class, None for a class that has none.
        **show: How a network is shown the data; see `likewise.Show`.

    Raises:
        InputError: Features and labels do not fit, or the layer does not give one row per input.

    Example:
        >>> from_features([[1.0, 0.0], [1.0, 1.0], [3.0, 3.0]], [0, 1, 1])["0", "1"].__round__(3)
        0.707
    """
    about: dict[str, Any] = {}
    options = Show.only("from_features", show, layers=layers)
    if is_network(features):
        view, labelled = features_of(features, labels if data is None else data, options)
        features, labels = view.values, labelled.labels
        classes, wnids = classes or named(labelled.classes, len(labelled.classes)), wnids or labelled.wnids
        about = {"network": view.name, "layer": view.about.get("embedding") or view.about["layer"]}
        about |= {"accuracy": right[view.name]} if (right := accuracies({view.name: view})) else {}
    elif labels is None and isinstance(features, Activations) and features.outputs is not None:
        labels = features.outputs.labels
        classes, wnids = class_names(features, features.outputs.logits.shape[1], classes, wnids)
    rows = feature_rows(features)
    truth = check_labels(labels, len(rows), None if classes is None else len(classes)).cpu().numpy()
    count = int(truth.max()) + 1 if classes is None else len(classes)
    similarity = from_sums(*class_sums(rows, truth, count), named(classes, count), split=split, wnids=wnids)
    return replace(similarity, about={**similarity.about, **about})


def class_sums(rows: np.ndarray, labels: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The sum of the rows of each class `(count, d)`, and how many there are."""
    sums = np.zeros((count, rows.shape[1]))
    np.add.at(sums, labels, rows)
    return sums, np.bincount(labels, minlength=count)


def from_sums(
    sums: np.ndarray, counts: np.ndarray, classes: Names = None, *, split: str | None = "test", wnids: Ids = None
) -> ClassSimilarity:
    """TNCSM from running sums: feature sums `(c, d)` and samples `(c,)` of each class."""
    names = named(classes, len(sums))
    means = sums / np.maximum(counts, 1)[:, None]
    values = cosines(means, names, "it has no sample, or its mean feature is zero")
    about = {"samples": int(counts.sum()), "width": int(sums.shape[1])}
    return ClassSimilarity(values, names, "features", split, wnids, about)


@of_several(*ANSWERS)
def from_logits(
    logits: Any,
    classes: Names = None,
    *,
    data: Any = None,
    split: str | None = "test",
    wnids: Ids = None,
    **show: Unpack[ShowOptions],
) -> ClassSimilarity:
    """LCSM: correlation over inputs of the logits of two classes; needs neither weights nor labels.

    Args:
        logits: What a network answers, (inputs, classes); or a view, a network or its address. A list or
            mapping of these gives one similarity each, by name.
        classes: The names of the classes; by default those of the network.
        data: What a network is shown.
        split: The data that was classified.
        wnids: One WordNet id per class, None for a class that has none.
        **show: How a network is shown the data; see `likewise.Show`.

    Example:
        >>> from_logits([[1.0, 2.0, 0.0], [2.0, 4.0, 1.0], [3.0, 6.0, 0.0]])["0", "1"].__round__(3)
        1.0
    """
    answers = answers_of("from_logits", logits, data, show, classes, wnids)
    if answers is not None:
        outputs, classes, wnids = answers
        logits = outputs.logits
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
    """SCSM: how alike the classes are in meaning.

    Args:
        classes: The name of a list of classes ("cifar100"), data or another class similarity, whose classes have
            WordNet ids or names in WordNet, or ids and synset names ("n02084071", "dog.n.01") themselves.
        names: Other names for the classes.
        measure: "path", Wu-Palmer ("wup") or Leacock-Chodorow ("lch").
        senses: What names mean that could mean several things: `{"fish": "fish.n.01"}`.

    Raises:
        InputError: A class has no name in WordNet, or could mean several things.
        UnknownNameError: There is no such list, synset or measure.

    Example:
        >>> from_wordnet("cifar10")["cat", "dog"].__round__(3)
        0.2
    """
    if isinstance(classes, str):
        listed = wordnet.classes(classes)
        names, ids = names or listed.names, list(listed.wnids)
    elif hasattr(classes, "wnids"):
        if isinstance(classes, ClassSimilarity) and numbered(classes) and not classes.ids:
            raise InputError(
                f"the classes of {classes.short} have no names but their numbers. Name them where it is made, as in "
                "from_weights(net, classes=...), or give data whose classes have names."
            )
        class_names = ClassNames(tuple(map(str, classes.classes)), classes.wnids)
        names, ids = names or class_names.names, list(wordnet.depicted(class_names, senses))
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
