"""Normalisation as part of a network, and the network inside its wrappers."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import likewise
from likewise.networks import Normalised, save, unwrapped
from tests.networks.helpers import refused


def compiled(net: nn.Module) -> nn.Module:
    return torch.compile(net, backend="eager")  # type: ignore[return-value]


def test_the_network_is_found_within_its_wrappers() -> None:
    net = nn.Linear(2, 2)
    whole = Normalised(nn.DataParallel(net), [0.0], [1.0])
    assert unwrapped(whole) is net
    assert unwrapped(compiled(nn.DataParallel(whole))) is net
    assert unwrapped(nn.DataParallel(whole), keep_normalisation=True) is whole


@pytest.mark.parametrize("wrap", [nn.DataParallel, compiled])
def test_a_wrapped_network_is_saved_with_its_own_names_and_normalisation(tmp_path: Path, wrap) -> None:
    net = Normalised(likewise.network("zoo:mlp", channels=1, size=4, hidden=4), [0.25], [0.5])
    save(wrap(net), tmp_path / "a.safetensors")
    back = likewise.network(str(tmp_path / "a.safetensors"))
    images = torch.rand(3, 1, 4, 4)
    assert torch.equal(back(images), net.eval()(images))


def test_a_deviation_of_zero_cannot_normalise() -> None:
    assert refused(lambda: Normalised(nn.Linear(2, 2), [0.5], [0.0])) == (
        "cannot normalise by mean [0.5] and std [0.0]. Give one of each a channel, and no deviation of 0."
    )


def test_a_normalised_network_refuses_other_channels() -> None:
    net = Normalised(likewise.network("zoo:resnet20"), [0.5] * 3, [0.5] * 3)
    assert refused(lambda: net(torch.rand(4, 1, 32, 32))) == (
        "ResNet takes images of 3 channels and was shown (4, 1, 32, 32). Give it images of its own "
        "kind, or build it with channels=1."
    )
