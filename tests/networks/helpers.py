"""What the tests of networks share."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

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
