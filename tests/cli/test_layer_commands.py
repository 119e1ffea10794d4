"""The commands `layers` and `layerwise`: parse, call the public function, print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import typer
from typer.testing import CliRunner

from likewise.cli.layers import layers
from likewise.cli.layerwise import layerwise
from likewise.errors import UnknownNameError
from likewise.matrices.layers import LayerMatrix

BUILD = """
from torch import nn

def build():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 10))
"""


@pytest.fixture
def address(tmp_path: Path) -> str:
    torch.manual_seed(0)
    (tmp_path / "nets.py").write_text(BUILD)
    return f"{tmp_path / 'nets.py'}:build"


def _app() -> typer.Typer:
    app = typer.Typer()
    app.command()(layers)
    app.command()(layerwise)
    return app


def test_layers_are_printed_with_shapes_and_parameters(address: str) -> None:
    told = CliRunner().invoke(_app(), ["layers", address, "--data", "digits:test[:10]"])
    assert told.exit_code == 0, told.output
    assert [line.split() for line in told.stdout.splitlines()] == [
        ["0", "Flatten", "64", "0"],
        ["*", "1", "Linear", "8", "520"],  # 64 · 8 + 8
        ["2", "ReLU", "8", "0"],
        ["*", "3", "Linear", "10", "90"],  # 8 · 10 + 10
    ]


def test_layers_can_be_read_by_programs(address: str) -> None:
    call = ["layers", address, "3", "--data", "digits:test[:10]", "--json"]
    told = CliRunner().invoke(_app(), call)
    assert json.loads(told.stdout) == [{"name": "3", "kind": "Linear", "shape": [10], "parameters": 90, "block": True}]


def test_a_pattern_without_layers_is_refused(address: str) -> None:
    told = CliRunner().invoke(_app(), ["layers", address, "conv*", "--data", "digits:test[:10]"])
    assert isinstance(told.exception, UnknownNameError)
    assert str(told.exception) == (
        f"no layer of {address!r} matches 'conv*'. The first are '0', '1', '2'; `likewise layers` lists all."
    )


def test_layerwise_prints_a_table_and_writes_a_folder(address: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    call = ["layerwise", address, address, "--data", "digits:test[:200]", "--out", str(out)]
    told = CliRunner().invoke(_app(), call)
    assert told.exit_code == 0, told.output
    head, *rows = told.stdout.splitlines()
    assert head.split(",")[1:] == ["1", "3"]
    assert [row.split(",")[0] for row in rows] == ["1", "3"]
    assert sorted(path.name for path in out.iterdir()) == [
        "layerwise.csv",
        "layerwise.png",
        "layerwise.safetensors",
    ]
    matrix = LayerMatrix.load(out / "layerwise.safetensors")
    assert [f"{value:.4f}" for value in matrix.values[0]] == rows[0].split(",")[1:]
    assert matrix.about["data"] == "digits:test[:200]"
