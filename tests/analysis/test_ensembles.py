"""Ensembles held against plain loops, and against values from outside."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import pearsonr

from likewise import analysis
from likewise.analysis.ensembles import Ensembles
from likewise.errors import InputError, UndefinedError, UnknownNameError
from likewise.transfer import Answers
from tests.analysis.helpers import zoo
from tests.conftest import refused

# Three networks, eight inputs; the values are those of an independent program.
LABELS = [2, 2, 0, 2, 0, 2, 0, 0]
LOGITS = [
    [
        [-0.7901, 2.0603, 1.2337],
        [0.7428, -0.06, -0.4349],
        [2.1265, -0.2399, 0.2589],
        [-1.6472, -1.1279, 1.4296],
        [1.275, -1.4636, -0.7602],
        [1.5611, -1.1483, 1.9425],
        [0.8095, 0.4057, -1.241],
        [0.9334, -0.5124, -0.214],
    ],
    [
        [-0.6217, 0.6051, 1.3169],
        [-1.3686, -1.0333, 2.438],
        [-0.893, 0.3525, 0.4945],
        [0.5878, 0.3063, 1.6445],
        [2.9305, -1.224, -1.7899],
        [2.2728, 0.3835, 2.5336],
        [2.2584, 2.4843, 1.6235],
        [0.2567, 2.1103, -0.4398],
    ],
    [
        [0.4663, -1.0968, 0.3981],
        [-1.1248, 0.4847, 1.0123],
        [0.7334, 1.027, 1.276],
        [1.0298, -0.0709, 2.8474],
        [1.1442, 0.1024, -0.6719],
        [1.1226, -1.0769, 1.5421],
        [2.5529, 0.1872, 1.2035],
        [2.654, -1.6277, 0.72],
    ],
]
THREE = Answers(["a", "b", "c"], LOGITS, LABELS)


def test_the_error_reduction_is_that_of_the_golden_case() -> None:
    assert (1 - THREE.accuracies).tolist() == [0.25, 0.375, 0.25]
    assert Ensembles(THREE).errors([0, 1, 2]).tolist() == [0.125]
    assert analysis.error_reduction(THREE, ["c", "a", "b"]) == pytest.approx(0.5714285714285714, abs=1e-12)
    assert analysis.all_wrong(THREE, ["a", "b", "c"]).tolist() == []


@pytest.mark.parametrize("classes", [2, 7])
def test_every_subset_errs_where_the_mean_of_logits_does(classes: int) -> None:
    draw = np.random.default_rng(0)
    logits = draw.normal(size=(6, 50, classes)).round(1)  # ties are common
    answers = Answers([f"n{i}" for i in range(6)], logits, draw.integers(0, classes, 50))
    for size in (1, 2, 4):
        subsets = np.array(list(combinations(range(6), size)))
        exact = [np.rint(10 * answers.logits[rows]).sum(axis=0).argmax(axis=1) != answers.labels for rows in subsets]
        tenths = Answers(answers.names, np.rint(10 * answers.logits), answers.labels)
        assert np.array_equal(Ensembles(tenths).wrong(subsets), exact)
        assert np.array_equal(Ensembles(tenths).wrong(subsets[:, ::-1]), exact)
        np.testing.assert_allclose(Ensembles(tenths).errors(subsets), np.mean(exact, axis=1))


def test_many_subsets_are_summed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    _, answers, _ = zoo()
    subsets = np.array(list(combinations(range(12), 3)))
    whole = Ensembles(answers).wrong(subsets)
    monkeypatch.setattr("likewise.analysis.ensembles.AT_ONCE", 1000)
    assert np.array_equal(Ensembles(answers).wrong(subsets), whole)
    np.testing.assert_allclose(Ensembles(answers).errors(subsets), whole.mean(axis=1))


def test_inputs_that_all_get_wrong_are_named() -> None:
    answers = Answers(["a", "b"], [[[1, 0], [1, 0], [0, 1]], [[0, 1], [1, 0], [0, 1]]], [1, 1, 0])
    assert analysis.all_wrong(answers, ["a", "b"]).tolist() == [1, 2]
    assert analysis.all_wrong(answers, ["b"]).tolist() == [1, 2]
    assert analysis.all_wrong(answers, ["a"]).tolist() == [0, 1, 2]


def test_pairs_make_a_matrix_of_error_reductions() -> None:
    found = analysis.pair_reductions(THREE)
    assert found["a", "b"] == pytest.approx(analysis.error_reduction(THREE, ["a", "b"]))
    assert found["b", "c"] == found["c", "b"] == pytest.approx(analysis.error_reduction(THREE, ["b", "c"]))
    assert np.diag(found.values).tolist() == [0, 0, 0]
    assert found.extra["error"][0, 0] == 0.25
    assert found.larger_is == "less alike"


@pytest.mark.parametrize("larger_is", ["more alike", "less alike"])
def test_alike_networks_gain_little_from_each_other(larger_is: str) -> None:
    given, answers, _ = zoo(larger_is=larger_is)
    reductions = analysis.pair_reductions(answers)
    found = analysis.agreement(given, reductions, permutations=199)
    upper = np.triu_indices(12, 1)
    sign = -1 if larger_is == "more alike" else 1
    assert found.correlation == pytest.approx(sign * pearsonr(given.values[upper], reductions.values[upper])[0])
    assert found.correlation > 0.5
    assert found.p < 0.05


def test_a_pair_that_never_errs_has_no_error_to_reduce() -> None:
    answers = Answers(["a", "b", "c"], [[[1, 0]], [[1, 0]], [[0, 1]]], [0])
    found = analysis.pair_reductions(answers)
    assert np.isnan(found["a", "b"])
    assert found.reasons["a", "b"] == "neither errs, so there is no error to reduce."
    assert found["a", "c"] == 1  # together they answer with the first of equal classes, which is right
    assert refused(lambda: analysis.error_reduction(answers, ["a", "b"]), UndefinedError) == (
        "no member of the ensemble errs on these 1 inputs, so there is no error to reduce. Show them more inputs, or "
        "harder ones."
    )


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: analysis.error_reduction(THREE, []), InputError, "an ensemble needs members. Give a list of names."),
        (lambda: analysis.error_reduction(THREE, "ab"), InputError, "an ensemble needs members. Give a list of names."),
        (
            lambda: analysis.all_wrong(THREE, ["a", "a"]),
            InputError,
            "a network is given twice. Give each member once.",
        ),
        (
            lambda: analysis.all_wrong(THREE, ["a", "zz"]),
            UnknownNameError,
            "no network named 'zz'. Choose from 'a', 'b', 'c'.",
        ),
        (
            lambda: analysis.pair_reductions(THREE.subset(["a"])),
            InputError,
            "Answers(1 networks, n=8, classes=3) is too few for a pair. Give two networks or more.",
        ),
    ],
    ids=["none", "text", "twice", "unknown", "one"],
)
def test_what_is_no_ensemble_is_said(call: object, kind: type[Exception], message: str) -> None:
    assert refused(call, kind) == message  # type: ignore[operator]
