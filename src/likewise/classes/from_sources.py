"""Class similarity from what there is: weights, mistakes, features, logits, or WordNet.

Everything is computed in float64. Rows that have no direction (a zero weight row, a class without a
sample) are NaN, with a warning; they are never filled in. Which layer of a network classifies is for
`networks/anatomy/classifier.py` to say; what reads networks is imported when one is passed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise import wordnet
from likewise._base.arrays import as_array, check_labels
from likewise._base.progress import warn
from likewise.classes.similarity import ClassSimilarity, named, numbered
from likewise.errors import InputError, NoClassifierError, quoted_list
from likewise.wordnet import ClassNames, match

if TYPE_CHECKING:
    from torch import Tensor

    from likewise.data import Data
    from likewise.views.activations import Activations


def from_weights(
    weight: Any,
    classes: Sequence[str] | None = None,
    *,
    head: str | None = None,
    inputs: Any = None,
    wnids: Sequence[str | None] | None = None,
) -> ClassSimilarity:
    """NCSM: cosine of the rows of the classifier's weights `(c, d)`; needs no data, ignores the bias.

    Rows that are no classes (no object, background, "N/A") are left out, and `about` says how many. Of
    a detector with anchors, the rows of a class at all anchors count side by side. A row of zeros has
    no direction: NaN, with a warning.

    Args:
        weight: The matrix, or a network or its address, whose classifier is found (of detectors and segmenters too).
        classes: The names of the classes. Those a network has by name need not be given; given in another order, its
            rows follow them.
        head: The name of the classifier in the network.
        inputs: A batch for the network, where several of its layers could be the classifier.
        wnids: One WordNet id per class, None for a class that has none.

    Returns:
        The class similarity.

    Raises:
        InputError: The weights have no row per class.
        NoClassifierError: The network has no classifier, or several layers could be it.

    Example:
        >>> from_weights([[1.0, 0.0], [1.0, 1.0]]).values.round(3).tolist()
        [[1.0, 0.707], [0.707, 1.0]]
    """
    about: dict[str, Any] = {}
    if _is_network(weight):
        weight, network_classes, about = _classifier_rows(
            weight, head, inputs, None if classes is None else len(classes)
        )
        if network_classes is not None and classes is None:
            classes, wnids = network_classes.names, wnids or network_classes.wnids
        elif network_classes is not None and classes is not None:
            order = _row_order(classes, network_classes)
            weight = weight if order is None else weight[order]
    rows = as_array(weight, "the matrix of weights")
    rows = rows.reshape(len(rows), -1) if rows.ndim > 2 and set(rows.shape[2:]) == {1} else rows
    if rows.ndim != 2:
        raise InputError(f"weights must be (classes, width), got {rows.shape}. Pass one row per class.")
    names = named(classes, len(rows))
    values = cosines(rows, names, "its weights are all zero")
    return ClassSimilarity(values, names, "weights", wnids=wnids, about={"width": int(rows.shape[1])} | about)


def _is_network(source: Any) -> bool:
    return isinstance(source, str) or hasattr(source, "named_modules")


def _classifier_rows(
    network: Any, head: str | None, inputs: Any, count: int | None
) -> tuple[Tensor, ClassNames | None, dict[str, Any]]:
    """The classifier's weights `(classes, width)`, its classes where the network names them, and where they come from.

    Outputs that are no classes are left out, unless as many classes as outputs were named.
    """
    from likewise.networks import head as find_head
    from likewise.networks import network as load_network
    from likewise.networks.anatomy.classifier import answering_call
    from likewise.networks.class_names import class_rows
    from likewise.networks.forward import call, eval_mode

    net = load_network(network)
    if head is None and inputs is not None:
        with eval_mode(net) as resting:
            head = answering_call(net, lambda: call(resting, inputs)).partition("#")[0]
    try:
        classifier = find_head(net, layer=head, classes=count)
    except NoClassifierError as error:
        remedy = "Or take class means: from_features(net, data), on the command line --data."
        raise NoClassifierError(f"{error} {remedy}") from error
    about: dict[str, Any] = {"layer": classifier.layer_name}
    rows, names = class_rows(net, len(classifier.weight))
    left_out = len(classifier.weight) - len(rows)
    if not left_out or count == len(classifier.weight):
        return classifier.weight, None if left_out else names, about
    return classifier.weight[rows], names, about | {"left_out": left_out}


def _row_order(classes: Sequence[str], names: ClassNames) -> list[int] | None:
    """The rows of the named classes, where the network has all of them in another order."""
    if len(classes) != len(names):
        return None
    rows = [row for row in match(ClassNames(tuple(map(str, classes))), names) if row is not None]
    return None if len(rows) < len(names) or rows == sorted(rows) else rows


def from_confusion(
    confusion: Any,
    predictions: Any = None,
    classes: Sequence[str] | None = None,
    *,
    split: str | None = "test",
    wnids: Sequence[str | None] | None = None,
) -> ClassSimilarity:
    """CCSM: the confusion matrix `(c, c)`, rows the true classes, each row summing to 1, then 1 on the diagonal.

    Not symmetric. A class without samples keeps zeros off the diagonal, with a warning.

    Args:
        confusion: The confusion matrix, or the true labels.
        predictions: With true labels, the predicted class of every input.
        classes: The names of the classes.
        split: The data that was classified.
        wnids: One WordNet id per class, None for a class that has none.

    Returns:
        The class similarity.

    Raises:
        InputError: The matrix holds no counts, or labels and predictions do not fit.

    Example:
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

    A class without samples has no mean: NaN, with a warning.

    Args:
        features: Features of one layer, or a network or its address.
        labels: The true class of every input; for a network, labelled data or its address (an image folder, say).
        classes: The names of the classes; by default those of the data.
        split: The data the features come from.
        wnids: One WordNet id per class, None for a class that has none.
        layers: The layer of the network; by default the input of its classifier, or its embedding where it has none.
        reduce: How maps and tokens become one row per input.
        head: The name of the classifier in the network.
        batch_size: How many inputs the network is shown at once.
        device: Where the network runs.
        progress: Whether to show a progress bar.

    Returns:
        The class similarity.

    Raises:
        InputError: Features and labels do not fit, or the layer does not give one row per input.

    Example:
        >>> from_features([[1.0, 0.0], [1.0, 1.0], [3.0, 3.0]], [0, 1, 1])["0", "1"].__round__(3)
        0.707
    """
    if _is_network(features):
        options: dict[str, Any] = {"batch_size": batch_size, "device": device, "progress": progress}
        view, data = _network_features(features, labels, layers, reduce, head=head, **options)
        names, ids = classes or named(data.classes, len(data.classes)), wnids or data.wnids
        similarity = from_features(view.values, data.labels, names, split=split, wnids=ids)
        layer = view.about.get("embedding") or view.about["layer"]
        return replace(similarity, about=dict(similarity.about) | {"network": view.name, "layer": layer})
    rows = feature_rows(features)
    truth = check_labels(labels, len(rows), None if classes is None else len(classes)).cpu().numpy()
    count = int(truth.max()) + 1 if classes is None else len(classes)
    return from_sums(*class_sums(rows, truth, count), named(classes, count), split=split, wnids=wnids)


def _network_features(
    network: Any, data: Any, layers: str | None, reduce: str | None, **options: Any
) -> tuple[Activations, Data]:
    """What one layer of a network gives on labelled data, and the data."""
    from likewise.data import Data, as_data
    from likewise.views.extract import extract
    from likewise.views.hooks import is_pattern

    labelled = as_data(data)
    if not isinstance(labelled, Data):
        raise InputError(
            f"class means are of data whose classes have names, got {type(data).__name__}. Give likewise.data.Data or "
            "an address, such as 'imagefolder:PATH', or features and labels."
        )
    labelled.need_labels("know which inputs are of one class")
    if is_pattern(layers):
        raise InputError(f"layers is {layers!r}, and class means are of one layer. Name one, or leave it out.")
    view = extract(network, labelled, layers, reduce=reduce, **options)
    if len(view) != len(labelled):
        raise InputError(
            f"{layers or 'the layer'} of {view.name!r} gives {len(view)} rows for {len(labelled)} inputs. Choose a "
            "reduction that gives one row per input: reduce='mean', 'cls' or 'last'."
        )
    return view, labelled


def class_sums(rows: np.ndarray, labels: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The sum of the rows of each class `(count, d)`, and how many there are."""
    sums = np.zeros((count, rows.shape[1]))
    np.add.at(sums, labels, rows)
    return sums, np.bincount(labels, minlength=count)


def from_sums(
    sums: np.ndarray,
    counts: np.ndarray,
    classes: Sequence[str] | None = None,
    *,
    split: str | None = "test",
    wnids: Sequence[str | None] | None = None,
) -> ClassSimilarity:
    """TNCSM from running sums: feature sums `(c, d)` and samples `(c,)` of each class."""
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
    """LCSM: correlation over inputs of the logits of two classes; needs neither weights nor labels.

    Args:
        logits: What a network answers, (inputs, classes).
        classes: The names of the classes.
        split: The data that was classified.
        wnids: One WordNet id per class, None for a class that has none.

    Returns:
        The class similarity.

    Raises:
        InputError: The logits are no matrix of at least two rows.

    Example:
        >>> from_logits([[1.0, 2.0, 0.0], [2.0, 4.0, 1.0], [3.0, 6.0, 0.0]])["0", "1"].__round__(3)
        1.0
    """
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

    Returns:
        The class similarity.

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
