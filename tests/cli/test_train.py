"""`likewise train`: a network, data, and a folder to resume from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import likewise
from likewise.cli.train import train
from likewise.errors import UnknownNameError
from tests.cli.conftest import invoke
from tests.networks.helpers import same


def test_a_training_leaves_a_folder_that_is_an_address(tmp_path: Path) -> None:
    out = tmp_path / "runs" / "mlp"
    printed = invoke(train, "zoo:mlp", "digits", "--epochs", "2", "--lr", "0.05", "--out", str(out))
    assert printed.splitlines()[-1] == str(out / "weights.safetensors")
    assert printed.startswith("2 epochs, accuracy 0.")
    assert "validation accuracy 0." in printed
    net = likewise.network(str(out))
    assert net(likewise.dataset("digits:test[:3]").inputs).shape == (3, 10)


def test_a_training_may_be_attacked_and_taught(tmp_path: Path) -> None:
    first, second = str(tmp_path / "teacher"), str(tmp_path / "student")
    typed = ("zoo:mlp", "digits:train[:100]", "--epochs", "1", "--lr", "0.05")
    invoke(train, *typed, "--out", first, "--seed", "1")
    attack = ("--adversarial", "attack=pgd,eps=2/255,iterations=5")
    invoke(train, *typed, "--out", second, *attack, "--teacher", first, "--keep-epochs")
    called = likewise.train(
        *typed[:2], epochs=1, lr=0.05, adversarial={"attack": "pgd", "eps": 2 / 255, "iterations": 5}, teacher=first
    )
    assert same(called.net, likewise.network(second))
    assert same(called.net, likewise.network(f"{second}/epochs/0001.safetensors"))


def test_a_training_may_keep_the_best_weights(tmp_path: Path) -> None:
    how = ("--epochs", "3", "--lr", "0.3", "--schedule", "linear", "--evaluate-every", "2", "--keep-best")
    printed = invoke(
        train, "zoo:mlp", "digits:train[:500]", "--validation", "digits:test", "--out", str(tmp_path), *how
    )
    found = re.fullmatch(r"3 epochs, .*\nkept step \d+, validation accuracy (\d\.\d{4})\n.*\n", printed)
    assert found is not None
    _, accuracy = likewise.networks.evaluate(likewise.network(str(tmp_path)), likewise.dataset("digits:test"))
    assert found[1] == f"{accuracy:.4f}"


def test_a_mistyped_attack_is_refused_with_the_one_that_was_meant(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError) as error:
        invoke(train, "zoo:mlp", "digits:train[:20]", "--out", str(tmp_path), "--adversarial", "attack=pdg")
    assert str(error.value) == "no attack named 'pdg'. Did you mean 'pgd'?"
