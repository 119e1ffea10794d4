"""Small classifiers of digits that were trained differently."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import likewise
from likewise.data import Data
from likewise.networks.inputs.normalisation import note

N = 40


class Small(nn.Module):
    """A classifier of digits."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.hidden, self.norm, self.fc = nn.Linear(64, width), nn.BatchNorm1d(width), nn.Linear(width, 10)

    def forward(self, images: Tensor) -> Tensor:
        return self.fc(self.norm(self.hidden(images.flatten(1))).relu())


class Convolved(nn.Module):
    """A classifier of digits that sees neighbours, at any size."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.fc = nn.Conv2d(1, 12, 3), nn.Linear(12 * 9, 10)

    def forward(self, images: Tensor) -> Tensor:
        return self.fc(functional.adaptive_avg_pool2d(self.conv(images).relu(), 3).flatten(1))


class Constant(nn.Module):
    """Always the same answer, with a gradient."""

    def __init__(self, answer: int) -> None:
        super().__init__()
        self.answer, self.scale = answer, nn.Parameter(torch.ones(()))

    def forward(self, images: Tensor) -> Tensor:
        logits = images.flatten(1)[:, :10] * self.scale * 1e-3
        return logits + 10 * functional.one_hot(torch.tensor(self.answer), 10)


WORDS = Data("words", "text", torch.randint(0, 5, (6, 3)), [0, 1, 0, 1, 0, 1], ("no", "yes"))


class Bag(nn.Module):
    """A classifier of words."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.fc = nn.Embedding(5, 4), nn.Linear(4, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.fc(self.words(tokens).mean(dim=1))


def digits(n: int = N) -> Data:
    return likewise.dataset(f"digits:test[:{n}]")


@cache
def _trained(kind: type[nn.Module], seed: int, steps: int) -> dict[str, Tensor]:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        net = kind()
        optimiser = torch.optim.Adam(net.parameters(), lr=0.02)
        data = likewise.dataset("digits:train[:400]")
        images, labels = data.inputs[:], data.labels
        for _ in range(steps):
            optimiser.zero_grad()
            functional.cross_entropy(net(images), labels).backward()
            optimiser.step()
    return net.state_dict()


def trained(kind: type[nn.Module] = Small, seed: int = 0, steps: int = 40) -> nn.Module:
    net = kind()
    net.load_state_dict(_trained(kind, seed, steps))
    note(net, "normalisation", "as trained here")
    return net.eval()


def zoo() -> dict[str, nn.Module]:
    return {"a": trained(seed=0), "b": trained(seed=3), "c": trained(Convolved, seed=1, steps=120)}


QUICK = {"eps": 0.15, "iterations": 4, "progress": False}


FIVE: dict[str, Any] = {"iterations": 30, "eps": 0.15, "batch_size": 8, "progress": False}


def five() -> tuple[dict[str, nn.Module], Data]:
    """Networks that know nothing, so that the accuracies of all are the same but for chance."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return {f"n{i}": Convolved() for i in range(5)}, digits()
