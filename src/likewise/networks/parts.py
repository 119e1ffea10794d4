"""The parts of a network and their weights: what is linear, and which matrix it is.

A linear layer is a matrix, one row per number it gives. So are convolutions (the window of each output in one
row), quantised layers, whose weights are given when asked for, and the layers of graph networks.
"""

from __future__ import annotations

import inspect
from typing import Any

from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from likewise._base.compat import geometric

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


def named_parts(net: nn.Module) -> dict[str, nn.Module]:
    """Every part of a network by name, without the network itself and what only makes weights.

    >>> from torch.nn.utils.parametrizations import weight_norm
    >>> list(named_parts(nn.Sequential(weight_norm(nn.Linear(2, 2)))))
    ['0']
    """
    return {name: part for name, part in net.named_modules() if name and "parametrizations" not in name.split(".")}


def weighted_parts(net: nn.Module) -> dict[str, nn.Module]:
    """The parts of a network that hold weights of their own."""
    return {name: part for name, part in named_parts(net).items() if has_weights(part)}


def has_weights(part: nn.Module) -> bool:
    """Whether a layer holds weights itself, not only in its parts."""
    own = any(True for _ in part.parameters(recurse=False))
    return own or is_parametrized(part) or _is_packed(part)


def has_matrix(part: nn.Module) -> bool:
    """Whether a layer has weights of more than one axis, so that it does more than scale."""
    weight: Any = getattr(part, "weight", None)
    return _is_packed(part) or (isinstance(weight, Tensor) and weight.ndim > 1)


def is_linear(part: nn.Module) -> bool:
    """Whether a layer is a matrix: linear, a convolution whose window is one pixel, or quantised."""
    if isinstance(part, nn.Embedding):
        return False
    kinds = (nn.Linear, *_CONVOLUTIONS)
    return (isinstance(part, kinds) or _is_packed(part)) and getattr(matrix(part), "ndim", 0) == 2


def matrix(part: nn.Module) -> Any:
    """The weights of a linear layer `(rows, width)`; of other layers, whatever they have."""
    weight = weights(part)[0]
    if isinstance(weight, Tensor) and weight.ndim > 2 and set(weight.shape[2:]) == {1}:
        return weight.flatten(1)
    return weight


def windows(part: nn.Module) -> Any:
    """The same with the windows of a convolution in one row, however large they are."""
    weight = weights(part)[0]
    return weight.flatten(1) if isinstance(part, _CONVOLUTIONS) and weight.ndim > 2 else matrix(part)


def weights(layer: nn.Module) -> tuple[Any, Any]:
    """Weight and bias of a layer, each None where it has none."""
    if hasattr(layer, "propagate"):
        return _convolution_weights(layer)
    weight: Any = getattr(layer, "weight", None)
    bias: Any = getattr(layer, "bias", None)
    if _is_packed(layer):
        return weight().dequantize(), bias() if callable(bias) else bias
    return weight, bias


def _is_packed(part: nn.Module) -> bool:
    """Whether a layer is quantised: its weights are no parameters, and given when asked for."""
    return inspect.ismethod(getattr(part, "weight", None))


def _convolution_weights(layer: Any) -> tuple[Tensor | None, Tensor | None]:
    """Weight and bias by which a graph convolution maps a node whose neighbours are all like it.

    GraphSAGE has weights for the node and for its neighbours, which then add up; GAT has as many as
    heads, which then average.
    """
    kinds = geometric("read a graph convolution").nn.conv
    if isinstance(layer, kinds.SAGEConv):
        own = layer.lin_r.weight if layer.root_weight else 0
        return layer.lin_l.weight + own, layer.lin_l.bias
    weight = getattr(getattr(layer, "lin", None), "weight", None)
    if isinstance(layer, kinds.GATConv) and not layer.concat and weight is not None:
        weight = weight.unflatten(0, (layer.heads, -1)).mean(dim=0)
    return weight, layer.bias
