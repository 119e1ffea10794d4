"""Densely connected networks: every layer sees the maps of all before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from likewise.errors import InputError
from likewise.networks.zoo.registry import ImageNetwork, architecture


class DenseLayer(nn.Module):
    """Bottleneck to 4k channels, then k new ones beside the old."""

    def __init__(self, width: int, growth: int) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(width)
        self.conv1 = nn.Conv2d(width, 4 * growth, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(4 * growth)
        self.conv2 = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, maps: Tensor) -> Tensor:
        new = self.conv2(self.bn2(self.conv1(self.bn1(maps).relu())).relu())
        return torch.cat([maps, new], dim=1)


class Transition(nn.Sequential):
    """Half the channels, half the size."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.bn = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        self.conv = nn.Conv2d(width, width // 2, 1, bias=False)
        self.pool = nn.AvgPool2d(2)


@architecture("densenet", summary="DenseNet-BC, 100 layers, growth 12", source="Huang et al. 2016, arXiv:1608.06993")
class DenseNet(ImageNetwork):
    """DenseNet-BC for small images: three blocks; `last_transition` adds one after the last block.

    The code of Raw Zero-Shot has that third transition; the published network has not.
    """

    def __init__(
        self, depth: int = 100, growth: int = 12, last_transition: bool = False, channels: int = 3, classes: int = 10
    ) -> None:
        super().__init__(channels)
        if (depth - 4) % 6 or depth < 10:
            raise InputError(f"a DenseNet-BC has 6n + 4 layers, not {depth}. Take 40 or 100.")
        width = 2 * growth
        self.conv1 = nn.Conv2d(channels, width, 3, padding=1, bias=False)
        for block in (1, 2, 3):
            layers = [DenseLayer(width + i * growth, growth) for i in range((depth - 4) // 6)]
            width += len(layers) * growth
            self.add_module(f"block{block}", nn.Sequential(*layers))
            if block < 3 or last_transition:
                self.add_module(f"transition{block}", Transition(width))
                width //= 2
        self.bn = nn.BatchNorm2d(width)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(width, classes)

    def answer(self, images: Tensor) -> Tensor:
        maps = images
        for name, module in self.named_children():
            if name.startswith(("conv", "block", "transition")):
                maps = module(maps)
        logits: Tensor = self.fc(self.pool(self.bn(maps).relu()).flatten(1))
        return logits


class ConvNormRelu(nn.Sequential):
    """Convolution without bias, batch normalisation, ReLU."""

    def __init__(self, width_in: int, width: int, window: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width_in, width, window, padding=window // 2, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()


class MultiScaleLayer(nn.Module):
    """A chain of three 3 × 3 windows on a bottleneck, all three results kept beside the input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.branch11 = ConvNormRelu(width, 12, 1)
        self.branch33a = ConvNormRelu(12, 12, 3)
        self.branch33b = ConvNormRelu(12, 6, 3)
        self.branch33c = ConvNormRelu(6, 6, 3)

    def forward(self, maps: Tensor) -> Tensor:
        first = self.branch33a(self.branch11(maps))
        second = self.branch33b(first)
        return torch.cat([maps, first, second, self.branch33c(second)], dim=1)


def _lmfrnet_renames() -> tuple[tuple[str, str], ...]:
    block = r"^features\.MMCBlock{}\.mmLayer{}\."
    return (
        (r"^features\.stemBlock\.stemConv\.", "stem."),
        *((rf"^features\.tran_ConvNormRelu{i + 1}\.", f"transitions.{i}.") for i in range(4)),
        *((block.format(i + 1, layer + 1), f"blocks.{i}.{layer}.") for i in range(4) for layer in range(8)),
    )


@architecture("lmfrnet", summary="Light multi-scale dense network", renames=_lmfrnet_renames())
class LMFRNet(ImageNetwork):
    """A light dense network whose layers keep three scales."""

    def __init__(self, blocks: Sequence[int] = (3, 4, 8, 3), channels: int = 3, classes: int = 10) -> None:
        super().__init__(channels)
        width = 32
        stem = nn.Conv2d(channels, width, 3, padding=1)
        self.stem = nn.Sequential(stem, nn.BatchNorm2d(width), nn.ReLU())
        self.blocks, self.transitions = nn.ModuleList(), nn.ModuleList()
        for count in blocks:
            layers = [MultiScaleLayer(width + 24 * i) for i in range(count)]
            width += 24 * count
            self.blocks.append(nn.Sequential(*layers))
            self.transitions.append(ConvNormRelu(width, width, 1))
        self.shrink = nn.AvgPool2d(2)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(width, classes)

    def answer(self, images: Tensor) -> Tensor:
        maps = self.stem(images)
        for i, (block, transition) in enumerate(zip(self.blocks, self.transitions, strict=True)):
            maps = transition(block(self.shrink(maps) if i else maps))
        return cast(Tensor, self.fc(self.pool(maps).flatten(1)))
