"""From an address to a network: seeds, options, and the measure of data."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import likewise
from likewise.errors import (
    InputError,
)
from likewise.networks import Normalised
from tests.networks.helpers import same


def test_a_module_passes_through() -> None:
    net = nn.Linear(2, 2)
    assert likewise.network(net) is net


def test_a_module_takes_no_options() -> None:
    with pytest.raises(InputError) as error:
        likewise.network(nn.Linear(2, 2), classes=3)
    assert str(error.value) == (
        "Linear is built already: classes cannot be chosen any more. Give the options where it is built."
    )


def test_a_network_is_ready_to_be_shown_inputs() -> None:
    assert not likewise.network("zoo:lenet").training


def test_the_seed_decides_the_weights_and_nothing_else_changes() -> None:
    before = torch.get_rng_state()
    first, again = likewise.network("zoo:lenet", seed=1), likewise.network("zoo:lenet,seed=1")
    assert same(first, again)
    assert not same(first, likewise.network("zoo:lenet"))
    assert torch.equal(before, torch.get_rng_state())


def test_a_network_is_built_to_the_measure_of_its_data() -> None:
    digits = likewise.dataset("digits:train")
    net = likewise.network("zoo:lenet", data=digits)
    assert isinstance(net, Normalised)
    pixels = digits.inputs
    assert net.mean.item() == pytest.approx(float(pixels.mean()), abs=5e-5)
    assert net.std.item() == pytest.approx(float(pixels.std()), abs=1e-4)
    assert net(pixels[:2]).shape == (2, 10)
