"""Which measure predicts gains: the correlations by hand, and what cannot be told."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import spearmanr

from likewise import analysis
from likewise.errors import UndefinedError
from likewise.transfer import Answers
from tests.analysis.helpers import matrix, zoo
from tests.conftest import refused


def test_correlations_are_those_of_pairs_with_the_gain_on_other_inputs() -> None:
    given, answers, _ = zoo((3, 3), n=300)
    found = analysis.gain_predictors(given, answers, seed=5)
    known, others = answers.split(0.5, 5)
    pairs = list(combinations(range(6), 2))
    gains, alike, differ = [], [], []
    for i, j in pairs:
        together = (others.logits[i] + others.logits[j]).argmax(axis=1) != others.labels
        alone = 1 - (others.right[i].mean() + others.right[j].mean()) / 2
        gains.append(1 - together.mean() / alone)
        alike.append(given.values[i, j])
        differ.append((known.predictions[i] != known.predictions[j]).mean())
    assert found.inputs == others.n == 150
    assert found.correlations["made"].correlation == pytest.approx(-spearmanr(alike, gains)[0])
    assert found.correlations["disagreement"].correlation == pytest.approx(spearmanr(differ, gains)[0])
    values = [one.correlation for one in found.correlations.values()]
    assert values == sorted(values, reverse=True)
    assert set(found.correlations) == {"made", "disagreement", "jsd", "error-consistency", "same-mistake"}


def test_the_verdict_names_the_best_and_those_that_may_do_as_well() -> None:
    given, answers, _ = zoo((4, 4, 4))
    found = analysis.gain_predictors(given, answers)
    best = next(iter(found.correlations))
    assert found.verdict.startswith(f"{best} predicts best which pairs of these networks gain (")
    assert str(found).endswith(found.verdict)
    assert found.record()["measures"][0]["measure"] == best
    assert found.to_frame().loc[best, "low"] > 0


def test_where_nothing_predicts_accuracy_is_what_is_left() -> None:
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 5, 200)
    answers = Answers([f"n{i}" for i in range(6)], 2 * np.eye(5)[labels] + draw.normal(size=(6, 200, 5)), labels)
    noise = draw.random((6, 6))
    found = analysis.gain_predictors(matrix(noise + noise.T), answers)
    assert found.verdict == (
        "No measure surely predicts which pairs of these networks gain: accuracy is what to choose by."
    )


def test_a_measure_without_scores_is_left_out_with_its_reason() -> None:
    _, answers, _ = zoo((3, 3))
    found = analysis.gain_predictors(matrix(np.ones((6, 6))), answers)
    assert found.left_out == {
        "made": "all pairs of one matrix are equally alike, so nothing can agree with it. Choose another."
    }


def test_what_cannot_be_compared_is_said() -> None:
    given, answers, _ = zoo((2, 2), n=40)
    three = ["n0", "n1", "n2"]
    assert refused(lambda: analysis.gain_predictors(given.reordered(three), answers.subset(three))) == (
        "3 networks have too few pairs to compare measures by. Give four or more."
    )
    perfect = Answers(given.names, np.tile([1.0, 0.0], (4, 40, 1)), np.zeros(40, dtype=int))
    assert refused(lambda: analysis.gain_predictors(given, perfect), UndefinedError) == (
        "neither 'n0' nor 'n1' errs on the 20 inputs that gains are counted on, so there is nothing to predict. Show "
        "them more inputs, or harder ones."
    )
