"""Are mistakes made on untypical samples? Class templates of what is classified right and wrong.

After appendix H of the paper: a template is the mean feature of a class. Late in training the template
of wrongly classified samples lies further from that of the class than early: what is left are hard cases.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likewise._base.arrays import check_labels
from likewise.classes.from_sources import feature_rows


class Templates(NamedTuple):
    """Mean over classes of the cosine of their template with that of their right and wrong samples.

    `cosines` are those of every wrong sample with its class's template, for a histogram; `mistakes` is
    their number.
    """

    right: float
    wrong: float
    cosines: np.ndarray
    mistakes: int


def templates(features: Any, labels: Any, predictions: Any) -> Templates:
    """Compare the templates of right and wrong samples with those of their classes.

    Classes without a right (or a wrong) sample are left out of that mean; NaN where none is left.

    >>> found = templates([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 0, 0], [0, 1, 0])
    >>> round(found.right, 3), round(found.wrong, 3), found.mistakes
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
    sums = np.zeros((count, rows.shape[1]))
    np.add.at(sums, labels, rows)
    return sums / np.maximum(np.bincount(labels, minlength=count), 1)[:, None]


def _cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return np.einsum("ij,ij->i", a, b) / np.where(norms > 0, norms, np.nan)


def _mean_cosine(a: np.ndarray, b: np.ndarray) -> float:
    values = _cosine(a, b)
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")
