"""What the tests of networks share."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import nn

from likewise.data import Data
from likewise.errors import InputError
from likewise.networks.class_names import record_classes
from likewise.wordnet import ClassNames

DATA = "digits:train[:60]"


def settings(**options: Any) -> dict[str, Any]:
    return {"epochs": 2, "lr": 0.05, "batch_size": 64} | options


def same(a: nn.Module, b: nn.Module) -> bool:
    """Whether two networks of one kind have the same weights."""
    left, right = a.state_dict(), b.state_dict()
    return all(torch.equal(left[key], right[key]) for key in left)


def small(seed: int, width: int = 8) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))


PETS = ("cat", "dog", "fish")


class Blind(nn.Module):
    """Answers every input alike: with its output number `favourite`."""

    def __init__(self, count: int, favourite: int = 0) -> None:
        super().__init__()
        self.fc = nn.Linear(12, count)
        nn.init.zeros_(self.fc.weight)
        with torch.no_grad():
            self.fc.bias.copy_(torch.arange(count) == favourite)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        answers: torch.Tensor = self.fc(images.flatten(1))
        return answers


def pets(classes: tuple[str, ...] = PETS, wnids: Any = None, name: str = "pets") -> Data:
    labels = torch.arange(9) % len(classes)
    draw = torch.Generator().manual_seed(0)
    return Data(name, "image", torch.rand(9, 3, 2, 2, generator=draw), labels, classes, wnids)


def named(count: int, names: tuple[str, ...], favourite: int = 0) -> nn.Module:
    net = Blind(count, favourite)
    record_classes(net, ClassNames(names))
    return net


def refused(act: Any, kind: type[Exception] = InputError) -> str:
    """The sentence that a call is refused with."""
    with pytest.raises(kind) as error:
        act()
    return str(error.value)


def said(act: Any) -> tuple[Any, list[str]]:
    """What a call gives, and what it warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = act()
    return result, [str(one.message) for one in caught]
