"""ShuffleNet V2 for small images: torchvision's network, which is asked not to shrink at once."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

from torch import nn

from likewise._base.compat import prepare_torchvision
from likewise._base.optional import require
from likewise.networks.zoo.registry import add


def shufflenet(width: str = "x0_5", channels: int = 3, classes: int = 10) -> nn.Module:
    """torchvision's ShuffleNet V2 with a first stride of 1 and no first pooling."""
    prepare_torchvision()
    models = require("torchvision.models", extra="vision", to=f"build zoo:shufflenetv2-{width.replace('_', '-')}")
    net: Any = models.get_model(f"shufflenet_v2_{width}", weights=None, num_classes=classes)
    net.conv1[0] = nn.Conv2d(channels, 24, 3, padding=1, bias=False)
    net.maxpool = nn.Identity()
    return cast(nn.Module, net)


for _width in ("x0_5", "x1_0"):
    add(
        f"shufflenetv2-{_width.replace('_', '-')}",
        partial(shufflenet, width=_width),
        summary=f"ShuffleNet V2 {_width.replace('_', '.')} for small images (torchvision)",
        source="Ma et al. 2018, arXiv:1807.11164",
    )
