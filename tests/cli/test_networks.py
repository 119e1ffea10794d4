"""`likewise networks`: what networks there are."""

from __future__ import annotations

import json

import pytest

from likewise.cli.networks import networks
from likewise.errors import UnknownNameError
from tests.cli.conftest import invoke, run


def test_networks_are_listed_with_their_addresses() -> None:
    lines = invoke(networks).splitlines()
    assert lines[0].split()[0].startswith("zoo:")
    assert any(line.split()[:2] == ["zoo:resnet56-b", "image"] for line in lines)
    found = json.loads(invoke(networks, "zoo:resnet2*", "--json"))
    assert [one["address"] for one in found] == ["zoo:resnet20", "zoo:resnet20-b"]


def test_a_pattern_that_matches_nothing_says_so() -> None:
    with pytest.raises(UnknownNameError) as error:
        invoke(networks, "zzz*")
    assert str(error.value) == "no network matches 'zzz*'. Leave the pattern out to see the zoo."


def test_the_zoo_says_how_to_list_the_others() -> None:
    assert run("networks").stderr == "More with a pattern: likewise networks 'timm:*' or 'torchvision:*'.\n"
