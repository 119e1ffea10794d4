"""Images made for one network, brought to the size and channels of another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import likewise
from likewise.networks.inputs.image_size import resize_for
from likewise.networks.inputs.normalisation import record_transform
from likewise.networks.inputs.transforms import from_callable

pytestmark = pytest.mark.usefixtures("vision")


def test_a_batch_for_one_network_is_fitted_to_another_whole() -> None:
    images = torch.rand(2, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    published = likewise.network("timm:test_vit,pretrained=false")
    shown = resize_for(published, images)
    larger = nn.functional.interpolate(images, (160, 160), mode="bilinear", antialias=True)
    torch.testing.assert_close(shown, larger.clamp(0, 1).expand(-1, 3, -1, -1), rtol=0, atol=1e-6)
    for any_size in (nn.Flatten(), likewise.network("zoo:resnet20", channels=1)):
        assert resize_for(any_size, images) is images
    assert resize_for(published, ["a text"]) == ["a text"]


def test_a_batch_is_fitted_by_a_persons_transform_where_that_is_the_networks_own() -> None:
    def halved(image: Any) -> Tensor:
        return torch.from_numpy(np.array(image, dtype=np.float32))[None, :, :, 0] / 510

    net = nn.Flatten()
    record_transform(net, from_callable(halved))
    images = torch.tensor([0.0, 1.0]).view(2, 1, 1, 1).expand(2, 1, 4, 4)
    torch.testing.assert_close(resize_for(net, images), images / 2)
