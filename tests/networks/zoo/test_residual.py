"""Residual networks for small images."""

from __future__ import annotations

import likewise
from tests.networks.helpers import refused


def test_a_resnet_of_an_impossible_depth_is_refused() -> None:
    assert (
        refused(lambda: likewise.network("zoo:resnet20", depth=21))
        == "a ResNet has 6n + 2 layers, not 21. Take 20, 32, 44, 56 or 110."
    )
