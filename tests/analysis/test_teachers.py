"""Teachers: the published advice, what it is made on, and what it is worth where students were trained."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import pearsonr

from likewise import analysis
from likewise.errors import InputError, LikewiseError, UnknownNameError
from likewise.transfer import Answers
from tests.analysis.helpers import matrix, zoo
from tests.conftest import refused

# n0 and n1 are of one family, n2, n3 and n4 of another
ALIKE = np.array(
    [
        [4.6, 4.0, 2.5, 1.9, 2.2],
        [4.0, 4.6, 2.4, 2.3, 2.1],
        [2.5, 2.4, 4.6, 4.1, 4.0],
        [1.9, 2.3, 4.1, 4.6, 3.9],
        [2.2, 2.1, 4.0, 3.9, 4.6],
    ]
)
FEW = ALIKE[:4, :4]  # too few to tell families
FAMILIES = {"n0": "ViT", "n1": "ViT", "n2": "CNN", "n3": "CNN", "n4": "CNN"}
ACCURACIES = {"n0": 0.7, "n1": 0.9, "n2": 0.9, "n3": 0.8, "n4": 0.88}
OUTCOMES = {"n1": 0.70, "n2": 0.74, "n3": 0.78, "n4": 0.75}


def right_on(shares: dict[str, float], n: int = 100) -> Answers:
    """Answers that are right on the first inputs, as many as the share says, and differ from network to network."""
    labels = np.zeros(n, dtype=int)
    logits = [
        [[scale, 0] if i < round(share * n) else [0, scale] for i in range(n)]
        for scale, share in enumerate(shares.values(), start=1)
    ]
    return Answers(tuple(shares), logits, labels)


@pytest.mark.parametrize("larger_is", ["more alike", "less alike"])
def test_the_least_alike_of_another_family_is_advised(larger_is: str) -> None:
    given = matrix(ALIKE if larger_is == "more alike" else 5 - ALIKE, larger_is=larger_is)
    found = analysis.pick_teacher("n0", given, families=FAMILIES)
    assert (found.teacher, found.student, found.rule) == ("n3", "n0", "least alike of another family")
    assert list(found.candidates.index) == ["n3", "n4", "n2", "n1"]
    assert analysis.pick_teacher("n0", given).rule == "least alike of another family"  # the families are found
    unrelated = FEW if larger_is == "more alike" else 5 - FEW
    without = analysis.pick_teacher("n0", matrix(unrelated, larger_is=larger_is))
    assert (without.teacher, without.rule) == ("n3", "least alike")
    assert without.reasons[0].startswith("the least alike of 3 candidates: made ")


def test_within_its_own_family_the_most_alike_is_advised() -> None:
    found = analysis.pick_teacher("n4", matrix(ALIKE), teachers=["n3", "n2"], families=FAMILIES)
    assert (found.teacher, found.rule) == ("n2", "most alike of its own family")
    assert found.reasons[0] == (
        "of the family of 'n4', as all candidates are, and the most alike of 2 candidates: "
        "made 4, from 3.9 to 4 (larger is more alike)"
    )


def test_a_teacher_far_below_the_best_does_not_come_into_question() -> None:
    found = analysis.pick_teacher("n0", matrix(ALIKE), families=FAMILIES, answers=right_on(ACCURACIES, n=1000))
    assert found.teacher == "n4"
    assert found.candidates.considered.to_dict() == {"n4": True, "n2": True, "n1": True, "n3": False}
    assert found.reasons[:3] == (
        "of another family than 'n0', and the least alike of 2 candidates: made 2.2, from 2.2 to 2.5 "
        "(larger is more alike)",
        "families as given",
        "accuracy 88.0 % [86, 90] on 1000 inputs, the best teacher has 90.0 % [88, 92]; 1 surely more than 4 "
        "points below it left out",
    )


def test_a_teacher_is_left_out_only_where_its_inputs_suffice_to_say_so() -> None:
    few = analysis.pick_teacher("n0", matrix(ALIKE), families=FAMILIES, answers=right_on(ACCURACIES, n=50))
    assert few.teacher == "n3"  # 80 % of 50 inputs may be 86 %
    assert few.candidates.considered.all()


def test_how_weak_the_evidence_is_is_said() -> None:
    found = analysis.pick_teacher("n0", matrix(FEW))
    assert found.reasons[1:] == (
        "no families were found, so that all candidates count as of other families",
        "accuracies are not known: a teacher that is much worse would not be noticed (answers=)",
        "weak evidence: over 25 teachers of one student, its accuracy correlated -0.51 with similarity for teachers of "
        "other families (p 0.03), +0.70 within its family (p 0.08), -0.32 over all (p 0.12)",
        "untried here: the accuracies of students that learned from these (outcomes=) would give its regret",
    )
    assert str(found) == "\n".join(["n3 for n0", *(f"- {reason}" for reason in found.reasons)])


def test_outcomes_tell_the_regret_beside_accurate_and_random_teachers() -> None:
    found = analysis.pick_teacher(
        "n0", matrix(ALIKE), families=FAMILIES, answers=right_on(ACCURACIES, n=1000), outcomes=OUTCOMES
    )
    trial = found.held_out
    assert trial is not None
    assert trial.best == ("n3",)
    errors = {name: one.value for name, one in trial.errors.items()}
    # n4 is advised; n2 and n1 are the most accurate, and of equals the one advised first counts
    assert errors == pytest.approx({"pick": 0.25, "accuracy": 0.26, "best": 0.22, "random": 1 - 2.97 / 4})
    assert trial.regrets["pick"].value == pytest.approx(0.03)
    assert trial.gains["random"].value == pytest.approx(0.75 - 2.97 / 4)
    assert np.isnan(trial.regrets["pick"].low)
    assert "by the accuracies given, in percent:" in str(found)
    assert "25.00" in str(found)


def test_answers_of_students_give_intervals() -> None:
    students = right_on(OUTCOMES, n=400)
    found = analysis.pick_teacher("n0", matrix(ALIKE), families=FAMILIES, outcomes=students).held_out
    assert found is not None
    assert found.inputs == 400
    assert "accuracy" not in found.errors  # of teachers nothing is known
    assert found.errors["pick"].value == pytest.approx(0.22)
    assert found.errors["pick"].low < 0.22 < found.errors["pick"].high
    # sd of a share of 0.22 over 400 inputs is 0.0207
    assert found.errors["pick"].high - found.errors["pick"].low == pytest.approx(4 * 0.0207, rel=0.15)


def test_only_teachers_that_were_tried_are_held_against_each_other() -> None:
    two = {"n1": 0.7, "n4": 0.75}
    found = analysis.pick_teacher("n0", matrix(ALIKE), families=FAMILIES, outcomes=two)
    assert found.teacher == "n3"
    assert found.held_out is not None
    assert found.held_out.errors["pick"].value == 0.25


@pytest.mark.parametrize("larger_is", ["more alike", "less alike"])
def test_outcomes_are_correlated_with_similarity(larger_is: str) -> None:
    given = matrix(ALIKE if larger_is == "more alike" else 5 - ALIKE, larger_is=larger_is)
    found = analysis.teacher_correlations(
        "n0", given, OUTCOMES, families=FAMILIES, answers=right_on(ACCURACIES)
    ).transpose()
    alike, outcome = ALIKE[0, 1:], list(OUTCOMES.values())
    assert found["all"].correlation == pytest.approx(pearsonr(alike, outcome)[0])
    assert found["other families"].correlation == pytest.approx(pearsonr(alike[1:], outcome[1:])[0])
    assert found["accuracy of the teacher"].correlation == pytest.approx(pearsonr([0.9, 0.9, 0.8, 0.88], outcome)[0])
    assert np.isnan(found["same family"].correlation)
    assert found.loc["teachers"].tolist() == [4, 1, 3, 4]
    assert found["other families"].published == -0.51


def test_p_is_the_share_of_permutations() -> None:
    draw = np.random.default_rng(0)
    values = draw.random((9, 9))
    names = [f"n{i}" for i in range(1, 9)]
    outcomes = dict(zip(names, draw.random(8), strict=True))
    one = dict.fromkeys(["n0", *names], "one")
    found = analysis.teacher_correlations("n0", matrix((values + values.T) / 2), outcomes, families=one)
    row = ((values + values.T) / 2)[0, 1:]
    assert found.p["all"] == pytest.approx(pearsonr(row, list(outcomes.values()))[1], abs=0.03)
    assert found.p["all"] == found.p["same family"]


TWIN = Answers([f"n{i}" for i in range(5)], np.random.default_rng(0).normal(size=(5, 6, 3))[[0, 1, 2, 0, 4]], [0] * 6)
HOLE = ALIKE.copy()
HOLE[0, 3] = HOLE[3, 0] = np.nan


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda: analysis.pick_teacher("n0", matrix(ALIKE), teachers=["n1", "n0"]),
            InputError,
            "'n0' cannot be its own teacher. Leave it out of the teachers.",
        ),
        (
            lambda: analysis.pick_teacher("n0", matrix(ALIKE[:1, :1])),
            InputError,
            "'n0' is the only network, and it cannot be its own teacher. Give a matrix with other networks.",
        ),
        (
            lambda: analysis.pick_teacher("n0", matrix(ALIKE), answers=TWIN),
            InputError,
            "'n3' answers exactly as 'n0' does, and a student cannot be its own teacher. Leave it out.",
        ),
        (
            lambda: analysis.pick_teacher("n0", matrix(ALIKE), outcomes={"n0": 0.5, "n1": 0.6}),
            InputError,
            "'n0' cannot be its own teacher. Leave it out of the outcomes.",
        ),
        (
            lambda: analysis.pick_teacher("nn1", matrix(ALIKE)),
            UnknownNameError,
            "no network named 'nn1'. Did you mean 'n1'?",
        ),
        (
            lambda: analysis.pick_teacher("n0", matrix(ALIKE), teachers=[]),
            InputError,
            "there is no teacher to choose from. Give at least one.",
        ),
        (
            lambda: analysis.pick_teacher("n0", matrix(ALIKE), outcomes={"n1": 0.6}),
            InputError,
            "1 of the outcomes are of teachers to choose from. Give two or more.",
        ),
        (
            lambda: analysis.pick_teacher("n0", matrix(ALIKE), outcomes={"n1": 60, "n2": 70}),
            InputError,
            "an outcome is not between 0 and 1. Give the share of inputs that a student gets right.",
        ),
        (
            lambda: analysis.pick_teacher("n0", matrix(ALIKE), families={"n0": 1, "n1": 2}),
            InputError,
            "no family is given for 'n2'. Give one for each of 5 networks.",
        ),
        (
            lambda: analysis.pick_teacher("n0", matrix(HOLE), families=FAMILIES),
            InputError,
            "SimilarityMatrix('made', 5 networks, 2 undefined) has no score for 'n0' and 'n3'. Leave the latter out: "
            "matrix.reordered([...]) with the names to keep.",
        ),
        (
            lambda: analysis.pick_teacher("n0", matrix(ALIKE), answers=zoo((2, 2))[1]),
            InputError,
            "'n4' is in the matrix and not in the answers. Give both the same networks: matrix.reordered([...]), "
            "answers.subset([...]).",
        ),
    ],
    ids=["own", "only", "twin", "outcome", "unknown", "none", "one", "percent", "family", "hole", "answers"],
)
def test_what_is_no_teacher_is_said(call: Any, kind: type[LikewiseError], message: str) -> None:
    assert refused(call, kind) == message


def test_a_score_that_is_not_needed_may_be_missing() -> None:
    found = analysis.pick_teacher("n0", matrix(HOLE), teachers=["n1", "n2", "n4"], families=FAMILIES)
    assert found.teacher == "n4"
    two = analysis.pick_teacher("n0", matrix(ALIKE[:2, :2]))
    assert two.teacher == "n1"
    assert isinstance(two.candidates, pd.DataFrame)
