"""Adversarial training: examples of every batch from the network as it is then; same seed, same weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import likewise
from likewise import attacks
from likewise.attacks.training import attacked_batch
from likewise.errors import ForwardError, InputError, OptionError, UnknownNameError
from likewise.networks import train
from tests.attacks.helpers import Small
from tests.networks.helpers import DATA, same, settings

PGD = {"attack": "pgd", "eps": 0.1, "iterations": 3}


def fresh() -> Small:
    torch.manual_seed(3)
    return Small()


def by_hand(net: nn.Module, images: Tensor, labels: Tensor, seed: int, step: float) -> Tensor:
    """PGD of three steps within 0.1, in the network's evaluation mode."""
    net.eval()
    noise = torch.rand(images.shape, generator=torch.Generator().manual_seed(seed))
    moved = (images + (2 * noise - 1) * 0.1).clamp(0, 1)
    for _ in range(3):
        moved.requires_grad_(True)
        (slope,) = torch.autograd.grad(functional.cross_entropy(net(moved), labels, reduction="sum"), moved)
        change = (moved.detach() + step * slope.sign() - images).clamp(-0.1, 0.1)
        moved = (images + change).clamp(0, 1)
    net.train()
    return moved


@pytest.mark.parametrize(
    ("given", "step"), [({}, 0.1 * 2.5 / 3), ({"step": 0.02}, 0.02), ({"relative_step": 0.5}, 0.05)]
)
def test_one_epoch_is_that_of_a_loop_written_by_hand(given: dict[str, float], step: float) -> None:
    data = likewise.dataset("digits:train[:96]")
    trained = train(fresh(), data, epochs=1, seed=5, lr=0.1, batch_size=32, adversarial=PGD | given).net

    net = fresh().train()
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)
    torch.manual_seed(5 * 1_000_003)
    shuffle = int(torch.randint(2**31, ()))
    for i, (images, labels) in enumerate(data.batches(32, shuffle=shuffle)):
        draw = torch.Generator().manual_seed(int(torch.randint(2**31, ())))
        seed = int(torch.randint(2**31, (), generator=draw))
        moved = by_hand(net, images, labels, seed, step)
        optimiser.param_groups[0]["lr"] = 0.05 * (
            1 + torch.cos(torch.tensor(torch.pi * i / 3, dtype=torch.double)).item()
        )
        optimiser.zero_grad()
        functional.cross_entropy(net(moved), labels).backward()
        optimiser.step()
    ours, theirs = trained.state_dict(), net.state_dict()
    assert int(ours["norm.num_batches_tracked"]) == 3  # the attack has moved no statistics
    for name, value in ours.items():
        torch.testing.assert_close(value, theirs[name], rtol=1e-5, atol=1e-6)


def test_the_same_seed_gives_the_same_weights_and_the_attack_others() -> None:
    first, again, weaker, plain = (
        train("zoo:lenet", DATA, **settings(augment="crop", adversarial=adversarial)).net
        for adversarial in (PGD, PGD, PGD | {"eps": 0.05}, None)
    )
    assert same(first, again)
    assert not same(first, weaker)
    assert not same(first, plain)


def test_a_network_trained_on_attacked_inputs_withstands_them() -> None:
    data, held_out = likewise.dataset("digits:train[:600]"), likewise.dataset("digits:test[:200]")
    images, labels = held_out.inputs[:], held_out.labels

    def withstood(adversarial: Mapping[str, Any] | None) -> float:
        net = train("zoo:mlp", data, **settings(epochs=8, adversarial=adversarial)).net
        moved = attacks.pgd(net, images, labels, eps=0.1, iterations=10, relative_step=0.25).images
        return float((net(moved).argmax(dim=1) == labels).float().mean())

    assert withstood(PGD) > withstood(None) + 0.1


def test_modes_and_frozen_weights_are_left_as_they_were() -> None:
    net = fresh()
    net.hidden.weight.requires_grad_(False)
    before, seen = net.hidden.weight.clone(), []
    net.norm.register_forward_hook(lambda module, given, found: seen.append(module.training))
    train(net, "digits:train[:32]", epochs=1, lr=0.1, adversarial=PGD)
    assert torch.equal(net.hidden.weight, before)
    assert [name for name, weight in net.named_parameters() if not weight.requires_grad] == ["hidden.weight"]
    assert seen.count(True) == 1  # the one pass that is learned from
    assert seen[-1] is True


@pytest.mark.parametrize("attack", [name for name in attacks.names() if attacks.get(name).trains])
def test_every_attack_that_trains_does(attack: str) -> None:
    given = {"attack": attack, "iterations": 1} if "iterations" in attacks.get(attack).options else {"attack": attack}
    done = train("zoo:mlp", "digits:train[:16]", epochs=1, lr=0.1, adversarial=given)
    assert done.history[0]["loss"] > 0


@pytest.mark.parametrize(
    ("given", "whole"),
    [
        ({}, {"attack": "pgd", "eps": 8 / 255, "iterations": 10, "relative_step": 0.25}),
        ({"attack": "PGD", "steps": 5}, {"attack": "pgd", "eps": 8 / 255, "iterations": 5, "relative_step": 0.5}),
        ({"step": 0.01, "norm": "Linf"}, {"attack": "pgd", "eps": 8 / 255, "iterations": 10, "step": 0.01}),
        ({"attack": "fgsm", "eps": 0.1, "exact": True}, {"attack": "fgsm", "eps": 0.1}),
        ({"attack": "fgsm", "exact": False}, {"attack": "fgsm", "eps": 8 / 255, "exact": False}),
        ({"attack": "MIM", "decay": 0.5}, {"attack": "mi-fgsm", "eps": 8 / 255, "iterations": 10, "decay": 0.5}),
    ],
)
def test_what_is_not_said_of_an_attack_is_usual(given: dict[str, Any], whole: dict[str, Any]) -> None:
    assert attacked_batch(given).record == whole


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"attack": "pdg"}, "no attack named 'pdg'. Did you mean 'pgd'?"),
        ({"attack": 3}, "the attack to train against is 3. Give its name, such as 'pgd'."),
        (
            {"attack": "fgsm", "esp": 0.1},
            "fgsm has no option 'esp'. Did you mean 'eps'? Its options are eps, targeted, exact.",
        ),
        ({"attack": "fgsm", 3: 4}, "fgsm has no option 3. Its options are eps, targeted, exact."),
        ({"eps": "8/255"}, "pgd: eps is '8/255'. Give a number."),
        ({"seed": 3}, "seed follows from the seed of the training. Leave it out of adversarial."),
        ({"targeted": True}, "targeted would lead to the labels, not away. Leave it out of adversarial."),
        (
            {"attack": "autoattack"},
            "autoattack makes no examples to train on. Choose another attack, such as 'pgd'.",
        ),
        ({"eps": 0}, "eps is 0, and nothing changes within that. Give a number above 0, like 8/255."),
        ({"step": 0.1, "relative_step": 0.1}, "the step is given twice. Leave out step or relative_step."),
    ],
)
def test_an_attack_that_cannot_be_meant_is_refused_before_anything_is_learned(
    given: dict[Any, Any], sentence: str
) -> None:
    net = fresh()
    with pytest.raises((InputError, OptionError, UnknownNameError)) as error:
        train(net, DATA, epochs=1, adversarial=given)
    assert str(error.value) == sentence
    assert same(net, fresh())


def test_an_attack_that_needs_an_option_says_so() -> None:
    @attacks.attack(name="by-strength", norm="Linf", source="by hand")
    def by_strength(net: nn.Module, images: Tensor, labels: Tensor | None = None, *, strength: float) -> Any:
        """Darker images."""
        return images * strength, labels

    try:
        with pytest.raises(OptionError) as error:
            train("zoo:mlp", DATA, epochs=1, adversarial={"attack": "by-strength"})
        assert str(error.value) == "by-strength needs the option 'strength'. Give it in adversarial."
        given = {"attack": "by-strength", "strength": 0.5}
        darker = train("zoo:mlp", DATA, epochs=1, adversarial=given).net
        assert same(darker, train("zoo:mlp", DATA, epochs=1, augment=[lambda images, _: images * 0.5]).net)
    finally:
        attacks.ATTACKS.remove("by-strength")


@pytest.mark.parametrize("mixed", ["mixup", "cutmix"])
def test_mixed_inputs_are_not_attacked(mixed: str) -> None:
    with pytest.raises(InputError) as error:
        train("zoo:mlp", DATA, epochs=1, adversarial=PGD, **{mixed: 0.2})  # type: ignore[arg-type]
    assert str(error.value) == (
        "mixed inputs have no one label to be led away from. Leave out adversarial, or mixup and cutmix."
    )


def test_texts_are_not_attacked() -> None:
    data = likewise.data.Data("t", "text", ["a", "b"], [0, 1], ("x", "y"))
    with pytest.raises(InputError) as error:
        train(nn.Linear(2, 2), data, epochs=1, adversarial=PGD)
    assert str(error.value) == "text inputs cannot be attacked. Leave out adversarial."


def test_a_step_of_ones_own_is_not_attacked_in_silence() -> None:
    def step(net: nn.Module, batch: Any) -> Any:
        raise AssertionError

    with pytest.raises(InputError) as error:
        train("zoo:mlp", DATA, epochs=1, adversarial=PGD, step=step)
    assert str(error.value) == "a step of your own takes no teacher and no adversarial. Leave them out, or the step."


def test_what_is_wrong_with_the_network_is_said_as_in_any_training() -> None:
    few = likewise.network("zoo:mlp", channels=1, size=8, classes=3)
    with pytest.raises(InputError) as error:
        train(few, DATA, epochs=1, adversarial=PGD)
    assert str(error.value) == f"the network answers with 3 classes and {DATA!r} has 10. Build it with classes=10."
    narrow = nn.Sequential(nn.Flatten(), nn.Linear(3, 10))
    with pytest.raises(ForwardError) as failed:
        train(narrow, DATA, epochs=1, adversarial=PGD)
    assert str(failed.value) == (
        "Sequential failed on inputs of shape (60, 1, 8, 8): RuntimeError: mat1 and mat2 shapes cannot be multiplied "
        "(60x64 and 3x10). Check that the network takes inputs of this shape and type."
    )
    with pytest.raises(InputError) as diverged:
        train("zoo:mlp", "digits:train[:200]", adversarial=PGD, **settings(lr=1e30, schedule="constant"))
    assert str(diverged.value) == "the network's answers are not finite any more. Lower lr or give warmup."


def test_images_that_an_augmentation_leads_out_of_range_are_refused() -> None:
    with pytest.raises(InputError) as error:
        train("zoo:mlp", DATA, epochs=1, adversarial=PGD, augment=[lambda images, _: 3 * images])
    assert str(error.value) == "an attack needs images as floats between 0 and 1. Scale them first."


def test_a_training_is_resumed_under_the_same_attack_only(tmp_path: Path) -> None:
    once = settings(out=tmp_path, adversarial={"attack": "pgd", "eps": 0.1, "iterations": 3})
    first = train("zoo:mlp", DATA, **once)
    again = train("zoo:mlp", DATA, **once | {"adversarial": "iterations=3,attack=PGD,eps=1/10,norm=Linf"})
    assert again.history == first.history
    for other, shown in ((None, "None"), (PGD | {"eps": 0.2}, None)):
        record = shown or attacked_batch(other or {}).record
        with pytest.raises(InputError) as error:
            train("zoo:mlp", DATA, **once | {"adversarial": other})
        assert str(error.value) == (
            f"{tmp_path} holds a training with other settings (adversarial {attacked_batch(PGD).record} there, "
            f"{record} here). Give the same settings to resume it, or another folder."
        )
