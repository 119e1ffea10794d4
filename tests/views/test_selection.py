"""Which layers are meant: names, patterns, blocks, and networks that cannot be looked into."""

from __future__ import annotations

from collections import OrderedDict
from importlib.util import find_spec

import pytest
import torch
from torch import Tensor, nn

import likewise
from likewise.errors import InputError
from likewise.networks import head
from likewise.views.extract import extract
from likewise.views.selection import blocks, named_layers


def _tiny() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 3)).eval()


def _normed(kind: str) -> nn.Module:
    wrap = getattr(nn.utils.parametrizations, kind)
    return nn.Sequential(wrap(nn.Linear(8, 5)), nn.ReLU(), wrap(nn.Linear(5, 3, bias=False))).eval()


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
        (
            "timm:convnext_atto",
            [
                *(f"stages.{s}.blocks.{i}" for s, n in enumerate((2, 2, 6, 2)) for i in range(n)),
            ],
        ),
        (
            "timm:swin_tiny_patch4_window7_224",
            [
                *(f"layers.{s}.blocks.{i}" for s, n in enumerate((2, 2, 6, 2)) for i in range(n)),
            ],
        ),
        (
            "timm:efficientnet_b0",
            [
                *(f"blocks.{s}.{i}" for s, n in enumerate((1, 2, 2, 3, 3, 4, 1)) for i in range(n)),
            ],
        ),
        (
            "timm:mobilenetv3_small_100",
            [
                *(f"blocks.{s}.{i}" for s, n in enumerate((1, 2, 3, 2, 3, 1)) for i in range(n)),
            ],
        ),
        (
            "timm:mobilevit_xxs",
            [
                *(f"stages.{s}.{i}" for s, n in enumerate((1, 3, 2, 2, 2)) for i in range(n)),
            ],
        ),
        (
            "torchvision:googlenet,aux_logits=false,init_weights=false",
            [
                "conv1",
                "conv2",
                "conv3",
                *(f"inception{name}" for name in ("3a", "3b", "4a", "4b", "4c", "4d", "4e", "5a", "5b")),
            ],
        ),
        (
            "torchvision:inception_v3,aux_logits=false,init_weights=false",
            [
                *(f"Conv2d_{name}" for name in ("1a_3x3", "2a_3x3", "2b_3x3", "3b_1x1", "4a_3x3")),
                *(f"Mixed_{name}" for name in ("5b", "5c", "5d", "6a", "6b", "6c", "6d", "6e")),
                *(f"Mixed_{name}" for name in ("7a", "7b", "7c")),
            ],
        ),
    ],
)
def test_blocks_of_known_architectures(address: str, expected: list[str]) -> None:
    network = likewise.network(f"{address},pretrained=false")
    assert blocks(named_layers(network)) == expected


def test_without_blocks_the_layers_with_weights_count() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3))
    assert blocks(named_layers(net)) == ["0", "3"]


@pytest.mark.parametrize("kind", ["weight_norm", "spectral_norm"])
def test_what_makes_weights_is_no_layer(kind: str) -> None:
    net, rows = _normed(kind), torch.rand(10, 8)
    assert list(extract(net, rows, "blocks")) == ["0", "2"]
    assert list(extract(net, rows, "all")) == ["0", "1", "2"]
    found = head(net)
    assert found.layer_name == "2"
    assert torch.equal(found.weight, net[2].weight)
    assert extract(net, rows).d == 5


def test_blocks_of_layers_that_make_their_weights_are_the_same_blocks() -> None:
    def part() -> nn.Module:
        wrapped = nn.utils.parametrizations.weight_norm(nn.Linear(8, 8))
        return nn.Sequential(OrderedDict(fc=wrapped, act=nn.ReLU()))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inside = part()

        def forward(self, rows: Tensor) -> Tensor:
            return rows + self.inside(rows)

    net = nn.Sequential(Block(), Block())
    assert list(extract(net, torch.rand(10, 8), "blocks")) == ["0", "1"]


def test_attributes_inside_a_block_are_no_blocks_of_their_own() -> None:
    class Unit(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc, self.act = nn.Linear(8, 8), nn.ReLU()

        def forward(self, rows: Tensor) -> Tensor:
            return self.act(self.fc(rows))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.unit1, self.unit2 = Unit(), Unit()

        def forward(self, rows: Tensor) -> Tensor:
            return self.unit2(self.unit1(rows))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Sequential(OrderedDict(unit=Unit()))
            self.blocks = nn.Sequential(Block(), Block())

        def forward(self, rows: Tensor) -> Tensor:
            return self.blocks(self.stem(rows))

    assert list(extract(Net(), torch.rand(10, 8), "blocks")) == ["blocks.0", "blocks.1"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_quantised_networks_have_blocks_and_a_classifier() -> None:
    net = torch.ao.quantization.quantize_dynamic(_tiny(), {nn.Linear}, dtype=torch.qint8)
    rows = torch.rand(10, 8)
    assert list(extract(net, rows, "blocks")) == ["0", "2"]
    assert extract(net, rows).d == 5
    found = head(net)
    assert found.layer_name == "2"
    assert torch.equal(found.weight, net[2].weight().dequantize())


@pytest.mark.filterwarnings("ignore:Lazy modules")
@pytest.mark.parametrize("layers", ["blocks", "penultimate"])
def test_a_network_without_sizes_yet_is_refused(layers: str) -> None:
    net = nn.Sequential(nn.LazyLinear(5), nn.ReLU(), nn.LazyLinear(3))
    with pytest.raises(InputError) as caught:
        extract(net, torch.rand(10, 8), layers)
    assert str(caught.value) == (
        "'0' of 'Sequential' is a LazyLinear, whose size shows with its first inputs. "
        "Show it some before: network(inputs)."
    )


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_of_a_scripted_network_there_are_logits_alone() -> None:
    net, rows = _tiny(), torch.rand(10, 8)
    scripted = torch.jit.trace(net, rows)
    with torch.no_grad():
        torch.testing.assert_close(extract(scripted, rows, "logits").values, net(rows))
    with pytest.raises(InputError) as caught:
        extract(scripted, rows, "0", name="mine")
    assert str(caught.value) == (
        "'mine' is compiled by TorchScript, so nothing but its 'logits' can be watched. "
        "Pass the module it was made from."
    )
