"""Residual networks for small images."""

from __future__ import annotations

import pytest

import likewise
from likewise.errors import InputError


def test_a_resnet_of_an_impossible_depth_is_refused() -> None:
    with pytest.raises(InputError) as error:
        likewise.network("zoo:resnet20", depth=21)
    assert str(error.value) == "a ResNet has 6n + 2 layers, not 21. Take 20, 32, 44, 56 or 110."
