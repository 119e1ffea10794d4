"""Capsules: their squashing, their loss, and no linear classifier."""

from __future__ import annotations

import pytest
import torch

import likewise
from likewise.errors import InputError
from likewise.networks import head


def test_capsules_have_no_head() -> None:
    with pytest.raises(InputError) as error:
        head(likewise.network("zoo:capsnet"))
    assert str(error.value) == (
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
