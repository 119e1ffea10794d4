"""Generators that are trained: what they learn, what they leave alone, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from likewise import attacks
from likewise.attacks import ImageGenerator, train_generator
from likewise.errors import InputError
from tests.attacks.helpers import digits, small

EPS = 0.3


def cosine(net: nn.Module, images: Tensor, model: nn.Module) -> float:
    """What the generator lowers, computed anew."""
    with torch.no_grad():
        moved = attacks.get("generator")(net, images, generator=model, eps=EPS).images
        before, after = (net.eval().hidden(shown.flatten(1)) for shown in (images, moved))
        return float(functional.cosine_similarity(before, after, dim=1).mean())


def test_training_turns_the_layer_away_from_the_clean_images() -> None:
    net, (images, labels) = small(), digits()
    weights = {name: value.clone() for name, value in net.state_dict().items()}
    state = torch.get_rng_state()
    model = train_generator(net, images, "hidden", eps=EPS, epochs=3, lr=2e-3, width=4)
    assert torch.equal(torch.get_rng_state(), state)
    assert net.training
    assert all(torch.equal(weights[name], value) for name, value in net.state_dict().items())
    with torch.random.fork_rng():
        torch.manual_seed(0)
        untrained = ImageGenerator(1, 4).eval()
    assert cosine(net, images, model) < cosine(net, images, untrained) - 0.1
    moved = attacks.get("generator")(net, images, labels, generator=model, eps=EPS).images
    with torch.no_grad():
        answers, clean = net.eval()(moved).argmax(dim=1), net(images).argmax(dim=1)
    assert float((answers != labels).float().mean()) > float((clean != labels).float().mean()) + 0.1


def test_the_same_seed_gives_the_same_generator() -> None:
    images, _ = digits()
    one, two = (train_generator(small(), images[:32], "hidden", width=4, seed=3).state_dict() for _ in range(2))
    assert all(torch.equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize(
    ("layer", "options", "sentence"),
    [
        ("hiden", {}, "Small has no layer 'hiden'. Did you mean 'hidden'? Give a module by name."),
        (None, {}, "Small has no layer None. Give a module by name."),
        ("hidden", {"epochs": 0}, "epochs must be a whole number of at least 1, got 0."),
        ("hidden", {"batch_size": 1.5}, "batch_size must be a whole number of at least 1, got 1.5."),
        ("hidden", {"lr": -1.0}, "lr is -1.0. Give a number above 0."),
        ("hidden", {"lr": "fast"}, "lr is 'fast'. Give a number above 0."),
        ("hidden", {"eps": 0.0}, "eps is 0.0, and nothing changes within that. Give a number above 0, like 8/255."),
        ("hidden", {"eps": "8"}, "eps is '8', and nothing changes within that. Give a number above 0, like 8/255."),
    ],
)
def test_what_cannot_be_trained_is_said(layer: str, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as error:
        train_generator(small(), digits()[0][:8], layer, **options)
    assert str(error.value) == sentence


def test_a_generator_needs_images() -> None:
    with pytest.raises(InputError) as error:
        train_generator(small(), digits()[0][:8].flatten(1), "hidden")
    assert str(error.value) == "a generator was shown (8, 64). Give images (n, channels, height, width)."
