"""`likewise layers`: the layers of a network with shapes and parameters."""

from __future__ import annotations

import json

import pytest

from likewise.cli.layers import layers
from likewise.errors import UnknownNameError
from tests.cli.conftest import invoke


def test_layers_are_printed_with_shapes_and_parameters(address: str) -> None:
    printed = invoke(layers, address, "--data", "digits:test[:10]")
    assert [line.split() for line in printed.splitlines()] == [
        ["0", "Flatten", "64", "0"],
        ["*", "1", "Linear", "8", "520"],  # 64 · 8 + 8
        ["2", "ReLU", "8", "0"],
        ["*", "3", "Linear", "10", "90"],  # 8 · 10 + 10
    ]


def test_layers_can_be_read_by_programs(address: str) -> None:
    printed = invoke(layers, address, "3", "--data", "digits:test[:10]", "--json")
    assert json.loads(printed) == [{"name": "3", "kind": "Linear", "shape": [10], "parameters": 90, "block": True}]


def test_a_pattern_without_layers_is_refused(address: str) -> None:
    with pytest.raises(UnknownNameError) as error:
        invoke(layers, address, "conv*", "--data", "digits:test[:10]")
    assert str(error.value) == (
        f"no layer of {address!r} matches 'conv*'. The first are '0', '1', '2'; `likewise layers` lists all."
    )
