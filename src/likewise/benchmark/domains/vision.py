"""Images, classified by the networks of the paper and by the small ones of the zoo.

Looked at is what the classifier is given. The layer test takes the last six points with no skip connection around
them and maps of at most 28 pixels a side (a stride of 8 or more for 224 pixels), pooled to 7 x 7; of transformers the
class token. In `small` networks see few images for few epochs, without the crops of the paper.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn import functional

from likewise.analysis import components
from likewise.benchmark.domains import ChangeKind, Domain, Experiment, Group, LayerViews, NetworkSpec, Preset, domain
from likewise.data import Data
from likewise.data.changes import in_colour
from likewise.networks import Noise, Settings
from likewise.views import Activations
from likewise.views.extract import extract
from likewise.views.layers import layers

_LEVELS: dict[ChangeKind, tuple[float, ...]] = {
    "labels": (0.0, 0.5, 1.0),
    "shortcut": (0.0, 0.75, 1.0),
    "augmentation": (1000.0, 2000.0, 4000.0),  # the variance of noise: S, M and Max
}
_LAYERS, _LARGEST = 6, 28
_NOISY = 5000  # images that are looked at with noise
_IN21K = "hf:google/vit-{}-patch32-224-in21k,pretrained=true"
_TABLE_6 = {"schedule": "cosine", "label_smoothing": 0.1, "augment": ["resized-crop", "flip"]}  # what all share
_CNN = _TABLE_6 | {"optimiser": "sgd", "lr": 0.1, "epochs": 200, "batch_size": 128}
_VIT = _TABLE_6 | {"optimiser": "adamw", "lr": 3e-3, "epochs": 300, "batch_size": 512, "weight_decay": 0.1, "clip": 1.0}
_ATTENTIVE = ("Transformer", "Hybrid")  # by `likewise.analysis.components`
_SMALL = ("lenet", "mlp", "allconv", "resnet20", "vit-tiny", "mixer-tiny", "conv-mlp", "densenet", "wideresnet")


@domain("vision", "images")
class Vision(Domain):
    """Images and what they show."""

    kind = "image"
    data = ("imagenet100", "cifar100", "cifar10", "fashion-mnist", "digits")
    networks: ClassVar[Mapping[str, str]] = MappingProxyType(
        {name: f"torchvision:{name}" for name in ("resnet18", "resnet34", "resnet101")}
        | {name: f"zoo:{name}" for name in ("vgg11", "vgg19")}
        | {"vit-b-32": _IN21K.format("base"), "vit-l-32": _IN21K.format("large")}
        | {name: f"zoo:{name}" for name in _SMALL}
    )
    test_split = ("test", "val")
    version = 3  # 2: shortcuts in colour; 3: images of folders come with their classes in turn

    def preset(self, name: str, data: str, network: str) -> Preset:
        """All images, or so many that a network is trained in seconds."""
        if name == "paper":
            return Preset(layered=10)
        return Preset(seeds=8, group=4, layered=4, train=4000, probe=500)

    def training(self, experiment: Experiment, group: Group) -> dict[str, Any]:
        """Table 6 of the paper, by what the network is built of; `small`: ten epochs of Adam."""
        if not experiment.as_in_paper:
            return {"optimiser": "adam", "lr": 2e-3, "epochs": 10, "weight_decay": 0.0}
        if _is_transformer(self.address(experiment, 0)):
            return dict(_VIT)
        return {**_CNN, "weight_decay": 5e-4 if experiment.data_name in ("cifar10", "cifar100") else 4e-5}

    def levels(self, kind: ChangeKind, experiment: Experiment) -> tuple[float, ...]:
        """The groups of the paper (A.2 to A.4)."""
        return _LEVELS[kind]

    def changed(self, data: Data, spec: NetworkSpec, share: float | None = None) -> Data:
        """Discs of shortcuts are coloured, so greyscale images get colours first: greys are not learned from few."""
        return super().changed(in_colour(data) if spec.kind == "shortcut" else data, spec, share)

    def settings(self, spec: NetworkSpec) -> Settings:
        """Noise is drawn anew for every batch in the groups of the augmentation test."""
        settings = super().settings(spec)
        if spec.kind != "augmentation":
            return settings
        return replace(settings, augment=(*settings.augment, Noise(spec.share)))

    def augmented(self, probe: Data, experiment: Experiment) -> Data:
        """Test images, more than a small probe has, all with the strongest noise that networks were trained on."""
        some = self.load(experiment.data, "probe")[:_NOISY]
        images, draw = some.inputs[:], torch.Generator().manual_seed(2024)
        deviation = math.sqrt(max(self.levels("augmentation", experiment))) / 255
        noisy = (images + deviation * torch.randn(images.shape, generator=draw)).clamp(0, 1)
        return Data(f"{some.name},noise", "image", noisy, some.labels, some.classes, some.wnids)

    def layer_views(self, net: nn.Module, probe: Data, experiment: Experiment, **show: Any) -> LayerViews:
        """The last five blocks with small maps, and what the classifier is given."""
        shapes = _points(net, probe)
        rows = {name: extract(net, probe, name, reduce=_reduction(shape), **show) for name, shape in shapes.items()}
        maps = {name: shape for name, shape in shapes.items() if len(shape) == 3}
        flat = {name: extract(net, probe, name, reduce="pool7", **show) for name in maps}
        side = min([min(7, *shape[1:]) for shape in maps.values()], default=0)
        every = side**2 + (not experiment.as_in_paper)  # the paper's 49 is always the same corner
        positions = {name: _positions(flat[name], shape[0], side, every) for name, shape in maps.items()}
        return LayerViews(rows | {"penultimate": self.view(net, probe, **show)}, flat, positions)


@lru_cache
def _is_transformer(address: str) -> bool:
    """Whether tokens attend to one another in a network, read from a pass of it without its published weights."""
    if address in {_IN21K.format(size) for size in ("base", "large")}:
        return True  # the paper's, known before they are fetched
    return components(address)["base_architecture"] in _ATTENTIVE


def _points(net: nn.Module, probe: Data) -> dict[str, tuple[int, ...]]:
    """The last five blocks before the classifier whose maps are small, with what they give for one image."""
    shapes = {layer.name: layer.shape for layer in layers(net, probe[:2]) if layer.block and layer.shape}
    logits = (len(probe.classes),)
    small = {
        n: shape
        for n, shape in shapes.items()
        if shape != logits and max(shape[1:] * (len(shape) == 3), default=0) <= _LARGEST
    }
    return dict(list(small.items())[1 - _LAYERS :])


def _reduction(shape: tuple[int, ...]) -> str | None:
    """Maps are averaged; of tokens the first is taken, unless they are the patches of a square alone."""
    if len(shape) == 2:
        return "mean" if math.isqrt(shape[0]) ** 2 == shape[0] else "cls"
    return "mean" if len(shape) == 3 else None


def _positions(flat: Activations, channels: int, side: int, every: int) -> Activations:
    """Positions as rows, of maps pooled to one size, and every so many of them."""
    inside = math.isqrt(flat.d // channels)
    maps = functional.adaptive_avg_pool2d(flat.values.reshape(flat.n, channels, inside, inside), side)
    rows = maps.movedim(1, -1).reshape(-1, channels)[::every].contiguous()
    return Activations(rows, flat.name, f"{flat.probe}/{side}/{every}", about=flat.about)
