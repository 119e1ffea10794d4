"""From an address to a network: parts, seeds, sizes of data, and what is said where one leads nowhere."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import likewise
from likewise.errors import (
    InputError,
    MissingDataError,
    OptionError,
    UnknownNameError,
)
from likewise.networks import Normalised, list_networks, recipe
from likewise.networks.address import find_source, parse
from tests.networks.helpers import refused, same

KNOWN = (
    "An address is zoo:NAME, gguf:NAME, timm:NAME, torchvision:NAME, hf:NAME, file.py:function, a .safetensors file or "
    "a training's folder."
)


def test_options_may_stand_in_the_address() -> None:
    net = likewise.network("zoo:resnet20,shortcut=B,classes=100")
    assert net.fc.out_features == 100
    assert isinstance(net.layer2[0].downsample, nn.Sequential)
    made = recipe(net)
    assert made is not None
    assert (made.network, made.options) == ("zoo:resnet20", {"shortcut": "B", "classes": 100})


@pytest.mark.usefixtures("vision")
@pytest.mark.parametrize(
    ("address", "kind", "sentence"),
    [
        ("runs/a", UnknownNameError, f"'runs/a' is no folder of a training or network, and has no prefix. {KNOWN}"),
        (
            "resnet18",
            UnknownNameError,
            f"'resnet18' has no prefix. Did you mean 'timm:resnet18' or 'torchvision:resnet18'? {KNOWN}",
        ),
        ("lenett", UnknownNameError, f"'lenett' has no prefix. {KNOWN}"),
        ("lenet", UnknownNameError, f"'lenet' has no prefix. Did you mean 'zoo:lenet'? {KNOWN}"),
        ("zooo:x", UnknownNameError, f"no networks come from 'zooo'. Did you mean 'zoo'? {KNOWN}"),
        ("keras:x", UnknownNameError, f"no networks come from 'keras'. {KNOWN}"),
        ("zoo:lenett", UnknownNameError, "no network named 'lenett'. Did you mean 'lenet'?"),
        (
            "zoo:",
            InputError,
            "'zoo:' names no network. Write prefix:name, as in 'zoo:resnet20' or 'zoo:resnet20@weights.safetensors'.",
        ),
        (
            "zoo:lenet,wide",
            InputError,
            "'wide' in 'zoo:lenet,wide' is no option. Write name=value, as in 'zoo:lenet,classes=100'.",
        ),
        (
            "timm:resnet18x",
            UnknownNameError,
            "timm has no network 'resnet18x'. Did you mean 'resnet18'?",
        ),
        (
            "torchvision:resnet1",
            UnknownNameError,
            "torchvision has no network 'resnet1'. Did you mean 'resnet18'?",
        ),
        (
            "torchvision:resnet18,pretrained=false,deep=1",
            OptionError,
            "torchvision:resnet18,pretrained=false,deep=1 cannot be built so: ResNet.__init__() "
            "got an unexpected keyword argument 'deep'. Leave it out.",
        ),
        (
            "nowhere.py:build",
            MissingDataError,
            "there is no Python file nowhere.py. Give its path, as in models/mine.py:build.",
        ),
        (
            "nowhere.safetensors",
            MissingDataError,
            "there are no weights at nowhere.safetensors. Give the path of a file.",
        ),
    ],
)
def test_an_address_that_leads_nowhere_says_so(address: str, kind: type[Exception], sentence: str) -> None:
    assert refused(lambda: likewise.network(address), kind) == sentence


def test_a_prefix_is_written_as_it_is_declared() -> None:
    assert find_source("zoo") is not None
    assert find_source("ZOO") is None
    assert refused(lambda: parse("ZOO:lenet"), UnknownNameError) == (
        f"no networks come from 'ZOO'. Did you mean 'zoo'? {KNOWN}"
    )


@pytest.mark.usefixtures("vision")
def test_networks_are_listed_by_pattern() -> None:
    zoo = [found.address for found in list_networks()]
    assert {"zoo:lenet", "zoo:resnet110-b", "zoo:gcn", "zoo:minilm"} <= set(zoo)
    found = [one.address for one in list_networks("resnet18*")]
    assert "torchvision:resnet18" in found
    assert "timm:resnet18" in found
    assert all("resnet18" in address for address in found)


def test_a_module_passes_through() -> None:
    net = nn.Linear(2, 2)
    assert likewise.network(net) is net


def test_a_module_takes_no_options() -> None:
    assert refused(lambda: likewise.network(nn.Linear(2, 2), classes=3)) == (
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


def test_a_network_is_sized_for_its_data() -> None:
    digits = likewise.dataset("digits:train")
    net = likewise.network("zoo:lenet", data=digits)
    by_address = likewise.network("zoo:lenet", data="digits:train")
    assert str(by_address) == str(net)
    assert isinstance(net, Normalised)
    pixels = digits.inputs
    assert net.mean.item() == pytest.approx(float(pixels.mean()), abs=5e-5)
    assert net.std.item() == pytest.approx(float(pixels.std()), abs=1e-4)
    assert net(pixels[:2]).shape == (2, 10)
