"""`timm:NAME`: image networks, normalised and with published weights."""

from __future__ import annotations

import sys

import pytest
import torch

import likewise
from likewise.errors import (
    MissingDependencyError,
)
from likewise.networks import Normalised
from tests.networks.helpers import refused

pytestmark = pytest.mark.usefixtures("vision")


def test_timm_without_torchvision_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchvision", None)  # as if it were not installed
    assert refused(lambda: likewise.network("timm:resnet18"), MissingDependencyError) == (
        "to load timm:resnet18, torchvision is needed: pip install 'likewise[vision]'."
    )


def test_timm_networks_take_images_in_0_1() -> None:
    net = likewise.network("timm:resnet10t,pretrained=false", classes=5)
    assert isinstance(net, Normalised)
    assert net.mean.flatten().tolist() == pytest.approx([0.485, 0.456, 0.406])
    assert net(torch.rand(1, 3, 64, 64)).shape == (1, 5)
