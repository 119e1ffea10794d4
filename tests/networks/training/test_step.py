"""One batch: how it becomes a loss, and how it is scored."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import likewise
from likewise.errors import ForwardError
from likewise.networks import evaluate, train
from tests.networks.helpers import DATA, refused, same, settings, small


def test_capsules_are_trained_by_their_own_loss() -> None:
    data = likewise.dataset("digits:train[:64]")
    net = likewise.network("zoo:capsnet", data=data)
    done = train(net, data, **settings(epochs=3, optimiser="adam", lr=1e-3, batch_size=16))
    assert done.history[-1]["loss"] < 0.5 * done.history[0]["loss"]


class WithLoss(nn.Module):
    """A network that brings its own loss: the squared distance to the labels as vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.targets = small(0), []

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.net(images)

    def loss(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        self.targets.append(targets)
        return (logits - targets).square().mean()


@pytest.mark.parametrize("mixup", [0.0, 0.2])
def test_a_loss_the_network_brings_is_trained_by(mixup: float) -> None:
    net = WithLoss()
    done = train(nn.DataParallel(net), DATA, **settings(mixup=mixup))
    assert [tuple(targets.shape) for targets in net.targets] == [(60, 10), (60, 10)]
    assert all(torch.allclose(targets.sum(dim=1), torch.ones(60)) for targets in net.targets)
    assert all(bool(torch.isin(targets, torch.tensor([0.0, 1.0])).all()) == (mixup == 0) for targets in net.targets)
    assert done.history[0]["loss"] < 1  # cross-entropy would be about log 10


def test_an_attribute_called_loss_that_is_no_function_is_left_alone() -> None:
    net = small(0)
    net.loss = 3.0
    assert same(train(net, DATA, **settings()).net, train(small(0), DATA, **settings()).net)


def test_a_step_of_ones_own_replaces_the_forward_pass() -> None:
    data = likewise.dataset("digits:train[:64]")

    def halved(net: nn.Module, batch: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        images, labels = batch
        logits = net(images[::2])
        return nn.functional.cross_entropy(logits, labels[::2]), logits, labels[::2]

    done = train("zoo:mlp", data, step=halved, **settings())
    half = train("zoo:mlp", data, **settings())
    assert not same(done.net, half.net)


def test_a_network_with_too_few_classes_is_refused() -> None:
    net = likewise.network("zoo:mlp", channels=1, size=8, classes=3)
    assert refused(lambda: train(net, "digits:train[:50]", **settings())) == (
        "the network answers with 3 classes and 'digits:train[:50]' has 10. Build it with classes=10."
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"mixup": 0.2}, "text inputs cannot be mixed. Leave out mixup and cutmix."),
        (
            {"augment": ["flip"]},
            "text inputs have no augmentations by name. Give a function of the batch and a torch.Generator.",
        ),
    ],
)
def test_text_is_neither_mixed_nor_flipped(options: dict[str, Any], sentence: str) -> None:
    data = likewise.data.Data("t", "text", ["a", "b"], [0, 1], ("x", "y"))
    assert refused(lambda: train(nn.Linear(2, 2), data, **settings(**options))) == sentence


def test_nothing_cannot_be_scored() -> None:
    data = likewise.dataset("digits:test[:0]")
    assert (
        refused(lambda: evaluate(small(0), data))
        == "'digits:test[:0]' has no inputs to be scored on. Give at least one."
    )


def test_a_network_that_cannot_take_the_inputs_says_so() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(3, 10))
    sentence = (
        "Sequential failed on inputs of shape (60, 1, 8, 8): RuntimeError: mat1 and mat2 shapes cannot be multiplied "
        "(60x64 and 3x10). Check that the network takes inputs of this shape and type."
    )
    for act in (lambda: train(net, DATA, epochs=1), lambda: evaluate(net, likewise.dataset(DATA))):
        with pytest.raises(ForwardError) as error:
            act()
        assert str(error.value) == sentence


def test_a_batch_that_does_not_fit_asks_for_a_smaller_one() -> None:
    class Full(nn.Linear):
        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            raise torch.OutOfMemoryError("CUDA out of memory.")

    assert (
        refused(lambda: train(Full(64, 10), DATA, epochs=1), ForwardError)
        == "Full does not fit in memory with this batch. Lower batch_size."
    )
