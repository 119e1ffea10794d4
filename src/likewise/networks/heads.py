"""Every network's classifier: the layer whose input is the penultimate representation, and its rows.

A detector may have several rows per class, one per anchor of a place, or one layer per size of feature map.
They are answers of their own, so a class is all its rows side by side: what two classes have in common is
then the sum of what they have in common at each anchor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from likewise.errors import NoClassifierError, UnknownNameError, did_you_mean, quoted_list
from likewise.networks.class_layers import answering, candidates, declared, declared_counts
from likewise.networks.normalise import unwrapped
from likewise.networks.parts import (
    has_weights,
    is_linear,
    matrix,
    named_parts,
    weighted_parts,
    weights,
    windows,
)


@dataclass(frozen=True, eq=False)
class Head:
    """A linear classifier: `weight` is (classes, width), `bias` is (classes,) or None.

    Of a detector with anchors, `weight` is (classes, anchors x width) and there is no `bias`.
    """

    weight: Tensor
    bias: Tensor | None
    layer_name: str


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
    name = _layer_name(net, classes) if layer is None else _only(net, answering(net, _named(net, layer)))
    part = net.get_submodule(name)
    rows = _by_anchor(net, name)
    if rows is not None:
        return Head(rows.detach(), None, name)
    weight, bias = windows(part), weights(part)[1]
    if not isinstance(weight, Tensor) or weight.ndim != 2:
        raise no_classifier(net, f"its layer {name!r} is a {_kind(part)}")
    return Head(weight.detach(), bias.detach() if isinstance(bias, Tensor) else None, name)


def declared_head(net: nn.Module) -> str | None:
    """The classifier by what the network itself says of it, None where it says nothing, or names several."""
    net = unwrapped(net)
    if hasattr(net, "head_layer"):
        if net.head_layer is None:
            raise no_classifier(net, "it does not classify by a linear layer")
        return str(net.head_layer)
    layers = declared(net)
    if len(layers) == 1 and hasattr(net.get_submodule(layers[0]), "num_columns"):
        raise no_classifier(net, f"{layers[0]!r} is one layer per size of feature map")
    return layers[0] if len(layers) == 1 else None


def last_that_matters(net: nn.Module, called: Iterable[str], matters: Callable[[str], bool]) -> str:
    """Of the calls of layers in their order (`fc`, `fc#2`), the one the answer comes from."""
    for call in reversed(list(called)):
        if matters(call):
            name = call.partition("#")[0]
            part = net.get_submodule(name)
            if getattr(matrix(part), "ndim", 0) != 2 or isinstance(part, nn.Embedding):
                kind = _kind(part)
                raise no_classifier(net, f"the last layer its answer needs, {name!r}, is a {kind}")
            return call
    raise no_classifier(net, "its answer changes with none of its layers")


def _named(net: nn.Module, layer: str) -> str:
    layers = list(named_parts(net))
    if layer not in layers:
        raise UnknownNameError(f"{_kind(net)} has no layer named {layer!r}.{did_you_mean(layer, layers)}")
    return layer


def _layer_name(net: nn.Module, classes: int | None) -> str:
    if hasattr(net, "head_layer"):
        return _only(net, answering(net, _named(net, str(declared_head(net)))))
    layers = declared(net)
    if layers:
        return _only(net, layers)
    weighted = weighted_parts(net)
    if not weighted:
        raise no_classifier(net, "it has no layers with weights")
    end = _end_of_row(net)
    if end is not None:
        return end
    found = candidates(net, weighted, classes)
    if not found:
        last, counts = next(reversed(weighted)), declared_counts(net)[:2]
        reason = f"its last layer with weights, {last!r}, is a {_kind(weighted[last])}"
        if counts and is_linear(weighted[last]):
            reason = f"its configuration says {counts[0]} classes, and none of its layers has as many rows"
        raise no_classifier(net, reason)
    if len(found) > 1:
        raise no_classifier(net, f"{quoted_list(found)} could each be it, and only a forward pass tells which")
    return found[0]


def _only(net: nn.Module, layers: list[str]) -> str:
    if len(layers) > 1:
        raise no_classifier(net, f"{quoted_list(layers)} answer together, so that no one layer is it")
    return layers[0]


def _end_of_row(net: nn.Module) -> str | None:
    """The last layer of a Sequential, whose layers are called as they are written down."""
    if not isinstance(net, nn.Sequential):
        return None
    for name, child in reversed(list(net.named_children())):
        if any(map(has_weights, child.modules())):
            if not named_parts(child):
                if not is_linear(child):
                    kind = _kind(child)
                    raise no_classifier(net, f"its last layer with weights, {name!r}, is a {kind}")
                return name
            within = _end_of_row(child)
            return None if within is None else f"{name}.{within}"
    return None


def _by_anchor(net: nn.Module, name: str) -> Tensor | None:
    """The rows of each class side by side, of a layer of torchvision that answers once per anchor; else None.

    Such a layer gives all classes of the first anchor, then all of the second.
    """
    part: Any = net.get_submodule(name)
    columns = getattr(part, "num_columns", None)
    if isinstance(columns, int):  # SSD: one layer per size of feature map
        layers = [list(weighted_parts(entry).values())[-1:] or [entry] for entry in part.module_list]
        return torch.cat([_side_by_side(layer, columns) for [layer] in layers], dim=1)
    owner: Any = net.get_submodule(name.rpartition(".")[0])
    if isinstance(getattr(owner, "num_anchors", None), int) and isinstance(getattr(owner, "num_classes", None), int):
        return _side_by_side(part, owner.num_classes)
    return None


def _side_by_side(layer: nn.Module, classes: int) -> Tensor:
    weight: Tensor = windows(layer)
    return weight.reshape(-1, classes, weight.shape[1]).movedim(0, 1).flatten(1)


def _kind(part: nn.Module) -> str:
    return type(part).__name__


def no_classifier(net: nn.Module, reason: str) -> NoClassifierError:
    """The refusal of a network whose classifier cannot be found."""
    error = NoClassifierError(
        f"{_kind(net)} has no classifier that could be found: {reason}. Name the layer yourself: "
        "head='name' where it is asked for, or net.head_layer = 'name'."
    )
    error.reason = reason
    return error
