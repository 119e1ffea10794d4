"""Every network's classifier, with its rows: the layer whose input is the penultimate representation.

It is found by what a network declares, by the names of its layers, then by their shapes: the one linear layer whose
output no other layer takes. A person may name it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from likewise.errors import quoted_list
from likewise.networks.anatomy.layers import (
    classifier_within,
    declared_head,
    declared_layers,
    distinct,
    has_weights,
    is_linear,
    matrix,
    named_parts,
    no_classifier,
    only_one,
    rows_of,
    weighted_parts,
    width_taken,
)
from likewise.networks.inputs.normalisation import unwrapped


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
    name = _layer_name(net, classes) if layer is None else classifier_within(net, layer)
    weight, bias = rows_of(net, name)
    return Head(weight.detach(), bias.detach() if isinstance(bias, Tensor) else None, name)


def last_that_matters(net: nn.Module, called: Iterable[str], matters: Callable[[str], bool]) -> str:
    """Of the calls of layers in their order (`fc`, `fc#2`), the one the answer comes from."""
    for call in reversed(list(called)):
        if matters(call):
            name = call.partition("#")[0]
            part = net.get_submodule(name)
            if getattr(matrix(part), "ndim", 0) != 2 or isinstance(part, nn.Embedding):
                kind = type(part).__name__
                raise no_classifier(net, f"the last layer its answer needs, {name!r}, is a {kind}")
            return call
    raise no_classifier(net, "its answer changes with none of its layers")


def _layer_name(net: nn.Module, classes: int | None) -> str:
    if hasattr(net, "head_layer"):
        return classifier_within(net, str(declared_head(net)))
    layers = declared_layers(net)
    if layers:
        return only_one(net, layers)
    weighted = weighted_parts(net)
    if not weighted:
        raise no_classifier(net, "it has no layers with weights")
    end = _end_of_row(net)
    if end is not None:
        return end
    found = _candidates(net, weighted, classes)
    if not found:
        last, counts = next(reversed(weighted)), _declared_counts(net)[:2]
        reason = f"its last layer with weights, {last!r}, is a {type(weighted[last]).__name__}"
        if counts and is_linear(weighted[last]):
            reason = f"its configuration says {counts[0]} classes, and none of its layers has as many rows"
        raise no_classifier(net, reason)
    if len(found) > 1:
        raise no_classifier(net, f"{quoted_list(found)} could each be it, and only a forward pass tells which")
    return found[0]


def _end_of_row(net: nn.Module) -> str | None:
    """The last layer of a Sequential, whose layers are called as they are written down."""
    if not isinstance(net, nn.Sequential):
        return None
    for name, child in reversed(list(net.named_children())):
        if any(map(has_weights, child.modules())):
            if not named_parts(child):
                if not is_linear(child):
                    kind = type(child).__name__
                    raise no_classifier(net, f"its last layer with weights, {name!r}, is a {kind}")
                return name
            within = _end_of_row(child)
            return None if within is None else f"{name}.{within}"
    return None


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
    taken = {name: width_taken(part) for name, part in weighted.items()}
    free = [
        name for name in fitting if not any(widths[name] == given for other, given in taken.items() if other != name)
    ]
    found = free or fitting
    least = min(map(_depth, found), default=(0, 0))
    outer = [name for name in found if _depth(name) == least]
    named = [name for name in outer if "classif" in name] if counts else []
    return distinct(net, named or outer)


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
