"""Residual networks for small images: He et al.'s, the pre-activation kind, and the wide ones."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn
from torch.nn import functional

from likewise.errors import InputError
from likewise.networks.zoo.registry import ImageNetwork, architecture

Shortcut = Literal["A", "B"]


class BasicBlock(nn.Module):
    """Two convolutions and a shortcut around them."""

    def __init__(self, width_in: int, width: int, stride: int, shortcut: Shortcut) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width_in, width, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or width_in != width:
            self.downsample = _shortcut(width_in, width, stride, shortcut)

    def forward(self, maps: Tensor) -> Tensor:
        branch = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(maps)))))
        result: Tensor = self.relu(branch + self.downsample(maps))
        return result


class PaddedShortcut(nn.Module):
    """Option A: every `stride`-th pixel, and channels of zeros on both sides; no parameters."""

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.stride, self.extra = stride, (width - width_in) // 2

    def forward(self, maps: Tensor) -> Tensor:
        fewer = maps[:, :, :: self.stride, :: self.stride]
        return functional.pad(fewer, (0, 0, 0, 0, self.extra, self.extra))


def _shortcut(width_in: int, width: int, stride: int, kind: Shortcut) -> nn.Module:
    if kind == "A":
        return PaddedShortcut(width_in, width, stride)
    convolution = nn.Conv2d(width_in, width, 1, stride=stride, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(width))


class ResNet(ImageNetwork):
    """He et al.'s network for CIFAR: three stages of 16, 32 and 64 channels, depth 6n + 2."""

    def __init__(self, depth: int = 20, shortcut: Shortcut = "A", channels: int = 3, classes: int = 10) -> None:
        super().__init__(channels)
        if (depth - 2) % 6 or depth < 8:
            raise InputError(f"a ResNet has 6n + 2 layers, not {depth}. Take 20, 32, 44, 56 or 110.")
        if shortcut not in ("A", "B"):
            raise InputError(f"no shortcut named {shortcut!r}. There are 'A' (padded) and 'B' (1 × 1).")
        count = (depth - 2) // 6
        self.conv1 = nn.Conv2d(channels, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.relu = nn.ReLU()
        self.layer1 = _stage(16, 16, count, 1, shortcut)
        self.layer2 = _stage(16, 32, count, 2, shortcut)
        self.layer3 = _stage(32, 64, count, 2, shortcut)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(64, classes)
        _he_normal(self)

    def answer(self, images: Tensor) -> Tensor:
        maps = self.relu(self.bn1(self.conv1(images)))
        maps = self.layer3(self.layer2(self.layer1(maps)))
        logits: Tensor = self.fc(self.pool(maps).flatten(1))
        return logits


for _depth in (20, 32, 44, 56, 110):
    for _ending, _shortcut_kind, _words in (("", "A", "padded"), ("-b", "B", "1 × 1")):
        architecture(
            f"resnet{_depth}{_ending}",
            depth=_depth,
            shortcut=_shortcut_kind,
            summary=f"ResNet-{_depth} for small images, {_words} shortcuts (option {_shortcut_kind})",
            source="He et al. 2015, arXiv:1512.03385",
            renames=((r"^linear\.", "fc."),),  # what the published weights of option A call the classifier
        )(ResNet)


def _stage(width_in: int, width: int, count: int, stride: int, kind: Shortcut) -> nn.Sequential:
    first = BasicBlock(width_in, width, stride, kind)
    return nn.Sequential(first, *(BasicBlock(width, width, 1, kind) for _ in range(count - 1)))


class PreActivationBlock(nn.Module):
    """Normalisation and ReLU before each convolution; the projection, if any, sees them too."""

    def __init__(self, width_in: int, width: int, stride: int, project: bool) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(width_in)
        self.conv1 = nn.Conv2d(width_in, width, 3, stride=stride, padding=1)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.project = nn.Conv2d(width_in, width, 1, stride=stride) if project else None

    def forward(self, maps: Tensor) -> Tensor:
        active = self.bn1(maps).relu()
        branch: Tensor = self.conv2(self.bn2(self.conv1(active)).relu())
        return branch + (maps if self.project is None else self.project(active))


@architecture(
    "wideresnet",
    depth=16,
    width=8,
    summary="Wide ResNet 16-8",
    source="Zagoruyko and Komodakis 2016, arXiv:1605.07146",
    aliases=("wideresnet16-8",),
)
@architecture(
    "resnet32-pre",
    depth=32,
    width=1,
    summary="Pre-activation ResNet-32, as in Raw Zero-Shot",
    source="He et al. 2016, arXiv:1603.05027",
)
class PreActivationResNet(ImageNetwork):
    """Pre-activation residual network, depth 6n + 2 (narrow) or 6n + 4 (wide), biases kept.

    `project_every` puts a 1 × 1 projection into every block, as the code of Raw Zero-Shot does in
    its WideResNet; by default it stands only where the shape changes.
    """

    def __init__(
        self, depth: int = 32, width: int = 1, project_every: bool = False, channels: int = 3, classes: int = 10
    ) -> None:
        super().__init__(channels)
        count = (depth - 2) // 6
        self.conv1 = nn.Conv2d(channels, 16, 3, padding=1)
        widths = [16, 16 * width, 32 * width, 64 * width]
        for stage in (1, 2, 3):
            blocks: list[nn.Module] = []
            for i in range(count):
                before = widths[stage - 1] if i == 0 else widths[stage]
                stride = 2 if stage > 1 and i == 0 else 1
                project = project_every or before != widths[stage]
                blocks.append(PreActivationBlock(before, widths[stage], stride, project))
            self.add_module(f"layer{stage}", nn.Sequential(*blocks))
        self.bn = nn.BatchNorm2d(widths[-1])
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(widths[-1], classes)
        _he_normal(self)

    def answer(self, images: Tensor) -> Tensor:
        maps = self.conv1(images)
        for stage in (1, 2, 3):
            maps = self.get_submodule(f"layer{stage}")(maps)
        logits: Tensor = self.fc(self.pool(self.bn(maps).relu()).flatten(1))
        return logits


def _he_normal(net: nn.Module) -> None:
    for module in net.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(module.weight)
