"""Every network's classifier: the layer whose input is the penultimate representation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from likewise.errors import InputError
from likewise.networks.graph import convolution_weights
from likewise.networks.normalise import inner


@dataclass(frozen=True, eq=False)
class Head:
    """A linear classifier: `weight` is (classes, width), `bias` is (classes,) or None."""

    weight: Tensor
    bias: Tensor | None
    layer_name: str


def head(net: nn.Module) -> Head:
    """The classifier of a network.

    A network may say which layer it is (`head_layer`, None for "there is none"); timm's networks
    say so too. Otherwise it is the last layer that has weights, if that is a linear one.

    >>> head(nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))).layer_name
    '2'
    """
    net = inner(net)
    name = _layer_name(net)
    layer = net.get_submodule(name)
    weight, bias = _weights(layer)
    if isinstance(weight, Tensor) and weight.ndim == 4 and weight.shape[2:] == (1, 1):
        weight = weight[:, :, 0, 0]
    if not isinstance(weight, Tensor) or weight.ndim != 2:
        raise _no_head(net, f"its layer {name!r} is a {type(layer).__name__}")
    return Head(weight.detach(), bias.detach() if isinstance(bias, Tensor) else None, name)


def _weights(layer: nn.Module) -> tuple[Any, Any]:
    if hasattr(layer, "propagate"):
        return convolution_weights(layer)
    return getattr(layer, "weight", None), getattr(layer, "bias", None)


def _layer_name(net: nn.Module) -> str:
    if hasattr(net, "head_layer"):
        if net.head_layer is None:
            raise _no_head(net, "it does not classify by a linear layer")
        return str(net.head_layer)
    ask: Any = getattr(net, "get_classifier", None)
    if callable(ask):
        classifier = ask()
        for name, part in net.named_modules():
            if part is classifier and name:
                return str(name)
    if hasattr(net, "convs") and hasattr(net, "jk_mode"):  # the models of PyTorch Geometric
        layers: Any = net.convs
        return "lin" if hasattr(net, "lin") else f"convs.{len(layers) - 1}"
    weighted = [name for name, part in net.named_modules() if list(part.parameters(recurse=False))]
    if not weighted or weighted[-1] == "":
        raise _no_head(net, "it has no layers with weights")
    last = net.get_submodule(weighted[-1])
    if not isinstance(last, (nn.Linear, nn.Conv2d)):
        raise _no_head(net, f"its last layer with weights, {weighted[-1]!r}, is a {_kind(last)}")
    return str(weighted[-1])


def _kind(part: nn.Module) -> str:
    return type(part).__name__


def _no_head(net: nn.Module, reason: str) -> InputError:
    return InputError(
        f"{_kind(net)} has no classifier that could be found: {reason}. Name the layer yourself: "
        "net.head_layer = 'name', or choose a layer by name."
    )
