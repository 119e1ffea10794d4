"""`likewise train`: a network, data, and a folder to resume from."""

from __future__ import annotations

from pathlib import Path

import likewise
from likewise.cli.train import train
from tests.cli.conftest import invoke


def test_a_training_leaves_a_folder_that_is_an_address(tmp_path: Path) -> None:
    out = tmp_path / "runs" / "mlp"
    printed = invoke(train, "zoo:mlp", "digits", "--epochs", "2", "--lr", "0.05", "--out", str(out))
    assert printed.splitlines()[-1] == str(out / "weights.safetensors")
    assert printed.startswith("2 epochs, accuracy 0.")
    assert "validation accuracy 0." in printed
    net = likewise.network(str(out))
    assert net(likewise.dataset("digits:test[:3]").inputs).shape == (3, 10)
