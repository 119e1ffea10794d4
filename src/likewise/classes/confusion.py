"""Indices of mistakes: IDM, distance in WordNet's hierarchy, intervals over samples, templates of right and wrong.

IDM needs the confusion matrix alone, not the samples: a sample of class i predicted as j counts as the rank of j in the
similarity-sorted row of i. Ties share their mean rank, since WordNet is full of them (a class of ImageNet-1k shares its
similarity with 97 others on average) and any other rule would depend on the order of the classes.

Templates tell whether mistakes are made on untypical samples, after appendix H of the paper: a template is the mean
feature of a class. Late in training the template of wrongly classified samples lies further from that of the class
than early: what is left are hard cases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from likewise._base.arrays import as_array, check_labels
from likewise.classes.agreement import DECIMALS
from likewise.classes.from_sources import as_counts, class_sums, feature_rows
from likewise.classes.similarity import ClassSimilarity, check_similarity
from likewise.errors import InputError

Ties = Literal["average", "min", "max", "stable"]


def ranks(similarity: ClassSimilarity | np.ndarray, ties: Ties = "average") -> np.ndarray:
    """The rank of every class in the rows of all others: 0 itself, 1 the most alike.

    Args:
        similarity: A class similarity, or its values (classes, classes).
        ties: What equal similarities get: their mean rank, the smallest, the largest, or ranks in the order of classes.

    Returns:
        Ranks (classes, classes); NaN in rows with undefined entries.

    Example:
        >>> ranks(np.array([[1, 0.9, 0.1], [0.2, 1, 0.2], [0.3, 0.4, 1]])).tolist()
        [[0.0, 1.0, 2.0], [1.5, 0.0, 1.5], [2.0, 1.0, 0.0]]
    """
    values = similarity.values if isinstance(similarity, ClassSimilarity) else similarity
    rows, columns = np.indices(values.shape).reshape(2, -1)
    return _ranks_of(values, rows, columns, ties).reshape(values.shape)


def _ranks_of(values: np.ndarray, rows: np.ndarray, columns: np.ndarray, ties: Ties) -> np.ndarray:
    """The ranks of some entries in their rows, from one sort of all rows.

    Each row is lifted above the one before it, so that all of them are one sorted list. A row with
    undefined entries has no order: NaN.
    """
    grid, c = np.round(values, DECIMALS), len(values)
    undefined = np.asarray(np.isnan(grid).any(axis=1))
    grid[undefined] = 0.0
    low, high = grid.min(), grid.max()
    np.fill_diagonal(grid, low - 1)  # itself is never as alike as another
    grid += (high - low + 2) * np.arange(c)[:, None]
    if ties == "stable":
        positions = np.empty(grid.shape)
        best = np.argsort(-grid, axis=1, kind="stable")
        np.put_along_axis(positions, best, np.arange(1.0, c + 1)[None, :], axis=1)
        rank = positions[rows, columns]
    else:
        entries = grid[rows, columns]
        ordered = np.sort(grid, axis=1).ravel()
        upto = np.searchsorted(ordered, entries, side="right")
        greater, equal = (rows + 1) * c - upto, upto - np.searchsorted(ordered, entries)
        by_ties = {"average": greater + (equal + 1) / 2, "min": greater + 1.0, "max": (greater + equal).astype(float)}
        rank = by_ties[ties]
    rank[rows == columns] = 0.0
    return np.where(undefined[rows], np.nan, rank)


class Idm(float):
    """An inverse dissimilarity: a float that knows its chance, its ceiling and the accuracy beside it."""

    chance: float
    ceiling: float
    accuracy: float
    errors_only: bool

    def __repr__(self) -> str:
        return f"Idm({float(self):.4f}, chance={self.chance:.4f}, ceiling={self.ceiling:.4f})"

    @property
    def unit(self) -> float:
        """On the scale from the least alike class, 0, to the most alike, 1; of errors only."""
        worst = 2 * self.chance - self.ceiling
        span = self.ceiling - worst  # none where there are two classes, or no mistake
        return (float(self) - worst) / span if span > 0 else np.nan


def idm(similarity: ClassSimilarity, confusion: Any, *, errors_only: bool = False, ties: Ties = "average") -> Idm:
    """How close predictions are to the truth among the classes sorted by similarity.

    1 - mean rank / (c - 1), the rank being that of the predicted class in the row of the true one, 0 if
    right. With the network's own matrix (NIDM) it tells whether mistakes follow what the network finds
    alike, with WordNet's (WIDM) whether they are reasonable.

    Args:
        similarity: A class similarity.
        confusion: The confusion matrix (classes, classes), rows the true classes.
        errors_only: Leave out what is right. Chance is then (c - 2) / (2 (c - 1)), not 0, and the ceiling
            1 - 1 / (c - 1), not 1; NaN where there is no error.
        ties: What equal similarities get (see `ranks`).

    Raises:
        InputError: There are not as many classes in both, the confusion holds no counts, or the similarity is none.

    Example:
        >>> a = ClassSimilarity([[1, 0.9, 0.1], [0.9, 1, 0.2], [0.1, 0.2, 1]])
        >>> idm(a, [[8, 2, 0], [1, 9, 0], [0, 0, 10]], errors_only=True)
        Idm(0.5000, chance=0.2500, ceiling=0.5000)
    """
    check_similarity(similarity)
    counts = as_counts(confusion)
    if len(counts) != len(similarity):
        raise InputError(
            f"the similarity is over {len(similarity)} classes and the confusion matrix over "
            f"{len(counts)}. Both must hold the same classes."
        )
    wrong = counts.copy()
    np.fill_diagonal(wrong, 0)
    rows, columns = np.nonzero(wrong)
    shifted = float(wrong[rows, columns] @ _ranks_of(similarity.values, rows, columns, ties))
    errors, total, c = float(wrong.sum()), float(counts.sum()), len(counts)
    inputs = errors if errors_only else total
    value = Idm(1 - shifted / inputs / (c - 1) if inputs else np.nan)
    share = 1.0 if errors_only else errors / total if total else np.nan
    value.chance = 1 - share * c / (2 * (c - 1))
    value.ceiling = 1 - share / (c - 1)
    value.accuracy = 1 - errors / total if total else np.nan
    value.errors_only = errors_only
    return value


class HierarchicalDistance(NamedTuple):
    """Steps through WordNet from the truth to the answer, over all samples and over mistakes."""

    all: float
    mistakes: float


def hierarchical_distance(logits: Any, labels: Any, reference: ClassSimilarity, k: int = 1) -> HierarchicalDistance:
    """How many steps the k likeliest classes lie from the true one in WordNet, on average.

    A step is an edge of the noun graph (after Bertinetto et al. 2020, who count the height of the common ancestor
    instead).

    Args:
        logits: What the network answers, (inputs, classes).
        labels: The true class of every input.
        reference: A path similarity, 1 / (steps + 1): `from_wordnet(...)`.
        k: How many of the likeliest classes are counted.

    Raises:
        InputError: The reference is no path similarity, or shapes or k do not fit.

    Example:
        >>> from likewise.classes import from_wordnet
        >>> hierarchical_distance([[0.1, 0.9]], [0], from_wordnet(["cat.n.01", "dog.n.01"]))
        HierarchicalDistance(all=4.0, mistakes=4.0)
    """
    check_similarity(reference)
    rows = as_array(logits, "the matrix of logits")
    if reference.about.get("measure") != "path":
        raise InputError(
            f"steps can be counted in a path similarity only, and this is {reference.short}. Give "
            "from_wordnet(..., measure='path')."
        )
    if rows.ndim != 2 or rows.shape[1] != len(reference):
        raise InputError(f"logits must be (inputs, {len(reference)}), got {rows.shape}. Give one row per input.")
    truth = check_labels(labels, *rows.shape).cpu().numpy()
    if not 1 <= k <= len(reference):
        raise InputError(f"k is {k}. Give 1 to {len(reference)}, the number of classes.")
    best = np.argsort(-rows, axis=1, kind="stable")[:, :k]
    steps = (1 / reference.values - 1)[truth[:, None], best].mean(axis=1)
    wrong = best[:, 0] != truth
    return HierarchicalDistance(float(steps.mean()), float(steps[wrong].mean()) if wrong.any() else np.nan)


class SampleInterval(NamedTuple):
    """A value with the interval that resampling gives it."""

    value: float
    low: float
    high: float


def interval(
    confusion: Any, index: Callable[[np.ndarray], float], *, level: float = 0.95, resamples: int = 500, seed: int = 0
) -> SampleInterval:
    """A bootstrap interval over samples for any index of a confusion matrix.

    Drawing samples again with repetition is drawing a confusion matrix from a multinomial law, so
    nothing but the counts is needed.

    Args:
        confusion: The confusion matrix (classes, classes), rows the true classes.
        index: A function of a confusion matrix.
        level: The coverage of the interval.
        resamples: How many confusion matrices are drawn.
        seed: The seed of the draws.

    Raises:
        InputError: No sample was counted, or level or resamples are out of range.

    Example:
        >>> accuracy = interval([[90, 10], [20, 80]], lambda counts: counts.trace() / counts.sum())
        >>> accuracy.value, 0.78 < accuracy.low < 0.85 < accuracy.high < 0.91
        (0.85, True)
    """
    counts = as_counts(confusion)
    total = int(counts.sum())
    if not total:
        raise InputError("no sample was counted, so there is nothing to draw from.")
    if not 0 < level < 1 or resamples < 1:
        raise InputError(f"level is {level} and resamples {resamples}. Give 0 < level < 1 and at least 1.")
    draw = np.random.default_rng(seed)
    samples = draw.multinomial(total, counts.ravel() / total, size=resamples)
    values = [index(sample.reshape(counts.shape)) for sample in samples]
    defined = [value for value in values if not np.isnan(value)] or [np.nan]
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return SampleInterval(float(index(counts)), float(low), float(high))


class Templates(NamedTuple):
    """How far right and wrong samples lie from the templates of their classes.

    Attributes:
        right: The mean over classes of the cosine of their template with that of their right samples.
        wrong: The same of their wrong samples.
        cosines: Those of every wrong sample with its class's template, for a histogram.
        mistakes: How many samples are wrong.
    """

    right: float
    wrong: float
    cosines: np.ndarray
    mistakes: int


def templates(features: Any, labels: Any, predictions: Any) -> Templates:
    """Compare the templates of right and wrong samples with those of their classes.

    Classes without a right (or a wrong) sample are left out of that mean; NaN where none is left.

    Args:
        features: What a layer gives, (inputs, width).
        labels: The true class of every input.
        predictions: The class the network answers for every input.

    Example:
        >>> cosines = templates([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 0, 0], [0, 1, 0])
        >>> round(cosines.right, 3), round(cosines.wrong, 3), cosines.mistakes
        (0.949, 0.707, 1)
    """
    rows = feature_rows(features)
    truth = check_labels(labels, len(rows)).cpu().numpy()
    answers = check_labels(predictions, len(rows), what="predictions").cpu().numpy()
    count = int(truth.max()) + 1
    wrong = truth != answers
    whole_class = _means(rows, truth, count)
    away = rows[wrong]
    return Templates(
        _mean_cosine(_means(rows[~wrong], truth[~wrong], count), whole_class),
        _mean_cosine(_means(away, truth[wrong], count), whole_class),
        _cosine(away, whole_class[truth[wrong]]),
        int(wrong.sum()),
    )


def _means(rows: np.ndarray, labels: np.ndarray, count: int) -> np.ndarray:
    sums, samples = class_sums(rows, labels, count)
    return sums / np.maximum(samples, 1)[:, None]


def _cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return np.einsum("ij,ij->i", a, b) / np.where(norms > 0, norms, np.nan)


def _mean_cosine(a: np.ndarray, b: np.ndarray) -> float:
    values = _cosine(a, b)
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else float("nan")
