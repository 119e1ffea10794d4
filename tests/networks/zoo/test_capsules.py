"""Capsules: their routing, their loss with the decoder, and no linear classifier."""

from __future__ import annotations

import math

import pytest
import torch

import likewise
from likewise.networks import head
from tests.networks.helpers import refused


def test_capsules_have_no_head() -> None:
    assert refused(lambda: head(likewise.network("zoo:capsnet"))) == (
        "CapsNet has no classifier that could be found: it does not classify by a linear layer. "
        "Name the layer yourself: head='name' where it is asked for, or net.head_layer = 'name'."
    )


def test_squashing_keeps_the_direction_and_shortens() -> None:
    from likewise.networks.zoo.capsules import squash

    # |v| = 5, so the length becomes 25/26 and v/|v| stays (0.6, 0.8)
    expected = torch.tensor([[0.6 * 25 / 26, 0.8 * 25 / 26]])
    torch.testing.assert_close(squash(torch.tensor([[3.0, 4.0]])), expected)


def test_the_margin_loss_is_that_of_the_paper() -> None:
    net = likewise.network("zoo:capsnet", size=8, channels=1, classes=2)
    lengths, targets = torch.tensor([[0.7, 0.3]]), torch.tensor([[1.0, 0.0]])
    # (0.9 - 0.7)² + 0.5 (0.3 - 0.1)² = 0.04 + 0.02
    assert float(net.loss(lengths, targets)) == pytest.approx(0.06)


def routed(small: list[list[float]], weight: torch.Tensor, rounds: int) -> list[list[float]]:
    """Sabour et al. 2017, procedure 1, number by number, for the capsules of one input."""
    classes, count, width, width_in = weight.shape
    vote = [
        [
            [sum(float(weight[k, i, o, v]) * small[i][v] for v in range(width_in)) for o in range(width)]
            for k in range(classes)
        ]
        for i in range(count)
    ]
    b = [[0.0] * classes for _ in range(count)]
    for _ in range(rounds):
        c = [[math.exp(x) / sum(map(math.exp, row)) for x in row] for row in b]
        s = [[sum(c[i][k] * vote[i][k][o] for i in range(count)) for o in range(width)] for k in range(classes)]
        square = [sum(x * x for x in row) for row in s]
        v = [[q / (1 + q) * x / math.sqrt(q) for x in row] for row, q in zip(s, square, strict=True)]
        for i in range(count):
            for k in range(classes):
                b[i][k] += sum(x * y for x, y in zip(vote[i][k], v[k], strict=True))
    return v


@pytest.mark.parametrize("rounds", [1, 2, 3, 5])
def test_routing_is_the_published_procedure(rounds: int) -> None:
    from likewise.networks.zoo.capsules import Routing

    torch.manual_seed(0)
    routing = Routing(capsules=6, classes=3, width_in=4, width=5, rounds=rounds).double()
    torch.nn.init.normal_(routing.weight)
    small = torch.randn(2, 6, 4, dtype=torch.float64)
    expected = torch.tensor(
        [routed(one.tolist(), routing.weight.detach(), rounds) for one in small], dtype=torch.float64
    )
    torch.testing.assert_close(routing(small), expected, atol=1e-9, rtol=1e-9)


def test_routing_remembers_nothing_and_does_not_look_at_the_rest_of_the_batch() -> None:
    from likewise.networks.zoo.capsules import Routing

    torch.manual_seed(0)
    routing = Routing(capsules=6, classes=3, width_in=4, width=5, rounds=3).double()
    small = torch.randn(7, 6, 4, dtype=torch.float64)
    first = routing(small)
    for batch in (3 * small, torch.randn(50, 6, 4, dtype=torch.float64)):
        routing(batch)
    alone = torch.cat([routing(one[None]) for one in small])
    torch.testing.assert_close(alone, first, atol=1e-12, rtol=1e-12)
    assert dict(routing.named_buffers()) == {}


def small_capsnet(**options: object) -> torch.nn.Module:
    torch.manual_seed(0)
    return likewise.network("zoo:capsnet", size=8, channels=1, classes=3, **options)


def test_the_decoder_is_shown_the_capsule_of_the_class_alone() -> None:
    net = small_capsnet(reconstruction=2.0)
    images, capsules = torch.rand(4, 1, 8, 8), torch.rand(4, 3, 16)
    lengths, labels = torch.rand(4, 3), torch.tensor([2, 0, 1, 1])
    targets = torch.nn.functional.one_hot(labels, 3).float()
    rebuilt = net.decoder(capsules[range(4), labels])
    expected = net.loss(lengths, targets) + 2.0 * (rebuilt.view_as(images) - images).square().mean()
    torch.testing.assert_close(net.loss(lengths, targets, images, capsules), expected)


def test_reconstruction_weighs_as_much_as_was_published_unless_told_otherwise() -> None:
    assert small_capsnet().reconstruction == pytest.approx(0.0005 * 64)  # 0.0005 per value of 1 × 8 × 8
    assert small_capsnet(reconstruction=0.1).reconstruction == 0.1
    assert small_capsnet(decoder=False).decoder is None


def test_a_training_trains_the_decoder_and_validates_by_the_whole_loss() -> None:
    data = likewise.dataset("digits:train[:64]")
    net = likewise.network("zoo:capsnet", data=data, reconstruction=5.0)
    start = net.net.decoder[0].weight.clone()
    how = {"epochs": 1, "optimiser": "adam", "batch_size": 16, "progress": False}
    done = likewise.train(net, data, validation="digits:test[:40]", **how)
    assert not torch.equal(start, net.net.decoder[0].weight)
    test = likewise.dataset("digits:test[:40]")
    images, targets = test.inputs[:], torch.nn.functional.one_hot(test.labels, 10).float()
    seen: list[torch.Tensor] = []
    net.net.routing.register_forward_hook(lambda _, __, given: seen.append(given))
    with torch.no_grad():
        expected = net.net.loss(net(images), targets, images, seen[0])
        margin = net.net.loss(net(images), targets)
    assert done.history[-1]["validation_loss"] == pytest.approx(float(expected), rel=1e-4)
    assert float(expected) > float(margin) + 0.1


def test_a_narrower_network_has_fewer_capsules_and_a_width_between_is_refused() -> None:
    assert small_capsnet(width=16).routing.weight.shape[1] == 2 * 4**2  # of 8 channels each, at 4 × 4 places
    assert (
        refused(lambda: small_capsnet(width=20)) == "width is 20, and capsules are of 8 channels. Give a multiple of 8."
    )
