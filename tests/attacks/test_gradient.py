"""Projected gradient descent: within its bounds, stronger with more steps, and gone without a trace."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from likewise.attacks import pgd
from likewise.errors import InputError
from tests.attacks.helpers import Small, digits, small


def loss(net: nn.Module, images: Tensor, labels: Tensor) -> float:
    net.eval()
    with torch.no_grad():
        return float(functional.cross_entropy(net(images), labels))


@settings(deadline=None, max_examples=20)
@given(st.floats(0.001, 0.5), st.floats(0.001, 1), st.integers(0, 4), st.booleans(), st.integers(0, 99))
def test_images_move_no_further_than_eps_and_stay_images(
    eps: float, step: float, iterations: int, random_start: bool, seed: int
) -> None:
    images, labels = digits()
    moved, *_ = pgd(
        small(),
        images[:20],
        labels[:20],
        eps=eps,
        step=step,
        iterations=iterations,
        random_start=random_start,
        seed=seed,
    )
    assert moved.shape == images[:20].shape
    assert float((moved - images[:20]).abs().max()) <= eps + 1e-6  # one digit of a float near 1
    assert 0 <= float(moved.min()) <= float(moved.max()) <= 1


def test_without_steps_nothing_moves() -> None:
    images, labels = digits()
    still, *_ = pgd(small(), images, labels, iterations=0, random_start=False)
    assert torch.equal(still, images)


def test_one_step_follows_the_sign_of_the_gradient() -> None:
    net, (images, labels) = small(), digits()
    inner = images * 0.5 + 0.25  # no image touches 0 or 1
    moved, *_ = pgd(net, inner, labels, eps=0.1, step=0.01, iterations=1, random_start=False)
    net.eval()
    for i in range(5):
        one = inner[i : i + 1].clone().requires_grad_(True)
        functional.cross_entropy(net(one), labels[i : i + 1]).backward()
        torch.testing.assert_close(moved[i : i + 1], inner[i : i + 1] + 0.01 * one.grad.sign())


def test_the_loss_grows_with_the_number_of_steps() -> None:
    net, (images, labels) = small(), digits()
    clean = loss(net, images, labels)
    losses = []
    for iterations in (1, 3, 10):
        moved, *_ = pgd(net, images, labels, eps=0.1, step=0.02, iterations=iterations)
        losses.append(loss(net, moved, labels))
    assert clean < losses[0] < losses[1] < losses[2]
    assert losses[2] > 2 * clean


def test_without_labels_it_leads_away_from_what_the_network_answers() -> None:
    net, (images, _) = small(), digits()
    net.eval()
    answers = net(images).argmax(dim=1)
    moved, before, _ = pgd(net, images, eps=0.3, step=0.05, iterations=10)
    assert torch.equal(before, answers)
    assert torch.equal(moved, pgd(net, images, answers, eps=0.3, step=0.05, iterations=10)[0])
    assert (net(moved).argmax(dim=1) != answers).float().mean() > 0.5


def test_a_seed_gives_the_same_attack_and_leaves_other_draws_alone() -> None:
    net, (images, labels) = small(), digits()
    state = torch.get_rng_state()
    first, again, other = (pgd(net, images, labels, seed=seed)[0] for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), state)


def frozen() -> Small:
    """A network that is trained but for two parts, as in fine-tuning."""
    net = small()
    net.train()
    net.norm.eval()
    net.hidden.requires_grad_(False)
    return net


def facts(net: nn.Module) -> dict[str, object]:
    modes = {f"{name} trains": part.training for name, part in net.named_modules()}
    needs = {f"{name} needs a slope": p.requires_grad for name, p in net.named_parameters()}
    slopes = {f"{name} has one": p.grad is not None for name, p in net.named_parameters()}
    values = {name: value.tolist() for name, value in net.state_dict().items()}
    return modes | needs | slopes | values


@pytest.mark.parametrize("make", [small, frozen, lambda: small().eval()], ids=["training", "frozen", "not"])
def test_the_network_is_left_as_it_was(make: type[Small]) -> None:
    net, (images, labels) = make(), digits()
    before = facts(net)
    pgd(net, images, labels)
    assert facts(net) == before


def test_the_images_and_labels_are_left_as_they_were() -> None:
    images, labels = (part.clone() for part in digits())
    moved, truth, _ = pgd(small(), images, labels)
    assert torch.equal(images, digits()[0])
    assert not images.requires_grad
    assert not moved.requires_grad
    assert torch.equal(truth, digits()[1])


@pytest.mark.parametrize("failing", [1, 2])
def test_the_network_is_left_as_it_was_when_it_fails(failing: int) -> None:
    net, (images, _) = frozen(), digits()
    before = facts(net)
    calls = []

    def fail(*_: object) -> None:
        calls.append(1)
        if len(calls) >= failing:
            raise RuntimeError("out of memory")

    hook = net.fc.register_forward_pre_hook(fail)
    with pytest.raises(RuntimeError, match=r"^out of memory$"):
        pgd(net, images)
    hook.remove()
    assert facts(net) == before


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
def test_it_works_where_gradients_are_off(mode: type[torch.no_grad]) -> None:
    net, (images, labels) = frozen(), digits()
    before = facts(net)
    expected, *_ = pgd(net, images, labels, eps=0.1, step=0.02, iterations=3)
    with mode():
        inside = images * 1.0  # made there, it can have no gradient
        found, *_ = pgd(net, inside, labels, eps=0.1, step=0.02, iterations=3)
        alone, *_ = pgd(net, inside, eps=0.1, step=0.02, iterations=3)
        assert not torch.is_grad_enabled()
    assert torch.equal(found, expected)
    assert alone.shape == images.shape
    assert facts(net) == before
    functional.cross_entropy(net(images), labels).backward()  # training goes on
    assert net.fc.weight.grad is not None


@pytest.mark.parametrize(
    "images",
    [
        torch.full((1, 1, 2, 2), 1.5),
        torch.full((1, 1, 2, 2), -0.1),
        torch.ones(1, 1, 2, 2).int(),
        {"pixel_values": torch.ones(1, 1, 2, 2)},
    ],
    ids=["above 1", "below 0", "whole numbers", "what a processor gives"],
)
def test_only_images_between_0_and_1_are_attacked(images: Any) -> None:
    net = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    with pytest.raises(InputError) as error:
        pgd(net, images)
    assert str(error.value) == "an attack needs images as floats between 0 and 1. Scale them first."
    assert net.training


@pytest.mark.parametrize("targeted", [False, True])
def test_early_stop_leaves_each_image_where_it_first_fools(targeted: bool) -> None:
    net, (images, labels) = small().eval(), digits()
    aims = (labels + 1) % 10 if targeted else labels
    options = {"eps": 0.4, "step": 0.02, "random_start": False, "targeted": targeted, "exact": True}
    found = pgd(net, images, aims, **options, iterations=12, early_stop=True).images
    expected, left = images.clone(), torch.ones(len(images), dtype=torch.bool)
    with torch.no_grad():
        for count in range(13):  # the slow way: every number of steps by itself
            moved = pgd(net, images, aims, **options, iterations=count).images
            expected[left] = moved[left]
            left &= (net(moved).argmax(dim=1) == aims) != targeted
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)
    full = pgd(net, images, aims, **options, iterations=12).images
    assert not torch.equal(found, full)


def test_early_stop_shows_the_network_only_what_does_not_fool_it_yet() -> None:
    net, (images, labels), shown = small(), digits(), []
    net.register_forward_pre_hook(lambda _, given: shown.append(len(given[0])))
    pgd(net, images, labels, eps=0.4, step=0.02, iterations=8, early_stop=True, exact=True)
    assert shown[:2] == [300, 300]  # the check of labels, and the first step
    assert shown[1:] == sorted(shown[1:], reverse=True)
    assert shown[-1] < 200
