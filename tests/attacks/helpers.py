"""A small classifier of digits to attack."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional

import likewise


class Small(nn.Module):
    """A classifier with everything that has a mode, trained on digits."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(64, 32)
        self.norm, self.drop, self.fc = nn.BatchNorm1d(32), nn.Dropout(0.5), nn.Linear(32, 10)

    def forward(self, images: Tensor) -> Tensor:
        return self.fc(self.drop(self.norm(self.hidden(images.flatten(1))).relu()))


@cache
def digits() -> tuple[Tensor, Tensor]:
    data = likewise.dataset("digits:train[:300]")
    return data.inputs[:], data.labels


@cache
def trained() -> dict[str, Tensor]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = Small()
        optimiser = torch.optim.SGD(net.parameters(), lr=0.5)
        images, labels = digits()
        for _ in range(60):
            optimiser.zero_grad()
            functional.cross_entropy(net(images), labels).backward()
            optimiser.step()
    return net.state_dict()


def small() -> Small:
    net = Small()
    net.load_state_dict(trained())
    return net
