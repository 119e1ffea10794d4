"""A network of the digits that is fitted in one step, so that tests can change a copy of it."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import torch
from torch import nn

import likewise


@cache
def digits() -> Any:
    return likewise.dataset("digits:test[:300]")


@cache
def _fitted() -> nn.Sequential:
    generator = torch.Generator().manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, 10))
    with torch.no_grad():
        for value in net.parameters():
            value.copy_(torch.randn(value.shape, generator=generator) / 8)
        train = likewise.dataset("digits:train")
        rows = net[:5](train.inputs[:])
        rows = torch.cat([rows, torch.ones(len(rows), 1)], dim=1).double()
        targets = nn.functional.one_hot(train.labels, 10).double()
        weights = torch.linalg.solve(rows.T @ rows + 1e-3 * torch.eye(rows.shape[1]).double(), rows.T @ targets)
        net[5].weight.copy_(10 * weights[:-1].T)
        net[5].bias.copy_(10 * weights[-1])
    return net


def fitted() -> nn.Sequential:
    """Right on nine digits of ten."""
    return copy.deepcopy(_fitted())


def with_noise(net: nn.Module, layer: str, share: float) -> nn.Module:
    """A copy with noise on the weights of one layer, as large as a share of them."""
    other = copy.deepcopy(net)
    weight = likewise.networks.unwrapped(other).get_submodule(layer).weight
    noise = torch.randn(weight.shape, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        weight.add_(share * weight.std() * noise)
    return other
