"""Plain convolutional networks: LeNet, Network in Network, All-CNN, as in Raw Zero-Shot; ReSi's VGG; ShuffleNet V2.

Layers and widths are those of the papers' code, checked by the number of parameters. torchvision's ShuffleNet is for
small images: it is asked not to shrink them at once. torchvision's VGG, which has no batch normalisation and three
linear layers, is another network than ReSi's.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar, cast

from torch import Tensor, nn

from likewise._base.optional import prepare_torchvision, require
from likewise.errors import InputError
from likewise.networks.zoo.registry import ImageNetwork, architecture

_SHUFFLENET = "Ma et al. 2018, arXiv:1807.11164"


@architecture("lenet", summary="LeNet-5 with batch normalisation", source="LeCun et al. 1998")
class LeNet(ImageNetwork):
    """LeNet-5 with batch normalisation: two convolutions, two hidden layers."""

    def __init__(self, channels: int = 3, size: int = 32, classes: int = 10) -> None:
        super().__init__(channels, size)
        pad = 0 if size >= 16 else 2  # two unpadded 5 × 5 windows do not fit into less
        self.features = nn.Sequential(
            *(nn.Conv2d(channels, 6, 5, padding=pad), nn.BatchNorm2d(6), nn.ReLU()),
            nn.MaxPool2d(2),
            *(nn.Conv2d(6, 16, 5, padding=pad), nn.BatchNorm2d(16), nn.ReLU()),
            nn.MaxPool2d(2),
        )
        side = ((size - 4 + 2 * pad) // 2 - 4 + 2 * pad) // 2
        self.hidden = nn.Sequential(
            *(nn.Linear(16 * side**2, 120), nn.BatchNorm1d(120), nn.ReLU()),
            *(nn.Linear(120, 84), nn.BatchNorm1d(84), nn.ReLU()),
        )
        self.fc = nn.Linear(84, classes)

    def answer(self, images: Tensor) -> Tensor:
        logits: Tensor = self.fc(self.hidden(self.features(images).flatten(1)))
        return logits


class ConvUnit(nn.Sequential):
    """Convolution that keeps the size, batch normalisation, ReLU."""

    def __init__(self, width_in: int, width: int, window: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width_in, width, window, padding=window // 2)
        self.bn = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()


@architecture("nin", summary="Network in Network", source="Lin et al. 2013, arXiv:1312.4400")
class NiN(ImageNetwork):
    """Network in Network: 1 × 1 layers after each wide window; classes are averaged maps.

    With another `width` than 192, the two layers that are narrower keep their share of it.
    """

    head_layer: ClassVar[str | None] = "block3.2.conv"

    def __init__(self, channels: int = 3, classes: int = 10, width: int = 192) -> None:
        super().__init__(channels)
        w, less, half = width, max(1, width * 160 // 192), max(1, width // 2)
        self.block1 = nn.Sequential(ConvUnit(channels, w, 5), ConvUnit(w, less, 1), ConvUnit(less, half, 1))
        self.block2 = nn.Sequential(ConvUnit(half, w, 5), ConvUnit(w, w, 1), ConvUnit(w, w, 1))
        self.block3 = nn.Sequential(ConvUnit(w, w, 3), ConvUnit(w, w, 1), ConvUnit(w, classes, 1))
        self.pool = nn.Sequential(nn.MaxPool2d(3, stride=2, padding=1), nn.Dropout(0.5))

    def answer(self, images: Tensor) -> Tensor:
        maps = self.pool(self.block2(self.pool(self.block1(images))))
        logits: Tensor = self.block3(maps).mean(dim=(2, 3))
        return logits


@architecture("allconv", summary="The all convolutional network", source="Springenberg et al. 2014, arXiv:1412.6806")
class AllConv(ImageNetwork):
    """The all convolutional network: strides in place of pooling, no batch normalisation.

    `width` is that of the first layers; the others are twice as wide.
    """

    head_layer: ClassVar[str | None] = "conv10"

    def __init__(self, channels: int = 3, classes: int = 10, width: int = 96) -> None:
        super().__init__(channels)
        widths = [channels, *[width] * 3, *[2 * width] * 5]
        for i, (before, after) in enumerate(pairwise(widths), start=1):
            stride = 2 if i in (3, 6) else 1
            self.add_module(f"conv{i}", nn.Conv2d(before, after, 3, stride=stride, padding=1))
        self.conv9 = nn.Conv2d(2 * width, 2 * width, 1)
        self.conv10 = nn.Conv2d(2 * width, classes, 1)
        self.drop, self.drop_first = nn.Dropout(0.5), nn.Dropout(0.2)

    def answer(self, images: Tensor) -> Tensor:
        maps = images
        drops = {1: self.drop_first, 3: self.drop, 6: self.drop}
        for i in range(1, 11):
            maps = self.get_submodule(f"conv{i}")(maps).relu()
            maps = drops[i](maps) if i in drops else maps
        return maps.mean(dim=(2, 3))


_VGG = {  # convolutions of each stage; a stage ends with pooling
    11: ((64,), (128,), (256,) * 2, (512,) * 2, (512,) * 2),
    19: ((64,) * 2, (128,) * 2, (256,) * 4, (512,) * 4, (512,) * 4),
}


class VGG(ImageNetwork):
    """VGG with batch normalisation, whose maps are averaged for one linear layer, as in ReSi."""

    head_layer: ClassVar[str | None] = "classifier"

    def __init__(self, depth: int = 11, channels: int = 3, classes: int = 10) -> None:
        super().__init__(channels)
        if depth not in _VGG:
            raise InputError(f"a VGG of {depth} layers is not known. Take 11 or 19.")
        layers: list[nn.Module] = []
        for stage in _VGG[depth]:
            for width in stage:
                layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
                channels = width
            layers += [nn.MaxPool2d(2, ceil_mode=True)]  # as without for 32 and 224 pixels; less than 32 is not lost
        self.features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1))
        self.classifier = nn.Linear(channels, classes)

    def answer(self, images: Tensor) -> Tensor:
        return cast(Tensor, self.classifier(self.features(images).flatten(1)))


for _depth in _VGG:
    architecture(
        f"vgg{_depth}",
        depth=_depth,
        summary=f"VGG-{_depth} with batch normalisation and one linear layer, as in ReSi",
        source="Simonyan and Zisserman 2014, arXiv:1409.1556",
    )(VGG)


@architecture(
    "shufflenetv2-x1-0", width="x1_0", summary="ShuffleNet V2 x1.0 for small images (torchvision)", source=_SHUFFLENET
)
@architecture(
    "shufflenetv2-x0-5", width="x0_5", summary="ShuffleNet V2 x0.5 for small images (torchvision)", source=_SHUFFLENET
)
def shufflenet(width: str = "x0_5", channels: int = 3, classes: int = 10) -> nn.Module:
    """torchvision's ShuffleNet V2 with a first stride of 1 and no first pooling."""
    prepare_torchvision()
    models = require("torchvision.models", extra="vision", to=f"build zoo:shufflenetv2-{width.replace('_', '-')}")
    net: Any = models.get_model(f"shufflenet_v2_{width}", weights=None, num_classes=classes)
    net.conv1[0] = nn.Conv2d(channels, 24, 3, padding=1, bias=False)
    net.maxpool = nn.Identity()
    return cast(nn.Module, net)
