"""Choices of networks: what they are made on, and what they are worth on inputs they have not seen."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from likewise import analysis
from likewise.analysis.ensembles import Ensembles
from likewise.analysis.picks.trials import best_subset, greedy, make_trial
from likewise.errors import UndefinedError
from likewise.transfer import Answers
from tests.analysis.helpers import matrix, zoo
from tests.conftest import refused


@pytest.mark.parametrize("larger_is", ["more alike", "less alike"])
def test_an_ensemble_is_picked_across_families(larger_is: str) -> None:
    given, answers, family = zoo(larger_is=larger_is)
    found = analysis.pick_ensemble(given, answers, 3)
    assert sorted(family[name] for name in found.members) == [0, 1, 2]
    sign = 1 if larger_is == "more alike" else -1
    assert sign * found.evidence["correlation"] < -0.5
    assert sign * found.evidence["similarity"] < sign * found.evidence["similarity_of_all"]


def test_the_pick_is_made_without_the_held_out_inputs() -> None:
    given, answers, _ = zoo(n=200)
    held = np.random.default_rng(7).permutation(200)[100:]  # as `split` draws them
    spoilt = answers.logits.copy()
    spoilt[:, held] = np.random.default_rng(1).normal(size=spoilt[:, held].shape)
    other = Answers(answers.names, spoilt, answers.labels)
    one, two = (analysis.pick_ensemble(given, each, 3, seed=7) for each in (answers, other))
    assert one.members == two.members
    assert one.evidence == two.evidence
    assert two.held_out is not None
    assert two.held_out.errors["pick"].value > 0.7  # of five classes, at random


def test_the_trial_is_that_of_the_held_out_half() -> None:
    given, answers, _ = zoo((3, 3), n=120)
    found = analysis.pick_ensemble(given, answers, 2, seed=3)
    trial = found.held_out
    assert trial is not None
    choosing, held = answers.split(0.5, 3)
    assert trial.inputs == held.n == 60
    everyone = list(combinations(range(6), 2))
    errors = {names: Ensembles(held).errors(names)[0] for names in everyone}
    at = tuple(sorted(answers.names.index(name) for name in found.members))
    accurate = tuple(sorted(np.argsort(-choosing.accuracies, kind="stable")[:2].tolist()))
    known = [float(Ensembles(choosing).errors(names)[0]) for names in everyone]
    expected = {
        "pick": errors[at],
        "accuracy": errors[accurate],
        "ensemble": errors[everyone[int(np.argmin(known))]],
        "greedy": float(Ensembles(held).errors(greedy(Ensembles(choosing), 1 - choosing.accuracies, 2))[0]),
        "best": min(errors.values()),
        "random": np.mean(list(errors.values())),
    }
    assert {name: one.value for name, one in trial.errors.items()} == pytest.approx(expected)
    assert {name: one.value for name, one in trial.regrets.items()} == pytest.approx(
        {name: value - expected["best"] for name, value in expected.items()}
    )
    assert {name: one.value for name, one in trial.gains.items()} == pytest.approx(
        {name: value - expected["pick"] for name, value in expected.items()}
    )
    assert all(one.low <= one.value <= one.high for one in trial.errors.values())
    assert trial.errors["pick"].low < trial.errors["pick"].high
    frame = trial.to_frame()
    assert frame.loc["random", "regret"] == trial.regrets["random"].value
    assert frame.loc["accuracy", "gain_low"] == trial.gains["accuracy"].low


def test_where_similarity_says_nothing_accuracy_decides() -> None:
    _, answers, family = zoo()
    misleading = np.array([[float(family[a] != family[b]) for b in answers.names] for a in answers.names])
    found = analysis.pick_ensemble(matrix(misleading), answers, 4)  # alike pairs gain more here
    choosing, _ = answers.split(0.5, 0)
    accurate = {answers.names[i] for i in np.argsort(-choosing.accuracies)[:4]}
    assert choosing.subset(found.members).accuracies.mean() == choosing.subset(sorted(accurate)).accuracies.mean()
    assert found.evidence["correlation"] > 0
    assert found.reasons[2].endswith(": alike pairs do not gain less, so that accuracy alone decides")


def test_a_pick_says_its_evidence_in_words() -> None:
    given, answers, _ = zoo()
    found = analysis.pick_ensemble(given, answers, 3)
    numbers = found.evidence
    assert found.reasons == (
        f"accuracy: {numbers['accuracy']:.2%} on average on 200 inputs, all 12 networks "
        f"{numbers['accuracy_of_all']:.2%}",
        f"made: {numbers['similarity']:.3g} on average between members, {numbers['similarity_of_all']:.3g} between all "
        "(larger is more alike)",
        f"over 66 pairs, the error reduction changes by {numbers['slope']:+.3g} per unit of it (correlation "
        f"{numbers['correlation']:+.2f})",
        f"predicted error {numbers['predicted_error']:.2%}",
    )
    text = str(found)
    assert text.startswith(", ".join(found.members))
    assert "on 200 held-out inputs, with 95 % intervals, in percent:" in text
    assert text.endswith(f"\n{found.held_out.verdict}")  # type: ignore[union-attr]
    assert repr(found) == f"Pick(members={found.members!r}, rule='predicted error')"


def test_few_inputs_decide_nothing() -> None:
    draw = np.random.default_rng(0)
    rows = {"pick": np.zeros(20), "best": np.zeros(20), "random": np.eye(20)[0] / 3}
    few = make_trial(rows, ("a",), draw)
    assert few.errors["pick"].high == pytest.approx(0.161, abs=0.001)  # none of 20: Wilson's upper end
    assert few.verdict == "20 inputs are too few to tell whether the pick errs less than random choices."
    sure = make_trial({**rows, "random": np.ones(20) / 3}, ("a",), draw)
    assert sure.verdict == "The pick errs less than random choices."
    worse = make_trial({"pick": np.ones(20), "best": np.zeros(20), "random": np.ones(20) / 3}, ("a",), draw)
    assert worse.verdict == "The pick errs more than random choices."


def test_large_zoos_are_searched_by_adding_and_swapping(monkeypatch: pytest.MonkeyPatch) -> None:
    _, answers, _ = zoo()
    value = Ensembles(answers).errors
    every = np.array(list(combinations(range(12), 3)))
    exact = value(every).min()
    assert value(best_subset(value, 12, 3))[0] == exact
    monkeypatch.setattr("likewise.analysis.picks.trials.EXHAUSTIVE", 0)
    near = best_subset(value, 12, 3)
    assert len(set(near.tolist())) == 3
    assert value(near)[0] <= np.quantile(value(every), 0.02)


def test_regrets_over_zoos_put_the_pick_before_random_choices() -> None:
    given, answers, _ = zoo((5, 5, 5))
    found = analysis.regrets(given, answers, 3, zoos=12, zoo_size=8, progress=False)
    assert list(found.index) == ["pick", "accuracy", "ensemble", "greedy", "best", "random"]
    assert found.regret["best"] == found.gain["pick"] == 0
    assert (found.regret >= 0).all()
    assert found.gain_low["random"] > 0
    assert (found.error - found.regret).to_numpy() == pytest.approx(found.error["best"])
    assert ((found.regret_low <= found.regret) & (found.regret <= found.regret_high)).all()
    assert found.equals(analysis.regrets(given, answers, 3, zoos=12, zoo_size=8, progress=False))


def test_a_choice_on_few_labelled_inputs_is_judged_by_all_others() -> None:
    given, answers, _ = zoo((5, 5, 5))
    few = analysis.regrets(given, answers, 3, zoos=20, zoo_size=8, labelled=10, progress=False)
    many = analysis.regrets(given, answers, 3, zoos=20, zoo_size=8, labelled=200, progress=False)
    assert few.regret["ensemble"] > many.regret["ensemble"]  # what is searched on ten inputs is overfitted
    assert many.equals(analysis.regrets(given, answers, 3, zoos=20, zoo_size=8, progress=False))


FEW, FEW_ANSWERS, _ = zoo((2, 2), n=40)
BROKEN = matrix(np.where(np.eye(4)[::-1] > 0, np.nan, 1.0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: analysis.pick_ensemble(FEW, FEW_ANSWERS.subset(["n0", "n1", "n2"]), 2),
            "'n3' is in the matrix and not in the answers. Give both the same networks: matrix.reordered([...]), "
            "answers.subset([...]).",
        ),
        (
            lambda: analysis.regrets(FEW.reordered(["n0", "n1", "n3"]), FEW_ANSWERS, 2),
            "'n2' is in the answers and not in the matrix. Give both the same networks: matrix.reordered([...]), "
            "answers.subset([...]).",
        ),
        (
            lambda: analysis.pick_ensemble(FEW, FEW_ANSWERS, 5),
            "4 networks have no choice of 5. Choose from 2 to 4.",
        ),
        (lambda: analysis.pick_ensemble(FEW, FEW_ANSWERS, 1), "4 networks have no choice of 1. Choose from 2 to 4."),
        (
            lambda: analysis.pick_ensemble(BROKEN, FEW_ANSWERS, 2),
            "SimilarityMatrix('made', 4 networks, 4 undefined) has no score for 'n0' and 'n3'. Leave one of them out: "
            "matrix.reordered([...]) with the names to keep.",
        ),
        (
            lambda: analysis.regrets(FEW, FEW_ANSWERS, 2, zoo_size=5),
            "4 networks make no zoo of 5. Choose from 3 to 4.",
        ),
        (lambda: analysis.regrets(FEW, FEW_ANSWERS, 2, zoos=1, zoo_size=3), "zoos is 1. Give at least 2."),
        (
            lambda: analysis.regrets(FEW, FEW_ANSWERS, 2, zoo_size=3, labelled=40),
            "labelled is 40 of 40 inputs. Leave some to judge the choice by, and take one.",
        ),
        (
            lambda: analysis.regrets(FEW, FEW_ANSWERS, 2, zoo_size=3, labelled=0),
            "labelled is 0 of 40 inputs. Leave some to judge the choice by, and take one.",
        ),
    ],
    ids=["fewer", "more", "large", "one", "undefined", "zoo", "zoos", "all", "none"],
)
def test_what_cannot_be_picked_is_said(call: Any, message: str) -> None:
    assert refused(call) == message


def test_an_infinite_score_is_none() -> None:
    values = FEW.values.copy()
    values[1, 2] = np.inf
    assert refused(lambda: analysis.pick_ensemble(matrix(values), FEW_ANSWERS, 2)) == (
        "SimilarityMatrix('made', 4 networks) has no score for 'n1' and 'n2'. Leave one of them out: "
        "matrix.reordered([...]) with the names to keep."
    )


def test_networks_that_never_err_leave_nothing_to_pick_by() -> None:
    labels = np.zeros(20, dtype=int)
    perfect = Answers(FEW.names, np.tile([1.0, 0.0], (4, 20, 1)), labels)
    assert refused(lambda: analysis.pick_ensemble(FEW, perfect, 2), UndefinedError) == (
        "no network errs on the 10 inputs that the choice is made on, so there is no error to reduce. Show them more "
        "inputs, or harder ones."
    )


def test_a_diagonal_without_a_score_does_not_matter() -> None:
    values = FEW.values.copy()
    np.fill_diagonal(values, np.nan)
    assert analysis.pick_ensemble(matrix(values), FEW_ANSWERS, 2) == analysis.pick_ensemble(FEW, FEW_ANSWERS, 2)
