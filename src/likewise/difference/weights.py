"""Which weights of a network changed in a copy of it, and how many became zero."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from likewise._base.machine import on_precise_device
from likewise.difference.counterparts import counterparts
from likewise.networks.anatomy.quantised import plain_weights, present

_PIECE = 2**22  # entries that are compared at a time


@dataclass(frozen=True)
class WeightChange:
    """Weights that both networks have under one name and in one shape."""

    shared: int  # how many such tensors there are
    changed: tuple[tuple[str, float], ...]  # those that differ, with |W - V| / |W|, in the order of the network
    other: int  # how many tensors are in one network only, or of another shape
    zeros: tuple[float, float]  # shares of zeros among the shared weights, before and after


class WeightTally:
    """Compares the tensors of two networks, some at a time.

    Args:
        a: The shapes of the tensors of the first by their names.
        b: Those of the second.
    """

    def __init__(self, a: Mapping[str, Any], b: Mapping[str, Any]) -> None:
        self._names = counterparts(a, b)  # from names of the second to those of the first
        right = {self._names.get(name, f"{name} of the other"): tuple(shape) for name, shape in b.items()}
        self.common = [name for name, shape in a.items() if right.get(name) == tuple(shape)]
        self._other = len(a.keys() | right.keys()) - len(self.common)
        self._changes: dict[str, float] = {}
        self._zeros, self._numbers = [0, 0], 0

    def add(self, a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> None:
        """Compare those of these tensors that both have and that were not compared before."""
        right = {self._names.get(name, ""): value for name, value in b.items()}
        for name in self.common:
            if name in a and name in right and name not in self._changes:
                self._changes[name] = self._change(a[name], right[name])

    @property
    def left(self) -> list[tuple[str, str]]:
        """The names in either network of what was not compared yet."""
        others = {name: other for other, name in self._names.items()}
        return [(name, others[name]) for name in self.common if name not in self._changes]

    def result(self) -> WeightChange:
        """What was found."""
        changed = tuple((name, self._changes[name]) for name in self.common if self._changes.get(name))
        shares = (self._zeros[0] / max(self._numbers, 1), self._zeros[1] / max(self._numbers, 1))
        return WeightChange(len(self.common), changed, self._other, shares)

    def _change(self, one: Tensor, other: Tensor) -> float:
        """|W - V| / |W| of a tensor, in pieces: it may have a gigabyte."""
        self._numbers += one.numel()
        apart = whole = 0.0
        same = True
        for first, second in zip(torch.split(one.flatten(), _PIECE), torch.split(other.flatten(), _PIECE), strict=True):
            first = on_precise_device(first.detach()).double()
            second = second.detach().to(first.device).double()
            self._zeros[0] += int((first == 0).sum())
            self._zeros[1] += int((second == 0).sum())
            same = same and torch.equal(first, second)
            apart += float((first - second).square().sum())
            whole += float(first.square().sum())
        if same:
            return 0.0
        return math.sqrt(apart / whole) if whole else math.inf


def weight_changes(a: nn.Module, b: nn.Module) -> WeightChange:
    """Which parameters and buffers of two networks differ."""
    left, right = (_tensors(net) for net in (a, b))
    tally = WeightTally(*({name: value.shape for name, value in side.items()} for side in (left, right)))
    for name, other in tally.left:
        tally.add({name: present(a, name, left[name])}, {other: present(b, other, right[other])})
    return tally.result()


def _tensors(net: nn.Module) -> dict[str, Tensor]:
    """Weights and statistics by name; those of quantised layers as the numbers they stand for.

    A weight that torch prunes is kept as two, `weight_orig` and `weight_mask`: it is their product. Adapters are
    merged.
    """
    kept = {name: value for name, value in plain_weights(net).items() if value.numel() > 0}
    weights = {}
    for name, value in kept.items():
        whole = name.removesuffix("_orig")
        if name.endswith("_mask") and f"{name.removesuffix('_mask')}_orig" in kept:
            continue
        pruned = whole != name and f"{whole}_mask" in kept
        weights[whole if pruned else name] = value * kept[f"{whole}_mask"] if pruned else value
    return weights
