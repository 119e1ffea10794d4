"""Every network's classifier: the layer whose input is the penultimate representation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from likewise._base.compat import geometric
from likewise.errors import NoClassifierError, UnknownNameError, did_you_mean, quoted_list
from likewise.networks.normalise import unwrapped


@dataclass(frozen=True, eq=False)
class Head:
    """A linear classifier: `weight` is (classes, width), `bias` is (classes,) or None."""

    weight: Tensor
    bias: Tensor | None
    layer_name: str


# Detectors answer twice: these layers say what a thing is, their neighbours where it is.
_NAMES_THINGS = ("cls_score", "class_labels_classifier", "class_embed")


def head(net: nn.Module, layer: str | None = None, classes: int | None = None) -> Head:
    """The classifier of a network, or the `layer` that is named to be it.

    A network may say which layer it is (`head_layer`, None for "there is none"); timm's networks say
    so too. In a detector it is the layer that names things. Otherwise it is the one linear layer
    (with as many rows as there are `classes`, where that is known) whose output no other layer
    takes; several such are refused, since only a forward pass tells which of them answers.

    >>> head(nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))).layer_name
    '2'
    """
    net = unwrapped(net)
    name = _named(net, _layer_name(net, classes) if layer is None else layer)
    part = net.get_submodule(name)
    weight, bias = _matrix(part), _weights(part)[1]
    if not isinstance(weight, Tensor) or weight.ndim != 2:
        raise _no_head(net, f"its layer {name!r} is a {_kind(part)}")
    return Head(weight.detach(), bias.detach() if isinstance(bias, Tensor) else None, name)


def named_parts(net: nn.Module) -> dict[str, nn.Module]:
    """Every part of a network by name, without the network itself and what only makes weights.

    >>> from torch.nn.utils.parametrizations import weight_norm
    >>> list(named_parts(nn.Sequential(weight_norm(nn.Linear(2, 2)))))
    ['0']
    """
    return {name: part for name, part in net.named_modules() if name and "parametrizations" not in name.split(".")}


def weighted_parts(net: nn.Module) -> dict[str, nn.Module]:
    """The parts of a network that hold weights of their own."""
    return {name: part for name, part in named_parts(net).items() if _has_weights(part)}


def declared_head(net: nn.Module) -> str | None:
    """The classifier by what the network itself says of it, None where it says nothing."""
    net = unwrapped(net)
    if hasattr(net, "head_layer"):
        if net.head_layer is None:
            raise _no_head(net, "it does not classify by a linear layer")
        return str(net.head_layer)
    ask: Any = getattr(net, "get_classifier", None)
    parts = named_parts(net)
    if callable(ask):
        classifier = ask()
        for name, part in parts.items():
            if part is classifier:
                return name
    if hasattr(net, "convs") and hasattr(net, "jk_mode"):  # the models of PyTorch Geometric
        layers: Any = net.convs
        return "lin" if hasattr(net, "lin") else f"convs.{len(layers) - 1}"
    return next((name for name in parts if name.rpartition(".")[2] in _NAMES_THINGS), None)


def last_that_matters(net: nn.Module, called: Iterable[str], matters: Callable[[str], bool]) -> str:
    """Of the calls of layers in their order (`fc`, `fc#2`), the one the answer comes from."""
    for call in reversed(list(called)):
        if matters(call):
            name = call.partition("#")[0]
            part = net.get_submodule(name)
            if getattr(_matrix(part), "ndim", 0) != 2 or isinstance(part, nn.Embedding):
                kind = _kind(part)
                raise _no_head(net, f"the last layer its answer needs, {name!r}, is a {kind}")
            return call
    raise _no_head(net, "its answer changes with none of its layers")


def last_declared(net: nn.Module) -> str | None:
    """The last layer with weights to be written down, if it is a linear one: a guess to be checked."""
    weighted = weighted_parts(unwrapped(net))
    name = next(reversed(weighted), None)
    return name if name is not None and _is_linear(weighted[name]) else None


def has_matrix(part: nn.Module) -> bool:
    """Whether a layer has weights of more than one axis, so that it does more than scale."""
    weight: Any = getattr(part, "weight", None)
    return _is_packed(part) or (isinstance(weight, Tensor) and weight.ndim > 1)


def _has_weights(part: nn.Module) -> bool:
    own = any(True for _ in part.parameters(recurse=False))
    return own or is_parametrized(part) or _is_packed(part)


def _is_packed(part: nn.Module) -> bool:
    """Whether a layer is quantised: its weights are no parameters, and given when asked for."""
    return inspect.ismethod(getattr(part, "weight", None))


def _matrix(part: nn.Module) -> Any:
    """The weights of a linear layer `(classes, width)`; of other layers, whatever they have."""
    weight = _weights(part)[0]
    if isinstance(weight, Tensor) and weight.ndim > 2 and set(weight.shape[2:]) == {1}:
        return weight.flatten(1)
    return weight


def _weights(layer: nn.Module) -> tuple[Any, Any]:
    if hasattr(layer, "propagate"):
        return _convolution_weights(layer)
    weight: Any = getattr(layer, "weight", None)
    bias: Any = getattr(layer, "bias", None)
    if _is_packed(layer):
        return weight().dequantize(), bias() if callable(bias) else bias
    return weight, bias


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


def _named(net: nn.Module, layer: str) -> str:
    layers = list(named_parts(net))
    if layer not in layers:
        raise UnknownNameError(f"{_kind(net)} has no layer named {layer!r}.{did_you_mean(layer, layers)}")
    return layer


def _layer_name(net: nn.Module, classes: int | None) -> str:
    name = declared_head(net)
    if name is not None:
        return name
    weighted = weighted_parts(net)
    if not weighted:
        raise _no_head(net, "it has no layers with weights")
    end = _end_of_row(net)
    if end is not None:
        return end
    last = next(reversed(weighted))
    candidates = _unused(weighted, classes)
    if not candidates:
        kind = _kind(weighted[last])
        raise _no_head(net, f"its last layer with weights, {last!r}, is a {kind}")
    if len(candidates) > 1:
        raise _no_head(net, f"{quoted_list(candidates)} could each be it, and only a forward pass tells which")
    return candidates[0]


def _end_of_row(net: nn.Module) -> str | None:
    """The last layer of a Sequential, whose layers are called as they are written down."""
    if not isinstance(net, nn.Sequential):
        return None
    for name, child in reversed(list(net.named_children())):
        if any(map(_has_weights, child.modules())):
            if not named_parts(child):
                if not _is_linear(child):
                    kind = _kind(child)
                    raise _no_head(net, f"its last layer with weights, {name!r}, is a {kind}")
                return name
            within = _end_of_row(child)
            return None if within is None else f"{name}.{within}"
    return None


def _unused(weighted: Mapping[str, nn.Module], classes: int | None) -> list[str]:
    """The linear layers whose output no other layer takes, the outermost ones where there are more."""
    widths = {name: _matrix(part).shape[0] for name, part in weighted.items() if _is_linear(part)}
    widths = {name: width for name, width in widths.items() if not _says_where(name)}
    fitting = {name: width for name, width in widths.items() if width == classes} or widths
    taken = {name: _width_taken(part) for name, part in weighted.items()}
    free = [
        name
        for name, width in fitting.items()
        if not any(width == given for other, given in taken.items() if other != name)
    ]
    candidates = free or list(fitting)
    least = min(map(_depth, candidates), default=(0, 0))
    return [name for name in candidates if _depth(name) == least]


def _depth(name: str) -> tuple[int, int]:
    """How deep in rows of blocks a layer is; within rows, how deep at all."""
    steps = name.split(".")
    rows = sum(step.isdigit() for step in steps)
    return rows, len(steps) if rows else 0


def _says_where(name: str) -> bool:
    """Whether a layer of a detector gives places rather than names."""
    return any(word in name for word in ("bbox", "box_", "regression"))


def _width_taken(part: nn.Module) -> int | None:
    """The width of what a layer takes, where its weights tell."""
    for name in ("in_features", "in_channels", "num_features", "input_size", "embed_dim"):
        width = getattr(part, name, None)
        if isinstance(width, int):
            return width
    shape = getattr(part, "normalized_shape", None)
    return int(shape[-1]) if isinstance(shape, tuple) and shape else None


def _is_linear(part: nn.Module) -> bool:
    """Whether a layer is a matrix: linear, a convolution of windows of one place, or quantised."""
    if isinstance(part, nn.Embedding):
        return False
    kinds = (nn.Linear, nn.Conv2d, nn.Conv3d)
    return (isinstance(part, kinds) or _is_packed(part)) and getattr(_matrix(part), "ndim", 0) == 2


def _kind(part: nn.Module) -> str:
    return type(part).__name__


def _no_head(net: nn.Module, reason: str) -> NoClassifierError:
    error = NoClassifierError(
        f"{_kind(net)} has no classifier that could be found: {reason}. Name the layer yourself: "
        "head='name' where it is asked for, or net.head_layer = 'name'."
    )
    error.reason = reason
    return error
