"""Rules that find the classifier of a network: by what it declares, by the names, order and shapes of its layers.

Each gives the names of the layers that classify, none where it has no answer. `classifier.py` asks them in turn.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import nn

from likewise.errors import UnknownNameError, did_you_mean, quoted_list
from likewise.networks.anatomy.calls import Ask, no_classifier
from likewise.networks.anatomy.layers import (
    has_weights,
    input_width,
    is_linear,
    matrix,
    submodules,
    weighted_layers,
    without_shared,
)

# What libraries call the layer that says what a thing is; the first of these that a network has.
_CLASS_LAYERS = (
    "cls_score",  # torchvision's R-CNNs
    "class_labels_classifier",  # DETR, YOLOS
    "class_predictor",  # MaskFormer, Mask2Former
    "class_embed",  # deformable DETR, RT-DETR, OneFormer
    "classification_head",  # torchvision's RetinaNet, FCOS and SSD
)
_OF_TORCHVISION = ("fc", "classifier", "head", "heads")  # where its other networks have theirs


@dataclass(frozen=True)
class Hints:
    """What may help to find a classifier: how many classes there are, and a pass that can be run."""

    classes: int | None = None
    ask: Ask | None = None


def by_attribute(net: nn.Module, hints: Hints) -> list[str]:
    """The layer that the network's `head_layer` names."""
    if not hasattr(net, "head_layer"):
        return []
    if net.head_layer is None:
        raise no_classifier(net, "it does not classify by a linear layer")
    return [named_classifier(net, str(net.head_layer))]


def by_get_classifier(net: nn.Module, hints: Hints) -> list[str]:
    """What `get_classifier` gives, as networks of timm have it."""
    return _within(net, from_get_classifier(net))


def by_name(net: nn.Module, hints: Hints) -> list[str]:
    """The outermost layers with a name that libraries give to layers that name things."""
    layers = submodules(net)
    for word in _CLASS_LAYERS:
        names = [name for name in layers if name.rpartition(".")[2] == word]
        least = min((name.count(".") for name in names), default=0)
        classifiers = _within(net, [name for name in names if name.count(".") == least])
        if classifiers and all(any(map(has_weights, layers[name].modules())) for name in classifiers):
            return classifiers
    return []


def by_library(net: nn.Module, hints: Hints) -> list[str]:
    """Where the networks of PyTorch Geometric and torchvision have theirs."""
    if hasattr(net, "convs") and hasattr(net, "jk_mode"):
        convolutions: Any = net.convs
        return ["lin" if hasattr(net, "lin") else f"convs.{len(convolutions) - 1}"]
    if type(net).__module__.startswith("torchvision.models."):
        return _within(net, [name for name in _OF_TORCHVISION if hasattr(net, name)])
    return []


def by_order(net: nn.Module, hints: Hints) -> list[str]:
    """The last layer of a Sequential, whose layers are called as they are written down."""
    if not isinstance(net, nn.Sequential):
        return []
    for name, child in reversed(list(net.named_children())):
        if any(map(has_weights, child.modules())):
            if submodules(child):
                return [f"{name}.{inner}" for inner in by_order(child, hints)]
            if not is_linear(child):
                raise no_classifier(net, f"its last layer with weights, {name!r}, is a {type(child).__name__}")
            return [name]
    return []


def by_shape(net: nn.Module, hints: Hints) -> list[str]:
    """The linear layers whose output no other layer takes, the outermost ones where there are more.

    As many rows as there are classes, or as a configuration says, are evidence; where a configuration says it
    and no layer has as many, there is no classifier.
    """
    layers = weighted_layers(net)
    rows = {name: matrix(layer).shape[0] for name, layer in layers.items() if is_linear(layer)}
    rows = {name: count for name, count in rows.items() if not _is_box_head(name)}
    rows = {name: count for name, count in rows.items() if not _is_auxiliary(name)} or rows
    counts = configured_counts(net)
    names = _with_rows(rows, hints.classes, counts)
    taken = {name: input_width(layer) for name, layer in layers.items()}
    unused = [n for n in names if not any(rows[n] == width for other, width in taken.items() if other != n)]
    names = unused or names
    least = min(map(_depth, names), default=(0, 0))
    names = [name for name in names if _depth(name) == least]
    named = [name for name in names if "classif" in name] if counts else []
    return without_shared(net, named or names)


# The layers that answer within a module.


def named_classifier(net: nn.Module, layer: str) -> str:
    """The layer that answers within the one that is named."""
    names = list(submodules(net))
    if layer not in names:
        raise UnknownNameError(f"{type(net).__name__} has no layer named {layer!r}.{did_you_mean(layer, names)}")
    layers = classifier_layers(net, layer)
    if len(layers) > 1:
        raise no_classifier(net, f"{quoted_list(layers)} answer together, so that no one layer is it")
    return layers[0]


def _within(net: nn.Module, names: list[str]) -> list[str]:
    return [layer for name in names for layer in classifier_layers(net, name)]


def classifier_layers(net: nn.Module, name: str) -> list[str]:
    """The layers that answer within a module of a network: itself, its last, or several side by side.

    >>> classifier_layers(nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))), "0")
    ['0.2']
    """
    module = net.get_submodule(name)
    if isinstance(module, nn.ModuleList):
        return _of_decoder(net, name, module)
    layers = weighted_layers(module)
    layers = {inner: layers[inner] for inner in layers if set(inner.split(".")) & set(_CLASS_LAYERS)} or layers
    is_whole = hasattr(module, "propagate") or hasattr(module, "num_columns")  # a graph's layer, a row of torchvision's
    if is_whole or has_weights(module) or not layers:
        return [name]
    last = next(reversed(layers))
    if hasattr(module, "num_anchors"):
        return [f"{name}.{last}"]
    if not is_linear(layers[last]):
        return [name]
    count = matrix(layers[last]).shape[0]
    alike = [inner for inner, layer in layers.items() if is_linear(layer) and matrix(layer).shape[0] == count]
    together = count not in map(input_width, layers.values())  # else one may take the other's output
    return [f"{name}.{inner}" for inner in (alike if together else [last])]


def _of_decoder(net: nn.Module, name: str, classifiers: nn.ModuleList) -> list[str]:
    """Of a list of classifiers one per block of a decoder, the last block's; of any other list, all that differ."""
    depth = getattr(getattr(net, "config", None), "decoder_layers", None)
    names = _within(net, [f"{name}.{i}" for i in range(len(classifiers))])
    if isinstance(depth, int) and 0 < depth <= len(names):  # one more proposes regions
        return [names[depth - 1]]
    return without_shared(net, names)


# What `get_classifier` gives: layers that classify, or whole heads with what they do before.


def from_get_classifier(net: nn.Module) -> list[str]:
    """The names of the modules that `get_classifier` gives, none where there is no such method."""
    method: Any = getattr(net, "get_classifier", None)
    modules = list(_flat(method())) if callable(method) else []
    names = {module: name for name, module in submodules(net).items()}
    if not modules or any(module not in names for module in modules):
        return []
    if all(isinstance(module, nn.Identity) for module in modules):
        raise no_classifier(net, f"by its get_classifier it is {names[modules[0]]!r}, which is an Identity")
    return [names[module] for module in modules]


def _flat(modules: Any) -> Iterator[nn.Module]:
    if isinstance(modules, (tuple, list, nn.ModuleList)):
        for entry in modules:
            yield from _flat(entry)
    elif isinstance(modules, nn.Module):
        yield modules


def whole_heads(net: nn.Module) -> tuple[str, ...]:
    """The modules whose inputs timm calls `pre_logits`.

    A head that takes `pre_logits` pools before its layer `fc`, any other is all classifier: a norm in it too.
    """
    return tuple(dict.fromkeys(_whole_head(net, name) for name in from_get_classifier(net)))


def _whole_head(net: nn.Module, name: str) -> str:
    above = name.rpartition(".")[0]
    if above and "." not in above:
        whole = net.get_submodule(above)
        if type(whole) not in (nn.Sequential, nn.ModuleList) and not _takes_pre_logits(whole):
            return above
    module = net.get_submodule(name)
    pools = isinstance(getattr(module, "fc", None), nn.Module) and _takes_pre_logits(module)
    return f"{name}.fc" if pools else name


def _takes_pre_logits(module: nn.Module) -> bool:
    return "pre_logits" in inspect.signature(module.forward).parameters


# The shapes of layers.


def configured_counts(net: nn.Module) -> list[int]:
    """How many rows a classifier has by the configuration of transformers, the likeliest first."""
    config: Any = getattr(net, "config", None)
    labels, words = (getattr(config, name, None) for name in ("num_labels", "vocab_size"))
    if not isinstance(labels, int):
        return []
    return [labels, labels + 1, *([words] if isinstance(words, int) else [])]  # one more: no object


def _with_rows(rows: dict[str, int], classes: int | None, counts: list[int]) -> list[str]:
    """The layers with as many rows as there are classes; all where nothing says how many those are."""
    by_count = [[name for name, own_rows in rows.items() if own_rows == count] for count in (classes, *counts)]
    names = next(filter(None, by_count[:3]), [] if counts else list(rows))
    if classes is None:  # some are trained to predict words too
        names += [name for more in by_count[3:] for name in more if name not in names]
    return names


def _depth(name: str) -> tuple[int, int]:
    """How deep in rows of blocks a layer is; within rows, how deep at all."""
    steps = name.split(".")
    rows = sum(step.isdigit() for step in steps)
    return rows, len(steps) if rows else 0


def _is_box_head(name: str) -> bool:
    """Whether a layer of a detector gives boxes rather than classes."""
    return any(word in name for word in ("bbox", "box_", "regression"))


def _is_auxiliary(name: str) -> bool:
    """Whether a layer helps in training only, by its name: `aux_classifier`, `AuxLogits`, `auxiliary_head`."""
    return any(step.lower().startswith("aux") and len(step) > 3 for step in name.split("."))
