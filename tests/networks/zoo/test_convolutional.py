"""ReSi's VGG: what its classifier is given, that it learns, and which images it refuses."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import likewise
from likewise.errors import InputError
from likewise.networks import network
from likewise.views.layers import layers
from tests.helpers import sentence as refusal


@pytest.mark.parametrize(("name", "convolutions"), [("vgg11", 8), ("vgg19", 16)])
def test_every_convolution_of_vgg_is_normalised_and_the_classifier_is_given_512_numbers(
    name: str, convolutions: int
) -> None:
    net = network(f"zoo:{name}", classes=7)
    kinds = [type(module) for module in net.features]
    where = [number for number, kind in enumerate(kinds) if kind is nn.Conv2d]
    assert len(where) == convolutions
    assert all(kinds[number + 1 : number + 3] == [nn.BatchNorm2d, nn.ReLU] for number in where)
    images = torch.rand(3, 3, 40, 40)
    assert net(images).shape == (3, 7)
    assert likewise.extract(net, images, "penultimate", progress=False).values.shape == (3, 512)
    blocks = [layer.name for layer in layers(net, images[:2]) if layer.block]
    assert blocks == [f"features.{number}" for number in where]


def test_vgg_learns_at_the_rate_of_the_paper() -> None:
    torch.manual_seed(0)
    images, labels = torch.rand(32, 3, 32, 32), torch.arange(32) % 2
    images[labels == 1] *= 0.3  # dark or light
    net = network("zoo:vgg11", classes=2).train()
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    for _ in range(8):
        loss = nn.functional.cross_entropy(net(images), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.1


def test_a_vgg_of_another_depth_is_refused() -> None:
    assert refusal(InputError, network, "zoo:vgg11,depth=12") == "a VGG of 12 layers is not known. Take 11 or 19."
