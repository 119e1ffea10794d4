"""The weights of every epoch can be kept, and each is an address."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import likewise
from likewise.errors import InputError
from likewise.networks import train


def test_every_epoch_is_kept_from_before_the_first_step(tmp_path: Path) -> None:
    done = train("zoo:mlp", "digits:train[:64]", epochs=2, out=tmp_path, keep_epochs=True, lr=0.05)
    kept = sorted(file.name for file in (tmp_path / "epochs").iterdir())
    assert kept == ["0000.safetensors", "0001.safetensors", "0002.safetensors"]
    last = likewise.network(str(tmp_path / "epochs" / "0002.safetensors"))
    images = likewise.dataset("digits:test[:5]").inputs.double().float()
    with torch.no_grad():
        assert torch.equal(last(images), done.net(images))


def test_a_training_that_goes_on_keeps_the_epochs_it_had(tmp_path: Path) -> None:
    settings = {"epochs": 3, "out": tmp_path, "keep_epochs": True, "lr": 0.05}
    train("zoo:mlp", "digits:train[:64]", callbacks=[lambda *_: True], **settings)
    first = (tmp_path / "epochs" / "0001.safetensors").read_bytes()
    train("zoo:mlp", "digits:train[:64]", **settings)
    assert (tmp_path / "epochs" / "0001.safetensors").read_bytes() == first


def test_epochs_cannot_be_kept_nowhere() -> None:
    with pytest.raises(InputError) as error:
        train("zoo:mlp", "digits:train[:64]", epochs=1, keep_epochs=True)
    assert str(error.value) == "keep_epochs needs a folder to keep the epochs in. Give out."
