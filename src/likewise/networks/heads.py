"""Every network's classifier: the layer whose input is the penultimate representation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from likewise.errors import InputError, UnknownNameError, did_you_mean
from likewise.networks.graph import convolution_weights
from likewise.networks.normalise import inner


@dataclass(frozen=True, eq=False)
class Head:
    """A linear classifier: `weight` is (classes, width), `bias` is (classes,) or None."""

    weight: Tensor
    bias: Tensor | None
    layer_name: str


# Detectors answer twice: these layers say what a thing is, the ones beside them where it is.
_NAMES_THINGS = ("cls_score", "class_labels_classifier", "class_embed")


def head(net: nn.Module, layer: str | None = None) -> Head:
    """The classifier of a network, or the `layer` that is named to be it.

    A network may say which layer it is (`head_layer`, None for "there is none"); timm's networks
    say so too. In a detector it is the layer that names things. Otherwise it is the last layer that
    has weights, if that is a linear one.

    >>> head(nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))).layer_name
    '2'
    """
    net = inner(net)
    name = _layer_name(net) if layer is None else _named(net, layer)
    part = net.get_submodule(name)
    weight, bias = _weights(part)
    if isinstance(weight, Tensor) and weight.ndim == 4 and weight.shape[2:] == (1, 1):
        weight = weight[:, :, 0, 0]
    if not isinstance(weight, Tensor) or weight.ndim != 2:
        raise _no_head(net, f"its layer {name!r} is a {_kind(part)}")
    return Head(weight.detach(), bias.detach() if isinstance(bias, Tensor) else None, name)


def _weights(layer: nn.Module) -> tuple[Any, Any]:
    if hasattr(layer, "propagate"):
        return convolution_weights(layer)
    return getattr(layer, "weight", None), getattr(layer, "bias", None)


def _named(net: nn.Module, layer: str) -> str:
    known = [name for name, _ in net.named_modules() if name]
    if layer not in known:
        raise UnknownNameError(
            f"{_kind(net)} has no layer named {layer!r}.{did_you_mean(layer, known)}"
        )
    return layer


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
    for name, _ in net.named_modules():
        if name.rpartition(".")[2] in _NAMES_THINGS:
            return str(name)
    weighted = [name for name, part in net.named_modules() if list(part.parameters(recurse=False))]
    if not weighted or weighted[-1] == "":
        raise _no_head(net, "it has no layers with weights")
    if any(word in weighted[-1] for word in ("bbox", "box_", "regression")):
        raise _no_head(net, f"its last layer with weights, {weighted[-1]!r}, says where things are")
    last = net.get_submodule(weighted[-1])
    if not isinstance(last, (nn.Linear, nn.Conv2d)):
        raise _no_head(net, f"its last layer with weights, {weighted[-1]!r}, is a {_kind(last)}")
    return str(weighted[-1])


def _kind(part: nn.Module) -> str:
    return type(part).__name__


def _no_head(net: nn.Module, reason: str) -> InputError:
    return InputError(
        f"{_kind(net)} has no classifier that could be found: {reason}. Name the layer yourself: "
        "head='name' where it is asked for, or net.head_layer = 'name'."
    )
