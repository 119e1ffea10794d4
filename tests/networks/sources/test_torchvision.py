"""`torchvision:NAME`: classifiers of images, normalised and with published weights."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import likewise
from likewise.errors import (
    InputError,
    MissingDataError,
)
from likewise.networks import Normalised


@pytest.mark.usefixtures("vision")
@pytest.mark.parametrize("name", ["fcn_resnet50", "fasterrcnn_resnet50_fpn", "r3d_18"])
def test_what_torchvision_has_but_classifiers_is_not_denied(name: str) -> None:
    with pytest.raises(InputError) as error:
        likewise.network(f"torchvision:{name}")
    assert str(error.value) == (
        f"torchvision's {name!r} is no classifier of images, and only those have an address. Build "
        f"it and pass the module: torchvision.models.get_model({name!r}, weights='DEFAULT')."
    )


@pytest.mark.usefixtures("vision")
def test_torchvision_networks_take_images_in_0_1() -> None:
    net = likewise.network("torchvision:resnet18,pretrained=false", classes=5)
    assert isinstance(net, Normalised)
    assert net(torch.rand(1, 3, 64, 64)).shape == (1, 5)


@pytest.mark.usefixtures("vision")
def test_weights_that_cannot_be_fetched_say_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # nothing listens there
    with pytest.raises(MissingDataError) as error:
        likewise.network("torchvision:squeezenet1_1")
    assert str(error.value) == (
        "the weights of torchvision:squeezenet1_1 are not here and cannot be downloaded "
        "(URLError). Add '@weights.safetensors', or take it untrained: "
        "'torchvision:squeezenet1_1,pretrained=false'."
    )
