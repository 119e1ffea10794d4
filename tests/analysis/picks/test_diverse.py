"""Networks drawn for being unlike: by which weights, and beside which of those drawn before."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from likewise import analysis
from likewise.analysis.ensembles import Ensembles
from tests.analysis.helpers import matrix, zoo
from tests.conftest import refused


@pytest.mark.parametrize("larger_is", ["more alike", "less alike"])
def test_networks_are_drawn_in_inverse_proportion_to_similarity(larger_is: str) -> None:
    alike = np.array([[9.0, 1, 2, 4], [1, 9, 2, 4], [2, 2, 9, 4], [4, 4, 4, 9]])
    given = matrix(alike if larger_is == "more alike" else 1 / alike, larger_is=larger_is)
    drawn = [analysis.pick_diverse(given, 2, seed=seed).members for seed in range(800)]
    second = Counter(pair[1] for pair in drawn if pair[0] == "n0")
    # from n0, the weights are 1, 1/2 and 1/4
    shares = [second[name] / second.total() for name in ("n1", "n2", "n3")]
    assert shares == pytest.approx([4 / 7, 2 / 7, 1 / 7], abs=0.1)
    close = Counter(analysis.pick_diverse(given, 2, "similar", seed=seed).members for seed in range(800))
    second = Counter({pair[1]: count for pair, count in close.items() if pair[0] == "n0"})
    shares = [second[name] / second.total() for name in ("n1", "n2", "n3")]
    assert shares == pytest.approx([1 / 7, 2 / 7, 4 / 7], abs=0.1)


def test_the_network_drawn_last_counts_alone() -> None:
    # the paper's rule, by a plain loop: the third is drawn by its similarity to the second, whatever the first
    alike = np.array([[9.0, 1, 2, 4], [1, 9, 8, 2], [2, 8, 9, 5], [4, 2, 5, 9]])
    drawn = [analysis.pick_diverse(matrix(alike), 3, seed=seed).members for seed in range(1500)]
    third = Counter(members[2] for members in drawn if members[:2] == ("n0", "n1"))
    # from n1, the weights of n2 and n3 are 1/8 and 1/2
    assert third["n3"] / third.total() == pytest.approx(0.8, abs=0.1)


def test_the_most_alike_of_all_drawn_counts_where_asked_for() -> None:
    alike = np.array([[9.0, 1, 50, 1], [1, 9, 1, 1], [50, 1, 9, 1], [1, 1, 1, 9]])
    drawn = [analysis.pick_diverse(matrix(alike), 3, beside="all", seed=seed).members for seed in range(200)]
    both = np.mean([{"n0", "n2"} <= set(members) for members in drawn])
    assert both < 0.1  # of random draws, half
    free = [analysis.pick_diverse(matrix(alike), 3, "random", seed=seed).members for seed in range(200)]
    assert np.mean([{"n0", "n2"} <= set(members) for members in free]) > 0.4


def test_a_diverse_choice_is_tried_as_an_ensemble_where_answers_are_given() -> None:
    given, answers, _ = zoo()
    plain = analysis.pick_diverse(given, 3, seed=2)
    assert plain.held_out is None
    tried = analysis.pick_diverse(given, 3, seed=2, answers=answers)
    assert tried.members == plain.members
    assert len(set(tried.members)) == 3
    assert tried.held_out is not None
    _, held = answers.split(0.5, 2)
    at = [answers.names.index(name) for name in tried.members]
    assert tried.held_out.errors["pick"].value == Ensembles(held).errors(at)[0]


def test_scores_below_zero_can_be_drawn_from() -> None:
    values = np.full((4, 4), -1.0)
    assert len(set(analysis.pick_diverse(matrix(values), 4).members)) == 4
    values[0, 1] = values[1, 0] = 2.0
    assert len(set(analysis.pick_diverse(matrix(values), 4).members)) == 4


FEW, _, _ = zoo((2, 2), n=40)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: analysis.pick_diverse(FEW, 2.5), "4 networks have no choice of 2.5. Choose from 2 to 4."),
        (
            lambda: analysis.pick_diverse(FEW, 2, "unlike"),
            "no rule named 'unlike'. Choose 'inverse', 'similar', 'random'.",
        ),
        (
            lambda: analysis.pick_diverse(FEW, 2, beside="first"),
            "no networks named 'first' to draw beside. Choose 'current', 'all'.",
        ),
        (
            lambda: analysis.pick_diverse(FEW.reordered(["n0", "n1"]), 2),
            "SimilarityMatrix('made', 2 networks) has 2 networks, too few to compare pairs. Give three or more.",
        ),
    ],
    ids=["part", "rule", "beside", "two"],
)
def test_what_cannot_be_drawn_is_said(call: Any, message: str) -> None:
    assert refused(call) == message
