"""`torchvision:NAME`: classifiers, detectors, segmenters and video networks, with published weights."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import likewise
from likewise.errors import (
    MissingDataError,
)
from likewise.networks import Normalised
from likewise.networks.forward import call
from tests.networks.helpers import refused

pytestmark = pytest.mark.usefixtures("vision")


@pytest.mark.parametrize("name", ["raft_small", "quantized_resnet18"])
def test_what_torchvision_has_without_an_address_is_not_denied(name: str) -> None:
    assert refused(lambda: likewise.network(f"torchvision:{name}")) == (
        f"torchvision's {name!r} has no address: only classifiers, detectors, segmenters and video networks have "
        f"one. Build it and pass the module: torchvision.models.get_model({name!r}, weights='DEFAULT')."
    )


def test_a_segmenter_is_normalised_and_fetches_no_backbone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    net = likewise.network("torchvision:lraspp_mobilenet_v3_large,pretrained=false", classes=4)
    assert isinstance(net, Normalised)
    assert net(torch.rand(1, 3, 64, 64))["out"].shape == (1, 4, 64, 64)
    assert list(tmp_path.rglob("*.pth")) == []


def test_a_detector_normalises_by_itself_and_says_where_it_cannot_run() -> None:
    from torchvision.extension import _has_ops

    net = likewise.network("torchvision:ssdlite320_mobilenet_v3_large,pretrained=false", classes=3)
    assert type(net).__name__ == "SSD"
    assert net.transform.image_mean == [0.5, 0.5, 0.5]
    assert refused(lambda: call(net.train(), torch.rand(1, 3, 64, 64))) == (
        "SSD learns from boxes, not from one label per input. Use a network that classifies."
    )
    net.eval()
    if _has_ops():
        return
    assert refused(lambda: call(net, torch.rand(1, 3, 64, 64))) == (
        "SSD cannot run: the compiled operators of torchvision do not load with this build of torch. Install the "
        "torchvision made for it; class layer and class names need no run."
    )


def test_a_network_of_videos_is_normalised_by_channel_and_refuses_images() -> None:
    net = likewise.network("torchvision:r3d_18,pretrained=false", classes=3)
    videos = torch.rand(2, 3, 4, 16, 16)
    mean, std = torch.tensor([0.43216, 0.394666, 0.37645]), torch.tensor([0.22803, 0.22145, 0.216989])
    by_hand = torch.stack([(videos[:, c] - mean[c]) / std[c] for c in range(3)], dim=1)
    with torch.no_grad():
        torch.testing.assert_close(net(videos), net.net(by_hand))
    assert refused(lambda: net(torch.rand(2, 3, 16, 16))) == (
        "VideoResNet takes videos, (n, 3, frames, height, width), and was shown (2, 3, 16, 16). Give it videos, or "
        "take a network of images."
    )


def test_torchvision_networks_take_images_in_0_1() -> None:
    net = likewise.network("torchvision:resnet18,pretrained=false", classes=5)
    assert isinstance(net, Normalised)
    assert net(torch.rand(1, 3, 64, 64)).shape == (1, 5)


def test_weights_that_cannot_be_fetched_say_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # nothing listens there
    assert refused(lambda: likewise.network("torchvision:squeezenet1_1"), MissingDataError) == (
        "the weights of torchvision:squeezenet1_1 are not here and cannot be downloaded "
        "(URLError). Add '@weights.safetensors', or take it untrained: "
        "'torchvision:squeezenet1_1,pretrained=false'."
    )


def test_a_transformer_without_weights_is_shown_images_of_the_size_it_is_built_for() -> None:
    from likewise.networks.inputs.normalisation import transform_of

    with torch.device("meta"):  # it has 632 million weights
        net = likewise.network("torchvision:vit_h_14,pretrained=false")
    transform = transform_of(net)
    assert transform is not None
    assert transform.size == (224, 224)  # its default weights are for 518
