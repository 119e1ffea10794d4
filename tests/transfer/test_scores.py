"""The formulas of attack transfer, against values from outside, by hand and a plain loop; and SAT as a measure."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import likewise
from likewise import attacks
from likewise.errors import OptionError, UndefinedError, UnknownNameError
from likewise.transfer import one_sided_score, sat, sat_score
from likewise.transfer.examples import AttackSettings
from likewise.transfer.scores import directed_rates, same_mistakes
from tests.conftest import refused
from tests.transfer.helpers import QUICK, Constant, digits, trained, zoo

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
        assert refused(lambda: sat_score(*clean, case["A_on_xB"], case["B_on_xA"], **eps), UndefinedError) == NONE
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


def test_a_smoothed_score_counts_half_a_hit_more() -> None:
    # both right on inputs 0 and 1, one of four examples fools: 1.5 of 5
    answers = ([0, 1, 2, 3], [0, 1, 2, 0], [0, 1, 0, 3], [9, 1, 9, 9], [0, 1, 9, 9])
    assert sat_score(*answers, smoothed=True) == pytest.approx(math.log(30), abs=1e-12)


def test_answers_of_other_inputs_and_a_least_percentage_of_zero_are_refused() -> None:
    assert refused(lambda: sat_score([0, 1], [0, 1], [0, 1], [0, 1], [0])) == (
        "labels and answers must be one class per input, got (2,), (2,), (2,), (2,), (1,). Give all the same inputs."
    )
    assert (
        refused(lambda: sat_score([0], [0], [0], [0], [0], eps_s=0))
        == "eps_s is 0, which has no logarithm. Give a percentage above 0, like 0.01."
    )


OPTIONS = {"eps": 0.15, "iterations": 4}
KEY = "sat[eps=0.15, iterations=4]"


@pytest.fixture
def attacked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of networks as they are attacked, one per batch."""
    names: list[str] = []
    run = AttackSettings.run

    def noted(self: AttackSettings, net: Any, *given: Any) -> Any:
        names.append(net.name)
        return run(self, net, *given)

    monkeypatch.setattr(AttackSettings, "run", noted)
    return names


@pytest.mark.parametrize("kept", [True, False])
def test_sat_stands_beside_other_measures_with_the_numbers_of_its_own(
    attacked: list[str], tmp_path: Path, kept: bool
) -> None:
    expected = sat(zoo(), digits(), **QUICK)
    attacked.clear()
    store = tmp_path / "store" if kept else None
    found = likewise.compare(zoo(), [KEY, "cka", "disagreement"], data=digits(), store=store, progress=False)
    assert list(found) == [KEY, "cka", "disagreement"]
    np.testing.assert_allclose(found[KEY].values, expected.values, atol=1e-12)
    assert found["cka"]["a", "a"] == 1
    assert sorted(attacked) == ["a", "b", "c"]  # one batch each, whatever the number of pairs
    if kept:
        again = likewise.compare(zoo(), KEY, data=digits(), store=store, progress=False)
        np.testing.assert_array_equal(again.values, found[KEY].values)
        assert len(attacked) == 3
        sat(zoo(), digits(), store=store, **QUICK)
        assert len(attacked) == 3  # and `likewise.transfer.sat` shares what was stored


def test_two_networks_have_a_score_and_options() -> None:
    net, other = trained(), trained(seed=3)
    score = likewise.compare(net, other, "sat", data=digits(), **OPTIONS)
    matrix = sat([net, other], digits(), **QUICK)
    assert score == pytest.approx(float(matrix.values[0, 1]), abs=1e-12)
    assert (score.measure, score.larger_is, score.identity) == (KEY, "more alike", None)
    seeded = likewise.compare(net, other, "sat", data=digits(), seed=1, **OPTIONS)
    assert seeded == pytest.approx(float(sat([net, other], digits(), seed=1, **QUICK).values[0, 1]), abs=1e-12)


def test_other_attacks_go_by_name() -> None:
    score = likewise.compare(trained(), trained(seed=3), "sat[attack=fgsm, eps=0.15]", data=digits())
    expected = sat([trained(), trained(seed=3)], digits(), attack="fgsm", eps=0.15, progress=False)
    assert score == pytest.approx(float(expected.values[0, 1]), abs=1e-12)


def test_networks_of_one_name_are_told_apart() -> None:
    both = likewise.compare([trained(), trained(seed=3)], KEY, data=digits(), progress=False)
    assert both.names == ("Small", "Small#2")
    assert both.values[0, 1] != both.values[0, 0]


def test_arrays_options_that_do_not_fit_and_transforms_are_refused() -> None:
    x = np.random.default_rng(0).normal(size=(20, 4))
    assert refused(lambda: likewise.compare(x, x, "sat")) == (
        "sat looks at networks, and 'x' is an array of activations. Pass two networks and data, as in "
        "compare(network, other, 'sat', data='cifar10:test')."
    )
    with pytest.raises(OptionError):
        likewise.compare(trained(), trained(), "sat", data=digits(), epsilon=1)
    for key in (KEY, "boundary-agreement", "boundary-distance"):
        shown = {"data": digits(), "transform": lambda image: torch.zeros(1, 8, 8) + image.size[0]}
        assert refused(lambda key=key, shown=shown: likewise.compare(trained(), trained(), key, **shown)) == (
            "'Small' is shown what a transform gives, and here networks are shown pixels between 0 and 1. Give mean "
            "and std, or add ',transform=FILE.py:function' to its address."
        )


def test_a_pair_that_knows_nothing_in_common_is_undefined_for_two_and_a_reason_among_more() -> None:
    nets = {"zero": Constant(0), "one": Constant(1), "good": trained()}
    matrix = likewise.compare(nets, KEY, data=digits(), layers="logits", progress=False)
    assert np.isnan(matrix["zero", "one"])
    assert "no input is classified correctly by both" in matrix.reasons["zero", "one"]
    assert np.isfinite(matrix["zero", "good"])
    with pytest.raises(UndefinedError, match="no input is classified correctly by both"):
        likewise.compare(nets["zero"], nets["one"], KEY, data=digits(), layers="logits")


def test_an_attack_nobody_knows_is_refused_with_the_nearest() -> None:
    assert (
        refused(lambda: likewise.compare(trained(), trained(), "sat", data=digits(), attack="pdg"), UnknownNameError)
        == "no attack named 'pdg'. Did you mean 'pgd'?"
    )
    assert "pgd" in attacks.names()
