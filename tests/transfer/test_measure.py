"""SAT in a comparison, beside measures of activations and outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import likewise
from likewise import attacks
from likewise.errors import InputError, OptionError, UndefinedError
from likewise.transfer import sat
from likewise.transfer.examples import AttackSettings
from tests.transfer.helpers import QUICK, digits, trained, zoo

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
    expected = sat([trained(), trained(seed=3)], digits(), "fgsm", eps=0.15, progress=False)
    assert score == pytest.approx(float(expected.values[0, 1]), abs=1e-12)


def test_networks_of_one_name_are_told_apart() -> None:
    both = likewise.compare([trained(), trained(seed=3)], KEY, data=digits(), progress=False)
    assert both.names == ("Small", "Small#2")
    assert both.values[0, 1] != both.values[0, 0]


def test_arrays_options_that_do_not_fit_and_transforms_are_refused() -> None:
    x = np.random.default_rng(0).normal(size=(20, 4))
    with pytest.raises(InputError) as error:
        likewise.compare(x, x, "sat")
    assert str(error.value) == (
        "sat looks at networks, and 'x' is an array of activations. Pass two networks and data, as in "
        "compare(network, other, 'sat', data='cifar10:test')."
    )
    with pytest.raises(OptionError):
        likewise.compare(trained(), trained(), "sat", data=digits(), epsilon=1)
    with pytest.raises(InputError) as odd:
        likewise.compare(
            trained(), trained(), KEY, data=digits(), transform=lambda image: torch.zeros(1, 8, 8) + image.size[0]
        )
    assert str(odd.value) == (
        "sat attacks pixels between 0 and 1, and 'Small' is shown what a transform gives. Leave out transform."
    )


def test_a_pair_that_knows_nothing_in_common_is_undefined_for_two_and_a_reason_among_more() -> None:
    from tests.transfer.test_transferability import Constant

    nets = {"zero": Constant(0), "one": Constant(1), "good": trained()}
    matrix = likewise.compare(nets, KEY, data=digits(), layers="logits", progress=False)
    assert np.isnan(matrix["zero", "one"])
    assert "no input is classified correctly by both" in matrix.reasons["zero", "one"]
    assert np.isfinite(matrix["zero", "good"])
    with pytest.raises(UndefinedError, match="no input is classified correctly by both"):
        likewise.compare(nets["zero"], nets["one"], KEY, data=digits(), layers="logits")


def test_an_attack_nobody_knows_is_refused_with_the_nearest() -> None:
    with pytest.raises(likewise.errors.UnknownNameError) as error:
        likewise.compare(trained(), trained(), "sat", data=digits(), attack="pdg")
    assert str(error.value) == "no attack named 'pdg'. Did you mean 'pgd'?"
    assert "pgd" in attacks.names()
