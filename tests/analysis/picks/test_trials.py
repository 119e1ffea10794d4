"""Greedy selection with replacement, by a plain loop."""

from __future__ import annotations

import numpy as np
import pytest

from likewise import analysis
from likewise.transfer import Answers
from tests.analysis.helpers import zoo
from tests.conftest import refused


def plainly(answers: Answers, size: int) -> list[str]:
    """Caruana's selection, error by error from the mean of the logits."""
    members: list[int] = []
    for _ in range(size):
        tried = []
        for other in range(len(answers)):
            total = np.zeros(answers.logits.shape[1:])
            for member in sorted([*members, other]):
                total += answers.logits[member]
            wrong = sum(int(row.argmax()) != label for row, label in zip(total, answers.labels, strict=True))
            tried.append((wrong, int((~answers.right[other]).sum()), other))
        members.append(min(tried)[2])
    return [answers.names[member] for member in members]


@pytest.mark.parametrize("seed", range(4))
def test_greedy_selection_is_that_of_a_plain_loop(seed: int) -> None:
    _, answers, _ = zoo((3, 3), n=60, seed=seed)
    assert analysis.greedy_members(answers, 6) == plainly(answers, 6)


def test_a_network_that_is_far_better_is_added_again() -> None:
    labels = np.arange(20) % 2
    good = 10 * np.eye(2)[labels]
    good[:2] *= -1  # errs on two of twenty
    bad = 30 * np.eye(2)[1 - labels]
    answers = Answers(["good", "bad"], [good, bad], labels)
    assert analysis.greedy_members(answers, 3) == ["good", "good", "good"]


def test_no_members_are_refused() -> None:
    _, answers, _ = zoo((2, 2), n=40)
    for size in (0, 1.5, "two"):
        sentence = f"size must be a whole number of at least 1, got {size!r}."
        assert refused(lambda size=size: analysis.greedy_members(answers, size)) == sentence
