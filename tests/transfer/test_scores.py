"""The formulas of attack transfer, against values from outside, by hand and against a plain loop."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from likewise.errors import InputError, UndefinedError
from likewise.transfer import one_sided_score, sat_score
from likewise.transfer.scores import directed_rates, draws_of, resampled_scores, same_mistakes

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "sat_cases.json").read_text())
NAMES = [case["name"] for case in CASES]
NONE = (
    "SAT is undefined: no input is classified correctly by both, so nothing can be fooled. Show them inputs they know."
)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_sat_and_its_one_sided_forms_have_the_golden_values(case: dict[str, Any]) -> None:
    clean = (case["y"], case["clean_A"], case["clean_B"])
    expected, eps = case["values"], {"eps_s": case["eps_s"]}
    if expected["SAT"] is None:
        with pytest.raises(UndefinedError) as error:
            sat_score(*clean, case["A_on_xB"], case["B_on_xA"], **eps)
        assert str(error.value) == NONE
        with pytest.raises(UndefinedError):
            one_sided_score(*clean, case["B_on_xA"], **eps)
        return
    close = pytest.approx
    assert sat_score(*clean, case["A_on_xB"], case["B_on_xA"], **eps) == close(expected["SAT"], abs=1e-12)
    attacked_a = one_sided_score(*clean, case["B_on_xA"], **eps)
    assert attacked_a == close(expected["one_sided_A_source (attack A, test B)"], abs=1e-12)
    swapped = (case["y"], case["clean_B"], case["clean_A"])
    assert one_sided_score(*swapped, case["A_on_xB"], **eps) == close(expected["one_sided_B_source"], abs=1e-12)


@pytest.mark.parametrize("case", CASES[:-1], ids=NAMES[:-1])
def test_rates_and_counts_are_those_of_the_golden_cases(case: dict[str, Any]) -> None:
    y, a, b = (np.array(case[key]) for key in ("y", "clean_A", "clean_B"))
    right = np.stack([a == y, b == y])
    on_a, on_b = np.array(case["B_on_xA"]), np.array(case["A_on_xB"])
    fooled = np.stack([np.stack([y == y, on_a != y]), np.stack([on_b != y, y == y])])
    rates, counts = directed_rates(right, fooled)
    expected = case["values"]
    assert counts[0, 1] == counts[1, 0] == expected["n_AB"]
    assert rates[0, 1] * counts[0, 1] == pytest.approx(expected["fooled_B_on_xA"], abs=1e-9)
    assert rates[1, 0] * counts[0, 1] == pytest.approx(expected["fooled_A_on_xB"], abs=1e-9)
    assert 50 * (rates[0, 1] + rates[1, 0]) == pytest.approx(expected["percent"], abs=1e-9)


def test_a_score_by_hand() -> None:
    # both right on inputs 0 and 1; A is fooled on input 0, B on none: 100 / 4 * 1 = 25 percent
    score = sat_score([0, 1, 2, 3], [0, 1, 2, 0], [0, 1, 0, 3], [9, 1, 9, 9], [0, 1, 9, 9])
    assert score == pytest.approx(math.log(25), abs=1e-12)


def test_inputs_that_one_network_gets_wrong_do_not_count_whatever_the_examples_do() -> None:
    rng = np.random.default_rng(0)
    y, a, b, on_b, on_a = rng.integers(4, size=(5, 300))
    kept = (a == y) & (b == y)
    spoiled = [np.where(kept, values, rng.integers(4, size=300)) for values in (on_b, on_a)]
    assert sat_score(y, a, b, on_b, on_a) == sat_score(y, a, b, *spoiled)
    assert sat_score(y, a, b, on_b, on_a) == sat_score(y, b, a, on_a, on_b)


def test_same_mistakes_are_those_of_a_plain_loop() -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(3, size=60)
    right = rng.random((3, 60)) < 0.8
    predictions = rng.integers(3, size=(3, 3, 60))
    found = same_mistakes(right, predictions, labels)
    for i in range(3):
        for j in range(3):
            alike = both = 0
            for source, other in ((i, j), (j, i)):
                for x in range(60):
                    own, theirs = predictions[source, source, x], predictions[source, other, x]
                    if right[i, x] and right[j, x] and own != labels[x] and theirs != labels[x]:
                        both += 1
                        alike += own == theirs
            assert found[i, j] == pytest.approx(alike / both, abs=1e-12)


def test_pairs_that_nothing_fools_have_no_same_mistakes() -> None:
    labels = np.zeros(4, dtype=int)
    assert np.isnan(same_mistakes(np.ones((2, 4), dtype=bool), np.zeros((2, 2, 4), dtype=int), labels)).all()


def test_resampled_scores_are_those_of_inputs_drawn_one_by_one() -> None:
    rng = np.random.default_rng(2)
    hits, counted = rng.integers(3, size=20), (rng.random(20) < 0.7).astype(float)
    draws = draws_of(20, 5, seed=4)
    assert draws.sum(axis=1).tolist() == [20] * 5
    chosen = np.random.default_rng(4).integers(20, size=(5, 20))
    for row, score in zip(chosen, resampled_scores(hits, counted, draws), strict=True):
        total = sum(hits[x] for x in row if counted[x])
        size = sum(1 for x in row if counted[x])
        assert score == pytest.approx(math.log(max(0.01, 100 * total / (2 * size))), abs=1e-9)


def test_answers_of_other_inputs_and_a_least_percentage_of_zero_are_refused() -> None:
    with pytest.raises(InputError) as error:
        sat_score([0, 1], [0, 1], [0, 1], [0, 1], [0])
    assert str(error.value) == (
        "labels and answers must be one class per input, got (2,), (2,), (2,), (2,), (1,). Give all the same inputs."
    )
    with pytest.raises(InputError) as error:
        sat_score([0], [0], [0], [0], [0], eps_s=0)
    assert str(error.value) == "eps_s is 0, which has no logarithm. Give a percentage above 0, like 0.01."
