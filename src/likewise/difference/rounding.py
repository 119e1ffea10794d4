"""What rounding alone does to a network: its precision, finer weights it may come from, floors of layers."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import nn

from likewise.difference.layers import LayerChange


def precision_of(net: nn.Module) -> torch.dtype:
    """The precision of most weights."""
    dtypes = [value.dtype for value in net.parameters() if value.is_floating_point() and value.element_size() > 1]
    return max(set(dtypes), key=dtypes.count) if dtypes else torch.float32


@torch.no_grad()
def unrounded(net: nn.Module, precision: torch.dtype) -> nn.Module:
    """A network in a finer precision whose weights, rounded, are those of this one: drawn between its neighbours."""
    finer = copy.deepcopy(net).to(precision)
    draw = torch.Generator().manual_seed(0)
    rough = dict(net.named_parameters())
    for name, value in finer.named_parameters():
        coarse = rough[name]
        if coarse.is_floating_point() and coarse.dtype != precision:
            step = torch.finfo(coarse.dtype).eps * 2.0 ** (coarse.float().frexp().exponent - 1)
            between = torch.rand(coarse.shape, generator=draw).to(value.device) - 0.5
            value.add_((between * step).to(value.dtype) * (coarse != 0))
    return finer


def with_floors(changes: Sequence[LayerChange], floors: Mapping[str, float]) -> tuple[LayerChange, ...]:
    """Layers, each with what rounding alone changes."""
    return tuple(replace(change, floor=floors.get(change.layer, 0.0)) for change in changes)
