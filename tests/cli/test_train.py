"""The commands `networks`, `data` and `train`, each registered alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import likewise
from likewise.cli.data import data
from likewise.cli.networks import networks
from likewise.cli.train import train
from likewise.errors import UnknownNameError


def run(command: Callable[..., Any], *words: str) -> str:
    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_networks_are_listed_with_their_addresses() -> None:
    lines = run(networks).splitlines()
    assert lines[0].split()[0].startswith("zoo:")
    assert any(line.split()[:2] == ["zoo:resnet56-b", "image"] for line in lines)
    found = json.loads(run(networks, "zoo:resnet2*", "--json"))
    assert [one["address"] for one in found] == ["zoo:resnet20", "zoo:resnet20-b"]


def test_a_pattern_that_matches_nothing_says_so() -> None:
    with pytest.raises(UnknownNameError) as error:
        run(networks, "zzz*")
    assert str(error.value) == "no network matches 'zzz*'. Leave the pattern out to see the zoo."


def test_data_is_listed_with_its_splits() -> None:
    found = json.loads(run(data, "cifar*", "--json"))
    assert found == [
        {"name": "cifar10", "domain": "image", "splits": ["test", "train"]},
        {"name": "cifar100", "domain": "image", "splits": ["test", "train"]},
    ]
    assert "imagefolder:PATH" in run(data)


def test_a_training_leaves_a_folder_that_is_an_address(tmp_path: Path) -> None:
    out = tmp_path / "runs" / "mlp"
    said = run(train, "zoo:mlp", "digits", "--epochs", "2", "--lr", "0.05", "--out", str(out))
    assert said.splitlines()[-1] == str(out / "weights.safetensors")
    assert said.startswith("2 epochs, accuracy 0.")
    assert "validation accuracy 0." in said
    net = likewise.network(str(out))
    assert net(likewise.dataset("digits:test[:3]").inputs).shape == (3, 10)
