"""The loss: a network's own with what it asks for by name, in training and in validation, else cross-entropy."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import likewise
from likewise.networks import evaluate, train
from tests.networks.helpers import DATA, refused, settings, small


class Rebuilding(nn.Module):
    """A classifier whose loss asks for inputs and for a hidden layer."""

    loss_layer = "hidden"

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.hidden, self.out, self.back = nn.Linear(64, 8), nn.Linear(8, 10), nn.Linear(8, 64)
        self.asked: list[Any] = []

    def forward(self, images: Tensor) -> Tensor:
        answers: Tensor = self.out(self.hidden(images.flatten(1)).relu())
        return answers

    def loss(self, logits: Tensor, targets: Tensor, inputs: Tensor, hidden: Tensor) -> Tensor:
        self.asked.append((inputs, hidden))
        error = (self.back(hidden) - inputs.flatten(1)).square().mean()
        return nn.functional.cross_entropy(logits, targets) + error


def test_a_loss_is_handed_what_its_parameters_name() -> None:
    net = Rebuilding()
    train(net, DATA, **settings(epochs=1))
    inputs, hidden = net.asked[0]
    assert inputs.shape == (60, 1, 8, 8)
    assert hidden.shape == (60, 8)
    assert net.back.weight.grad is not None
    assert len(net.hidden._forward_hooks) == 0


def test_validation_follows_the_loss_that_is_trained() -> None:
    net, data = Rebuilding(), likewise.dataset("digits:test[:50]")
    images = data.inputs[:]
    with torch.no_grad():
        expected = net.loss(
            net(images), nn.functional.one_hot(data.labels, 10).float(), images, net.hidden(images.flatten(1))
        )
    for batch_size in (50, 7):
        assert evaluate(net, data, batch_size=batch_size)[0] == pytest.approx(float(expected), rel=1e-5)


class TwoParts(nn.Module):
    """A loss in two parts, of which cross-entropy is one."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner, self.calls = inner, 0

    def forward(self, images: Tensor) -> Tensor:
        answers: Tensor = self.inner(images)
        return answers

    def loss(self, logits: Tensor, targets: Tensor, scale: float = 3.0) -> Tensor:
        self.calls += 1
        return scale * self.calls + 0 * logits.sum()


def test_patience_stops_by_the_networks_own_loss() -> None:
    """It grows with every call, while cross-entropy stays as it is."""
    done = train(TwoParts(small(0)), DATA, validation="digits:test[:50]", **settings(epochs=9, patience=2))
    assert len(done.history) == 3
    assert done.history[0]["validation_loss"] == 6.0  # the second call; parameters of other names keep their defaults


def test_probabilities_are_trained_by_their_logarithm() -> None:
    class Probable(nn.Module):
        answers = "probabilities"

        def __init__(self) -> None:
            super().__init__()
            self.net = small(0)

        def forward(self, images: Tensor) -> Tensor:
            answers: Tensor = self.net(images).softmax(dim=1)
            return answers

    plain, same = small(0), Probable()
    of_logits, of_probabilities = (train(net, DATA, **settings(epochs=3)) for net in (plain, same))
    assert [record["loss"] for record in of_probabilities.history] == pytest.approx(
        [record["loss"] for record in of_logits.history], rel=1e-4
    )
    data = likewise.dataset("digits:test[:50]")
    assert evaluate(same, data)[0] == pytest.approx(evaluate(plain, data)[0], rel=1e-4)


def test_a_loss_layer_that_is_not_there_is_named() -> None:
    net = Rebuilding()
    net.loss_layer = "hiden"
    assert refused(lambda: train(net, DATA, **settings())) == (
        "Rebuilding.loss asks for hidden values, and its loss_layer is 'hiden', which is none of its layers. Set "
        "loss_layer to the name of one."
    )


def test_a_loss_layer_that_runs_twice_is_refused() -> None:
    class Twice(Rebuilding):
        def forward(self, images: Tensor) -> Tensor:
            return super().forward(images) + super().forward(images)

    assert refused(lambda: train(Twice(), DATA, **settings())) == (
        "Twice.loss asks for what its loss_layer gives, and in one forward pass that layer ran 2 times. Name a layer "
        "that runs once."
    )
