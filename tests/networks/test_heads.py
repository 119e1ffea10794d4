"""Classifiers: the layer whose input is the penultimate representation."""

from __future__ import annotations

import pytest
from torch import nn

import likewise
from likewise.errors import InputError
from likewise.networks import Normalised, head


def test_a_network_that_ends_otherwise_has_no_head() -> None:
    with pytest.raises(InputError) as error:
        head(nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3)))
    assert str(error.value) == (
        "Sequential has no classifier that could be found: its last layer with weights, '1', is a "
        "LayerNorm. Name the layer yourself: head='name' where it is asked for, or net.head_layer = 'name'."
    )


def test_the_head_is_found_within_wrappers() -> None:
    net = likewise.network("zoo:lenet")
    wrapped = Normalised(nn.DataParallel(net), [0.5] * 3, [0.5] * 3)
    assert head(wrapped).layer_name == "fc"
    assert head(wrapped).weight.data_ptr() == net.fc.weight.data_ptr()


@pytest.mark.parametrize(
    ("address", "layer"),
    [
        ("timm:resnet10t,pretrained=false", "fc"),
        ("timm:vit_tiny_patch16_224,pretrained=false", "head"),
        ("torchvision:squeezenet1_1,pretrained=false", "classifier.1"),
        ("torchvision:mobilenet_v3_small,pretrained=false", "classifier.3"),
    ],
)
@pytest.mark.usefixtures("vision")
def test_networks_of_the_libraries_have_heads(address: str, layer: str) -> None:
    assert head(likewise.network(address)).layer_name == layer
