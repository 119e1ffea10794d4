"""The zoo: the networks are the published ones, and say what they cannot be shown."""

from __future__ import annotations

import pytest
import torch

import likewise
from likewise.errors import OptionError
from likewise.networks import head
from likewise.networks.zoo import ZOO
from tests.networks.helpers import refused

DEEPER = {f"resnet{depth}{kind}" for depth in (32, 44, 56, 110) for kind in ("", "-b")}


# a deeper one of the same kind would only be slower
IMAGE_NAMES = [entry.name for entry in ZOO if entry.domain == "image" and entry.name not in DEEPER]


HEAVY = {"wideresnet", "densenet"}  # slow at 64 pixels


def parameters(name: str, **options: object) -> int:
    return sum(p.numel() for p in ZOO.get(name).make(**options).parameters())


@pytest.mark.parametrize(
    ("name", "options", "count"),
    [
        # Raw Zero-Shot, counted in the paper's code
        ("lenet", {}, 62_458),
        ("nin", {}, 969_822),
        ("allconv", {}, 1_701_706),
        ("resnet32-pre", {}, 467_946),
        ("wideresnet", {"project_every": True}, 11_310_826),
        ("densenet", {"last_transition": True}, 826_276),
        ("capsnet", {"decoder": False}, 8_675_840),
        ("capsnet", {}, 8_675_840 + 3_682_816),
        # the published CIFAR-10 networks
        ("resnet20", {}, 269_722),
        ("resnet56", {}, 853_018),
        ("resnet20-b", {}, 272_474),
        ("resnet56-b", {}, 855_770),
        ("vit-tiny-post", {}, 811_146),
        ("conv-mlp", {}, 42_634),
        ("lmfrnet", {}, 520_802),
        ("shufflenetv2-x0-5", {}, 352_042),
        # ReSi's, counted by hand: 9 k_in k_out + k_out per convolution, twice k_out for its normalisation, 513 classes
        ("vgg11", {}, 9_231_114),
        ("vgg19", {}, 20_040_522),
        # He et al. 2015, table 6: 1.7 million
        ("resnet110", {}, 1_727_962),
        # Huang et al. 2016, table 2: 0.8 million
        ("densenet", {}, 769_162),
    ],
)
def test_a_network_has_as_many_parameters_as_was_published(name: str, options: dict[str, object], count: int) -> None:
    assert parameters(name, **options) == count


@pytest.mark.parametrize(
    ("name", "count"),
    [
        # 3 × 25 · 24 + 24, 24 · 20 + 20, 20 · 12 + 12; 12 · 25 · 24 + 24, 2 (24 · 24 + 24); 24 · 9 · 24 + 24,
        # 24 · 24 + 24, 24 · 10 + 10; two numbers of batch normalisation per channel
        ("nin", 1824 + 500 + 252 + 7224 + 1200 + 5208 + 600 + 250 + 2 * (24 + 20 + 12 + 72 + 48 + 10)),
        # of 24 and 48 channels: 3 · 9 · 24, 2 (24 · 9 · 24), 24 · 9 · 48, 4 (48 · 9 · 48), 48 · 48, 48 · 10; biases
        ("allconv", 648 + 10368 + 10368 + 82944 + 2304 + 480 + 3 * 24 + 6 * 48 + 10),
    ],
)
def test_a_narrower_network_keeps_its_layers(name: str, count: int) -> None:
    assert parameters(name, width=24) == count


@pytest.mark.parametrize("name", IMAGE_NAMES)
@pytest.mark.parametrize(("size", "channels"), [(8, 1), (28, 1), (32, 3), (64, 3)])
def test_every_image_network_takes_small_images(name: str, size: int, channels: int) -> None:
    if size == 64 and name in HEAVY:
        size = 40
    wanted = {"size": size, "channels": channels, "classes": 7}
    options = {key: value for key, value in wanted.items() if key in ZOO.get(name).options}
    net = likewise.network(f"zoo:{name}", **options)
    with torch.inference_mode():
        logits = net(torch.rand(2, channels, size, size))
    assert logits.shape == (2, 7)
    assert torch.isfinite(logits).all()


@pytest.mark.parametrize("name", [name for name in IMAGE_NAMES if name not in HEAVY])
def test_an_answer_does_not_depend_on_the_rest_of_the_batch(name: str) -> None:
    net = likewise.network(f"zoo:{name}")
    images = torch.rand(3, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        together = net(images)
        alone = torch.cat([net(image[None]) for image in images])
    torch.testing.assert_close(together, alone, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", [n for n in IMAGE_NAMES if n not in {"capsnet", "nin", "allconv"}])
def test_the_head_turns_the_penultimate_representation_into_the_logits(name: str) -> None:
    net = likewise.network(f"zoo:{name}")
    found = head(net)
    seen: list[torch.Tensor] = []
    layer = net.get_submodule(found.layer_name)
    layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    with torch.inference_mode():
        logits = net(torch.rand(2, 3, 32, 32))
    again = seen[0] @ found.weight.T + (0 if found.bias is None else found.bias)
    torch.testing.assert_close(again, logits)


@pytest.mark.parametrize(("name", "layer"), [("nin", "block3.2.conv"), ("allconv", "conv10")])
def test_a_head_of_one_by_one_windows_is_a_matrix(name: str, layer: str) -> None:
    found = head(likewise.network(f"zoo:{name}"))
    assert (found.layer_name, found.weight.shape) == (layer, (10, 192))


def test_images_of_the_wrong_size_are_refused() -> None:
    assert refused(lambda: likewise.network("zoo:lenet")(torch.rand(4, 3, 28, 28))) == (
        "LeNet was built for square images of 3 channels and 32 × 32 pixels, and was shown "
        "(4, 3, 28, 28). Build it for these images: channels=, size=."
    )


def test_images_of_the_wrong_channels_are_refused() -> None:
    assert refused(lambda: likewise.network("zoo:resnet20")(torch.rand(4, 1, 28, 28))) == (
        "ResNet was built for square images of 3 channels and any size, and was shown "
        "(4, 1, 28, 28). Build it for these images: channels=, size=."
    )


def test_an_unknown_option_is_refused_with_the_known_ones() -> None:
    assert refused(lambda: likewise.network("zoo:lenet,depth=3"), OptionError) == (
        "zoo:lenet has no option 'depth'. It takes channels, size, classes."
    )
