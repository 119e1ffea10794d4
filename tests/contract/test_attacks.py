"""What holds for every attack of the registry: near its images, seeded, without a trace, and plain about bad input."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from likewise import attacks
from likewise.attacks.registry import Adversarial
from likewise.attacks.steps import Ball
from likewise.errors import InputError, OptionError
from likewise.networks.address import network
from likewise.transfer.examples import AttackSettings

FEW: dict[str, dict[str, Any]] = {  # what keeps an attack short
    "vmi-fgsm": {"iterations": 2, "neighbours": 2},
    "apgd-ce": {"iterations": 4},
    "apgd-t": {"iterations": 3, "targets": 2},
    "fab-t": {"iterations": 3, "targets": 2},
    "square": {"queries": 4},
    "autoattack": {"iterations": 3, "targets": 2, "queries": 4},
    "patch-fool": {"iterations": 3},
    "generator": {"generator": nn.Sigmoid()},
    "pixel": {"pixels": 4, "generations": 2, "population": 8},
    "threshold": {"generations": 2, "population": 8},
}
NAMES = attacks.names()
WITH_EPS = [name for name in NAMES if "eps" in attacks.get(name).options]
GRADIENTS = [name for name in NAMES if "exact" in attacks.get(name).options]


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def subject() -> nn.Module:
    """A small vision transformer, which all attacks can run on, in training but for one part."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = network("zoo:vit-tiny,depth=3,width=16,heads=2,size=16").train()
    with torch.no_grad():
        for weight in net.parameters():
            weight *= 2
    net.norm.eval()
    net.fc.requires_grad_(False)
    return net


def images(n: int = 3) -> Tensor:
    return torch.rand(n, 3, 16, 16, generator=torch.Generator().manual_seed(7))


def run(name: str, net: nn.Module, shown: Any, labels: Any = None, **options: Any) -> Adversarial:
    return attacks.get(name)(net, shown, labels, **FEW.get(name, {}) | options)


def test_images_stay_within_the_ball_and_within_0_and_1(name: str) -> None:
    shown, options = images(), attacks.get(name).options
    eps = {"eps": 0.03} if "eps" in options else {}
    moved = run(name, subject(), shown, **eps).images
    assert moved.shape == shown.shape
    assert moved.dtype == shown.dtype
    assert not moved.requires_grad
    assert 0 <= float(moved.min()) <= float(moved.max()) <= 1
    assert not torch.equal(moved, shown)
    if eps:
        assert float((moved - shown).abs().max()) <= 0.03 + 1e-6
    elif "threshold" in options:  # images between two grey levels are rounded first
        assert float((moved - shown).abs().max()) <= (options["threshold"] + 0.5) / 255 + 1e-6
    else:  # four pixels, or a patch of 2 × 2
        assert (moved != shown).any(dim=1).flatten(1).sum(dim=1).tolist() == [4, 4, 4]


def test_the_same_seed_gives_the_same_images_and_leaves_other_draws_alone(name: str) -> None:
    state = torch.get_rng_state()
    net, seeds = subject(), [{"seed": 3}] * 2 if "seed" in attacks.get(name).options else [{}] * 2
    first, again = (run(name, net, images(), **seed).images for seed in seeds)
    assert torch.equal(first, again)
    assert torch.equal(torch.get_rng_state(), state)


def facts(net: nn.Module) -> dict[str, Any]:
    modes = {f"{at} trains": part.training for at, part in net.named_modules()}
    hooks = {f"{at} is watched": bool(part._forward_hooks) for at, part in net.named_modules()}
    slopes = {f"{at} learns": (weight.requires_grad, weight.grad) for at, weight in net.named_parameters()}
    return modes | hooks | slopes | {at: value.tolist() for at, value in net.state_dict().items()}


def test_the_network_and_the_images_are_left_as_they_were(name: str) -> None:
    net, shown = subject(), images()
    before = facts(net)
    run(name, net, shown)
    assert facts(net) == before
    assert torch.equal(shown, images())


def test_without_labels_they_are_what_the_network_answers(name: str) -> None:
    net, shown = subject(), images()
    with torch.no_grad():
        answers = net.eval()(shown).argmax(dim=1)
    alone, told = run(name, net, shown), run(name, net, shown, answers)
    assert torch.equal(alone.labels, answers)
    assert torch.equal(alone.images, told.images)
    assert alone.stalled.tolist() == told.stalled.tolist() == [0, 0, 0]


@pytest.mark.parametrize("value", [1.5, -0.1, float("nan")])
def test_images_out_of_range_are_refused(name: str, value: float) -> None:
    shown = images()
    shown[1, 0, 3, 3] = value
    with pytest.raises(InputError) as error:
        run(name, subject(), shown)
    assert str(error.value) == "an attack needs images as floats between 0 and 1. Scale them first."


def test_no_images_are_refused(name: str) -> None:
    with pytest.raises(InputError) as error:
        run(name, subject(), images()[:0])
    assert str(error.value) == "there are no images to attack. Give at least one."


@pytest.mark.parametrize("eps", [0, -0.1, float("nan"), float("inf")])
@pytest.mark.parametrize("attack", WITH_EPS)
def test_eps_has_to_be_above_0(attack: str, eps: float) -> None:
    with pytest.raises(InputError) as error:
        run(attack, subject(), images(), eps=eps)
    assert str(error.value) == f"eps is {eps}, and nothing changes within that. Give a number above 0, like 8/255."


@pytest.mark.parametrize("attack", WITH_EPS)
def test_eps_in_grey_levels_is_refused(attack: str) -> None:
    with pytest.raises(InputError) as error:
        run(attack, subject(), images(), eps=8)
    assert str(error.value) == "eps is 8, and values of images run from 0 to 1. Give it in these, like 8/255."


def test_a_distance_of_all_values_together_may_be_above_1() -> None:
    assert Ball(2, "L2").eps == AttackSettings.of("pgd", {"eps": 2, "norm": "L2"}, 0, 8).options["eps"]


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (torch.zeros(2).long(), "int64 of shape (2,)"),
        (torch.zeros(3), "float32 of shape (3,)"),
        (torch.tensor([0, -1, 2]), "numbers from -1 to 2"),
        (torch.full((3,), 12), "numbers from 12 to 12"),
    ],
)
def test_labels_of_another_kind_are_refused(name: str, labels: Tensor, kind: str) -> None:
    with pytest.raises(InputError) as error:
        run(name, subject(), images(), labels)
    assert str(error.value) == (
        f"labels must be 3 whole numbers from 0 to 9, got {kind}. Give one class index per input."
    )


@pytest.mark.parametrize("shape", [(3,), (3, 1), (3, 10, 16), (6, 10)])
def test_a_network_that_does_not_classify_is_refused(name: str, shape: tuple[int, ...]) -> None:
    class Odd(nn.Module):
        def forward(self, shown: Tensor) -> Tensor:
            return shown.flatten(1).repeat(10, 1).flatten()[: torch.Size(shape).numel()].view(shape)

    with pytest.raises(InputError) as error:
        run(name, Odd(), images())
    assert str(error.value) == (
        f"Odd answers 3 images with {shape}, not with one row of two logits or more each. Attack a network that "
        "classifies."
    )


@pytest.mark.parametrize("attack", GRADIENTS)
def test_gradients_that_are_not_there_or_not_finite_are_said(attack: str) -> None:
    class Broken(nn.Module):
        def __init__(self, infinite: bool) -> None:
            super().__init__()
            self.infinite = infinite

        def forward(self, shown: Tensor) -> Tensor:
            flat = shown.flatten(1)[:, :10]
            return flat + (flat - flat).sqrt() if self.infinite else flat.detach()

    with pytest.raises(InputError) as infinite:
        run(attack, Broken(True), images())
    assert str(infinite.value) == (
        "the gradient of Broken is not finite for 3 of 3 images. Attack another network, or leave those images out."
    )
    with pytest.raises(InputError) as absent:
        run(attack, Broken(False), images())
    assert str(absent.value) == (
        "the answers of Broken have no gradient, so nothing says how to change the images. Give a network that "
        "computes them from the images in torch, without detach or numpy."
    )


def test_options_are_those_of_the_signature(name: str) -> None:
    found = attacks.get(name)
    assert all(option in found.options for option in FEW.get(name, {}))
    with pytest.raises(OptionError) as error:
        run(name, subject(), images(), epps=1)
    assert str(error.value).startswith(f"{name} has no option 'epps'.")
    assert str(error.value).endswith(f" Its options are {', '.join(found.options)}.")
