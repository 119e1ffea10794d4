"""Which layers a network has, which of them are its blocks, and what each gives."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
import torch
from torch import nn

import likewise
from likewise.networks import Normalised
from likewise.views.selection import blocks, named_layers


def test_layers_are_listed_with_shapes_and_parameters_one_entry_a_call() -> None:
    step = nn.Linear(4, 4)
    net = nn.Sequential(nn.Linear(8, 4), step, step)
    found = [(one.name, one.kind, one.shape, one.parameters) for one in likewise.layers(
        net, torch.rand(3, 8)
    )]  # fmt: skip
    # weights and biases: 8 · 4 + 4 = 36 and 4 · 4 + 4 = 20
    assert found == [
        ("0", "Linear", (4,), 36),
        ("1", "Linear", (4,), 20),
        ("1#2", "Linear", (4,), 20),
    ]


def test_without_data_a_size_is_tried() -> None:
    shapes = {one.name: one.shape for one in likewise.layers("zoo:resnet20")}
    assert shapes["layer1.0"] == (16, 32, 32)
    assert shapes["layer3.2"] == (64, 8, 8)


def test_where_no_size_fits_names_are_listed_without_shapes() -> None:
    found = likewise.layers(nn.Sequential(nn.Linear(7, 3)))
    assert [(one.name, one.shape) for one in found] == [("0", None)]


def test_wrappers_do_not_show_in_names() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3))
    wrapped = nn.DataParallel(Normalised(net, mean=[0.5] * 3, std=[0.2] * 3))
    assert list(named_layers(wrapped)) == ["0"]
    compiled = torch.compile(net, backend="eager")
    assert list(named_layers(compiled)) == ["0"]


def test_blocks_of_a_residual_network_are_its_residual_blocks() -> None:
    found = blocks(named_layers(likewise.network("zoo:resnet56")))
    assert found == [f"layer{stage}.{index}" for stage in (1, 2, 3) for index in range(9)]


@pytest.mark.skipif(find_spec("timm") is None, reason="timm is not installed")
@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("torchvision:resnet18", [f"layer{s}.{i}" for s in (1, 2, 3, 4) for i in (0, 1)]),
        ("timm:vit_tiny_patch16_224", [f"blocks.{i}" for i in range(12)]),
        ("torchvision:mobilenet_v3_small", [f"features.{i}" for i in range(13)]),
        ("timm:convnext_atto", [
            *(f"stages.{s}.blocks.{i}" for s, n in enumerate((2, 2, 6, 2)) for i in range(n)),
        ]),
        ("timm:swin_tiny_patch4_window7_224", [
            *(f"layers.{s}.blocks.{i}" for s, n in enumerate((2, 2, 6, 2)) for i in range(n)),
        ]),
        ("timm:efficientnet_b0", [
            *(f"blocks.{s}.{i}" for s, n in enumerate((1, 2, 2, 3, 3, 4, 1)) for i in range(n)),
        ]),
        ("timm:mobilenetv3_small_100", [
            *(f"blocks.{s}.{i}" for s, n in enumerate((1, 2, 3, 2, 3, 1)) for i in range(n)),
        ]),
        ("timm:mobilevit_xxs", [
            *(f"stages.{s}.{i}" for s, n in enumerate((1, 3, 2, 2, 2)) for i in range(n)),
        ]),
        ("torchvision:googlenet,aux_logits=false,init_weights=false", [
            "conv1", "conv2", "conv3",
            *(f"inception{name}" for name in ("3a", "3b", "4a", "4b", "4c", "4d", "4e", "5a", "5b")),
        ]),
        ("torchvision:inception_v3,aux_logits=false,init_weights=false", [
            *(f"Conv2d_{name}" for name in ("1a_3x3", "2a_3x3", "2b_3x3", "3b_1x1", "4a_3x3")),
            *(f"Mixed_{name}" for name in ("5b", "5c", "5d", "6a", "6b", "6c", "6d", "6e")),
            *(f"Mixed_{name}" for name in ("7a", "7b", "7c")),
        ]),
    ],
)  # fmt: skip
def test_blocks_of_known_architectures(address: str, expected: list[str]) -> None:
    network = likewise.network(f"{address},pretrained=false")
    assert blocks(named_layers(network)) == expected


def test_without_blocks_the_layers_with_weights_count() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3))
    assert blocks(named_layers(net)) == ["0", "3"]
