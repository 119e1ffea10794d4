"""The success of an attack on the network it was made for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import binomtest

from likewise import attacks
from likewise.errors import InputError, UndefinedError
from likewise.transfer import sat, success
from likewise.transfer.success_rates import wilson
from tests.transfer.helpers import QUICK, digits, trained, zoo
from tests.transfer.test_transferability import Constant


def test_success_is_the_share_of_inputs_known_before_that_are_wrong_after() -> None:
    net, data = trained(), digits()
    found = success({"a": net}, data, **QUICK)
    images, labels = data.inputs[:], data.labels
    moved = attacks.pgd(net, images, labels, eps=0.15, iterations=4, relative_step=0.1).images
    right = net(images).argmax(dim=1) == labels
    wrong = net(moved).argmax(dim=1) != labels
    assert found.count == int(right.sum())
    assert found.rate == int((right & wrong).sum()) / int(right.sum())
    assert found.rate == pytest.approx(sat(zoo(), data, **QUICK).rates[0, 0], abs=1e-12)
    expected = binomtest(int((right & wrong).sum()), found.count).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-6)
    assert str(found).startswith(f"pgd fools a on {found.rate:.1%} of 39 inputs it classifies correctly [")


def test_pictures_are_of_inputs_that_were_fooled_and_within_the_bound(tmp_path: Path) -> None:
    found = success({"a": trained()}, digits(), pictures=3, **{**QUICK, "eps": 0.3})
    assert len(found.rows) == 3
    for place, row in enumerate(found.rows):
        assert found.before[row] == found.labels[row] != found.after[row]
        assert torch.equal(found.clean[place], digits().inputs[:][row])
    assert float((found.adversarial - found.clean).abs().max()) <= 0.3 + 1e-6
    with torch.no_grad():
        assert trained()(found.adversarial).argmax(dim=1).tolist() == found.after[list(found.rows)].tolist()
    figure = found.plot(tmp_path / "examples.png")
    assert len(figure.axes) == 9
    assert (tmp_path / "examples.png").exists()
    titles = [ax.get_title() for ax in figure.axes[:3]]
    assert titles[0] == digits().classes[found.before[found.rows[0]]]
    assert titles[2] == digits().classes[found.after[found.rows[0]]]


def test_early_stop_is_allowed_where_nothing_is_to_transfer() -> None:
    whole = success({"a": trained()}, digits(), **QUICK)
    early = success({"a": trained()}, digits(), early_stop=True, **QUICK)
    np.testing.assert_allclose(early.rate, whole.rate, atol=0.06)


def test_a_network_that_knows_nothing_and_several_networks_are_refused() -> None:
    data = digits()[(digits().labels != 0).nonzero()[:, 0]]
    with pytest.raises(UndefinedError) as error:
        success({"zero": Constant(0)}, data, **QUICK)
    assert str(error.value) == "'zero' classifies no input correctly, so nothing can be fooled. Show it others."
    with pytest.raises(InputError) as several:
        success(zoo(), digits(), **QUICK)
    assert str(several.value) == "one network is attacked at a time, and 3 were given. Give one."


def test_an_interval_at_the_ends_stays_within_0_and_1() -> None:
    assert wilson(0.0, 10)[0] == 0
    assert wilson(1.0, 10)[1] == pytest.approx(1, abs=1e-12)
