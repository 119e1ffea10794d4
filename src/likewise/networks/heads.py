"""Every network's classifier: the layer whose input is the penultimate representation, and its rows.

It is found by what a network declares, by the names of its layers, then by their shapes. Detectors and segmenters
answer more than once: one layer says what a thing is, its neighbours where it is, and others help in training only. A
detector may also have one such layer per block of its decoder, of which the last answers, or a small network in its
place, whose last layer answers.

A detector may have several rows per class, one per anchor of a place, or one layer per size of feature map.
They are answers of their own, so a class is all its rows side by side: what two classes have in common is
then the sum of what they have in common at each anchor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from likewise.errors import NoClassifierError, UnknownNameError, did_you_mean, quoted_list
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

# What libraries call the layer that says what a thing is; the first of these that a network has.
_NAMES_THINGS = (
    "cls_score",  # torchvision's R-CNNs
    "class_labels_classifier",  # DETR, YOLOS
    "class_predictor",  # MaskFormer, Mask2Former
    "class_embed",  # deformable DETR, RT-DETR, OneFormer
    "classification_head",  # torchvision's RetinaNet, FCOS and SSD
)
_OF_TORCHVISION = ("fc", "classifier", "head", "heads")  # where its other networks have theirs
_TAKES = ("in_features", "in_channels", "num_features", "input_size", "embed_dim")


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
    name = _layer_name(net, classes) if layer is None else _only(net, _answering(net, _named(net, layer)))
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
    layers = _declared_layers(net)
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
        return _only(net, _answering(net, _named(net, str(declared_head(net)))))
    layers = _declared_layers(net)
    if layers:
        return _only(net, layers)
    weighted = weighted_parts(net)
    if not weighted:
        raise no_classifier(net, "it has no layers with weights")
    end = _end_of_row(net)
    if end is not None:
        return end
    found = _candidates(net, weighted, classes)
    if not found:
        last, counts = next(reversed(weighted)), _declared_counts(net)[:2]
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


# Which layers could name classes.


def _declared_layers(net: nn.Module) -> list[str]:
    """The layers a network itself, or the name a library gave them, says to classify: often one or none."""
    parts = named_parts(net)
    ask: Any = getattr(net, "get_classifier", None)
    if callable(ask):
        answer = ask()
        wanted = answer if isinstance(answer, (tuple, list)) else [answer]
        found = [name for name, part in parts.items() if any(part is one for one in wanted)]
        if found:
            return [layer for name in found for layer in _answering(net, name)]
    if hasattr(net, "convs") and hasattr(net, "jk_mode"):  # the models of PyTorch Geometric
        layers: Any = net.convs
        return ["lin" if hasattr(net, "lin") else f"convs.{len(layers) - 1}"]
    for word in _NAMES_THINGS:
        places = [name for name in parts if name.rpartition(".")[2] == word]
        outermost = [name for name in places if name.count(".") == min(map(_steps, places))]
        layers = [layer for name in outermost for layer in _answering(net, name)]
        if layers and all(any(map(has_weights, parts[layer].modules())) for layer in layers):
            return layers
    if type(net).__module__.startswith("torchvision.models."):
        return [layer for name in _OF_TORCHVISION if hasattr(net, name) for layer in _answering(net, name)]
    return []


def _answering(net: nn.Module, name: str) -> list[str]:
    """The layers that answer within a part of a network: itself, its last, or several side by side.

    >>> _answering(nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))), "0")
    ['0.2']
    """
    part = net.get_submodule(name)
    if isinstance(part, nn.ModuleList):
        return _of_row(net, name, part)
    inside = weighted_parts(part)
    inside = {other: inside[other] for other in inside if set(other.split(".")) & set(_NAMES_THINGS)} or inside
    whole = hasattr(part, "propagate") or hasattr(part, "num_columns")  # a graph's layer, a row of torchvision's
    if whole or has_weights(part) or not inside:
        return [name]
    last = next(reversed(inside))
    if hasattr(part, "num_anchors"):
        return [f"{name}.{last}"]
    if not is_linear(inside[last]):
        return [name]
    width = matrix(inside[last]).shape[0]
    alike = [other for other, layer in inside.items() if is_linear(layer) and matrix(layer).shape[0] == width]
    together = width not in map(_width_taken, inside.values())  # else one may be given the other's output
    return [f"{name}.{layer}" for layer in (alike if together else [last])]


def _of_row(net: nn.Module, name: str, row: nn.ModuleList) -> list[str]:
    """Of a row of classifiers one per block of a decoder, the last block's; of any other, all that differ."""
    depth = getattr(getattr(net, "config", None), "decoder_layers", None)
    names = [layer for i in range(len(row)) for layer in _answering(net, f"{name}.{i}")]
    if isinstance(depth, int) and 0 < depth <= len(names):  # one more proposes regions
        return [names[depth - 1]]
    return _distinct(net, names)


def _distinct(net: nn.Module, names: Iterable[str]) -> list[str]:
    """Layers without those that share their weights with an earlier one."""
    kept: dict[Any, str] = {}
    for name in names:
        weight = getattr(net.get_submodule(name), "weight", None)
        kept.setdefault(id(weight) if isinstance(weight, Tensor) else name, name)
    return list(kept.values())


def _declared_counts(net: nn.Module) -> list[int]:
    """How many rows a classifier has by the configuration of transformers, the likeliest first."""
    config: Any = getattr(net, "config", None)
    labels, words = (getattr(config, name, None) for name in ("num_labels", "vocab_size"))
    if not isinstance(labels, int):
        return []
    return [labels, labels + 1, *([words] if isinstance(words, int) else [])]  # one more: no object


def _candidates(net: nn.Module, weighted: Mapping[str, nn.Module], classes: int | None) -> list[str]:
    """The linear layers whose output no other layer takes, the outermost ones where there are more.

    As many rows as `classes`, or as a configuration says, are evidence; where a configuration says it
    and no layer has as many, there is no classifier.
    """
    widths = {name: matrix(part).shape[0] for name, part in weighted.items() if is_linear(part)}
    widths = {name: width for name, width in widths.items() if not _says_where(name)}
    widths = {name: width for name, width in widths.items() if not _is_auxiliary(name)} or widths
    counts = _declared_counts(net)
    by_count = [[name for name, width in widths.items() if width == count] for count in (classes, *counts)]
    fitting = next(filter(None, by_count[:3]), [] if counts else list(widths))
    if classes is None:  # some are trained to name words beside
        fitting += [name for names in by_count[3:] for name in names if name not in fitting]
    taken = {name: _width_taken(part) for name, part in weighted.items()}
    free = [
        name for name in fitting if not any(widths[name] == given for other, given in taken.items() if other != name)
    ]
    found = free or fitting
    least = min(map(_depth, found), default=(0, 0))
    outer = [name for name in found if _depth(name) == least]
    named = [name for name in outer if "classif" in name] if counts else []
    return _distinct(net, named or outer)


def _steps(name: str) -> int:
    return name.count(".")


def _depth(name: str) -> tuple[int, int]:
    """How deep in rows of blocks a layer is; within rows, how deep at all."""
    steps = name.split(".")
    rows = sum(step.isdigit() for step in steps)
    return rows, len(steps) if rows else 0


def _says_where(name: str) -> bool:
    """Whether a layer of a detector gives places rather than names."""
    return any(word in name for word in ("bbox", "box_", "regression"))


def _is_auxiliary(name: str) -> bool:
    """Whether a layer helps in training only, by its name: `aux_classifier`, `AuxLogits`, `auxiliary_head`."""
    return any(step.lower().startswith("aux") and len(step) > 3 for step in name.split("."))


def _width_taken(part: nn.Module) -> int | None:
    """The width of what a layer takes, where its weights tell."""
    for name in _TAKES:
        width = getattr(part, name, None)
        if isinstance(width, int):
            return width
    shape = getattr(part, "normalized_shape", None)
    return int(shape[-1]) if isinstance(shape, tuple) and shape else None
