"""ShuffleNet V2 for small images: torchvision's network, which is asked not to shrink at once."""

from __future__ import annotations

from typing import Any, cast

from torch import nn

from likewise._base.compat import prepare_torchvision
from likewise._base.optional import require
from likewise.networks.zoo.registry import architecture

_SOURCE = "Ma et al. 2018, arXiv:1807.11164"


@architecture(
    "shufflenetv2-x1-0", width="x1_0", summary="ShuffleNet V2 x1.0 for small images (torchvision)", source=_SOURCE
)
@architecture(
    "shufflenetv2-x0-5", width="x0_5", summary="ShuffleNet V2 x0.5 for small images (torchvision)", source=_SOURCE
)
def shufflenet(width: str = "x0_5", channels: int = 3, classes: int = 10) -> nn.Module:
    """torchvision's ShuffleNet V2 with a first stride of 1 and no first pooling."""
    prepare_torchvision()
    models = require("torchvision.models", extra="vision", to=f"build zoo:shufflenetv2-{width.replace('_', '-')}")
    net: Any = models.get_model(f"shufflenet_v2_{width}", weights=None, num_classes=classes)
    net.conv1[0] = nn.Conv2d(channels, 24, 3, padding=1, bias=False)
    net.maxpool = nn.Identity()
    return cast(nn.Module, net)
