"""Every network's classifier: the layer whose input is the penultimate representation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

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
    name = _named(net, _layer_name(net) if layer is None else layer)
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
    return {
        name: part
        for name, part in net.named_modules()
        if name and "parametrizations" not in name.split(".")
    }


def weighted_parts(net: nn.Module) -> dict[str, nn.Module]:
    """The parts of a network that hold weights of their own."""
    return {name: part for name, part in named_parts(net).items() if _has_weights(part)}


def said(net: nn.Module) -> str | None:
    """The classifier by what the network itself says of it, None where it says nothing."""
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
    """Of the layers in the order they were called, the classifier the answer comes from."""
    for name in reversed(list(called)):
        if matters(name):
            part = net.get_submodule(name)
            if getattr(_matrix(part), "ndim", 0) != 2 or isinstance(part, nn.Embedding):
                kind = _kind(part)
                raise _no_head(net, f"the last layer its answer needs, {name!r}, is a {kind}")
            return name
    raise _no_head(net, "its answer changes with none of its layers")


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
    if isinstance(weight, Tensor) and weight.ndim == 4 and weight.shape[2:] == (1, 1):
        return weight[:, :, 0, 0]
    return weight


def _weights(layer: nn.Module) -> tuple[Any, Any]:
    if hasattr(layer, "propagate"):
        return convolution_weights(layer)
    weight: Any = getattr(layer, "weight", None)
    bias: Any = getattr(layer, "bias", None)
    if _is_packed(layer):
        return weight().dequantize(), bias() if callable(bias) else bias
    return weight, bias


def _named(net: nn.Module, layer: str) -> str:
    known = list(named_parts(net))
    if layer not in known:
        raise UnknownNameError(
            f"{_kind(net)} has no layer named {layer!r}.{did_you_mean(layer, known)}"
        )
    return layer


def _layer_name(net: nn.Module) -> str:
    name = said(net)
    if name is not None:
        return name
    weighted = weighted_parts(net)
    if not weighted:
        raise _no_head(net, "it has no layers with weights")
    name, last = next(reversed(weighted.items()))
    if any(word in name for word in ("bbox", "box_", "regression")):
        raise _no_head(net, f"its last layer with weights, {name!r}, says where things are")
    if not isinstance(last, (nn.Linear, nn.Conv2d)) and not _is_packed(last):
        raise _no_head(net, f"its last layer with weights, {name!r}, is a {_kind(last)}")
    return name


def _kind(part: nn.Module) -> str:
    return type(part).__name__


def _no_head(net: nn.Module, reason: str) -> InputError:
    return InputError(
        f"{_kind(net)} has no classifier that could be found: {reason}. Name the layer yourself: "
        "head='name' where it is asked for, or net.head_layer = 'name'."
    )
