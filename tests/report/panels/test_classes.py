"""Findings on classes are of networks that answer better than by chance."""

from __future__ import annotations

import numpy as np

from likewise.report.panels.classes import Confusions, _class_difference, _count, _most_frequent


def confusions(*answers: np.ndarray) -> Confusions:
    labels = np.arange(60) % 3
    found = _count([f"n{i}" for i in range(len(answers))], ("a", "b", "c"), labels, np.stack(answers))
    assert found is not None
    return found


def test_mistakes_of_a_network_that_is_mostly_wrong_are_not_counted() -> None:
    labels = np.arange(60) % 3
    good = labels.copy()
    good[[1, 4]] = 2  # two b are taken for c
    wrong = np.zeros(60, dtype=int)  # a for everything: 40 mistakes
    both = confusions(good, good, wrong)
    assert _most_frequent(both) == (
        " Over the 2 networks that are right on more than half, the most frequent mistake is c instead of b: 4 of 4 "
        "mistakes."
    )
    assert list(_class_difference(both)) == []  # the two are right on the same inputs
    assert _most_frequent(confusions(good)) == (
        " Over all networks, the most frequent mistake is c instead of b: 2 of 2 mistakes."
    )


def test_without_a_mistake_none_is_most_frequent() -> None:
    assert _most_frequent(confusions(np.arange(60) % 3)) == ""
