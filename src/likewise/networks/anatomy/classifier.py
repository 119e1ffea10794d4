"""Every network's classifier: the layer whose input is the penultimate representation, and its rows, one per class.

Which layer it is, a person may say. Otherwise `RULES` are asked in turn: the first that answers wins, and is named
where its answer is refused. What a network declares is believed. Where nothing is declared, a pass shows the call that
answers; without inputs for a pass there is the order of a Sequential, then the shapes of layers.

Detectors and segmenters answer more than once: one layer says what a thing is, its neighbours where it is, and others
help in training only. A detector may also have one such layer per block of its decoder, of which the last answers, or a
small network in its place, whose last layer answers. It may have several rows per class, one per anchor of a place, or
one layer per size of feature map. They are answers of their own, so a class is all its rows side by side: what two
classes have in common is then the sum of what they have in common at each anchor.

Several classifiers of timm answer together: then all their inputs are penultimate, and no one layer has the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from likewise.errors import ForwardError, InputError, LikewiseError, NoClassifierError, quoted_list
from likewise.networks.anatomy.calls import Ask, Calls, call_that_answers, no_classifier, record_calls, same_numbers
from likewise.networks.anatomy.layers import has_matrix, is_linear, weighted_layers, weights, windows
from likewise.networks.anatomy.outputs import possible_answers, why_no_logits
from likewise.networks.anatomy.rules import (
    Hints,
    by_attribute,
    by_get_classifier,
    by_library,
    by_name,
    by_order,
    by_shape,
    configured_counts,
    from_get_classifier,
    named_classifier,
    whole_heads,
)
from likewise.networks.inputs.normalisation import unwrapped


@dataclass(frozen=True, eq=False)
class Head:
    """A linear classifier.

    Attributes:
        weight: One row per class, (classes, width); of a detector with anchors (classes, anchors x width).
        bias: One number per class, or None; a detector with anchors has none.
        layer_name: The name of the layer in the network.
    """

    weight: Tensor
    bias: Tensor | None
    layer_name: str


def head(net: nn.Module, layer: str | None = None, classes: int | None = None) -> Head:
    """The classifier of a network, or the `layer` that is named to be it.

    The rules of `anatomy/classifier.py` are asked in turn; what only a forward pass could tell is refused.

    Args:
        net: The network.
        layer: The name of the layer, or of a module that holds it.
        classes: How many classes there are, where that is known.

    Raises:
        NoClassifierError: There is none, or several layers could be it.

    Example:
        >>> head(nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))).layer_name
        '2'
    """
    net = unwrapped(net)
    name = find(net, RULES, Hints(classes)) if layer is None else named_classifier(net, layer)
    weight, bias = rows_of(net, name)
    return Head(weight.detach(), bias.detach() if isinstance(bias, Tensor) else None, name)


def declared_head(net: nn.Module, layer: str | None = None) -> str | None:
    """The classifier that is named, or that the network declares; None where neither is, or it declares several."""
    net = unwrapped(net)
    if layer is None:
        names = next(filter(None, (rule(net, Hints()) for rule in DECLARED)), [])
        if len(names) != 1:
            return None
        if hasattr(net.get_submodule(names[0]), "num_columns"):
            raise no_classifier(net, f"{names[0]!r} is one layer per size of feature map")
    name = names[0] if layer is None else named_classifier(net, layer)
    rows_of(net, name)  # refused where it has none
    return name


def declared_classifiers(net: nn.Module, layer: str | None = None) -> tuple[str, ...]:
    """The same with all classifiers of timm, none where nothing is declared."""
    whole = () if layer is not None or hasattr(unwrapped(net), "head_layer") else whole_heads(unwrapped(net))
    name = None if whole else declared_head(net, layer)
    return whole if name is None else (name,)


def answering_call(network: nn.Module, ask: Ask) -> str:
    """The call of the layer that answers: the layer the network declares, else found by a pass that `ask` runs."""
    return declared_head(network) or find(unwrapped(network), INFERRED, Hints(ask=ask))


def find(net: nn.Module, rules: Collection[Rule], hints: Hints) -> str:
    """The layer that the first of the rules that answers gives, refused where that gives several."""
    for rule in rules:
        names = rule(net, hints)
        if len(names) > 1:
            verb = "answer together, so that no one layer is it"
            if rule in INFERRED:
                verb = "could each be it, and only a forward pass tells which"
            raise no_classifier(net, f"by {RULES[rule]}, {quoted_list(names)} {verb}")
        if names:
            return names[0]
    raise no_classifier(net, _why_none(net))


def by_pass(net: nn.Module, hints: Hints) -> list[str]:
    """The call that answers in a pass, where one can be run."""
    call = None
    if hints.ask is not None:
        with suppress(ForwardError):  # where this fails, the pass itself will, and says so better
            calls, output = record_calls(net, hints.ask)
            call = find_call(net, calls, output, hints.ask)
    return [] if call is None else [call]


Rule = Callable[[nn.Module, Hints], list[str]]
DECLARED: dict[Rule, str] = {
    by_attribute: "its head_layer",
    by_get_classifier: "its get_classifier",
    by_name: "the names of its layers",
    by_library: "the names its library gives to layers",
}
INFERRED: dict[Rule, str] = {
    by_pass: "a forward pass",
    by_order: "the order of its layers",
    by_shape: "the shapes of its layers",
}
RULES = DECLARED | INFERRED


def _why_none(net: nn.Module) -> str:
    layers = weighted_layers(net)
    if not layers:
        return "it has no layers with weights"
    (last, layer), counts = list(layers.items())[-1], configured_counts(net)
    if counts and is_linear(layer):
        return f"its configuration says {counts[0]} classes, and none of its layers has as many rows"
    return f"its last layer with weights, {last!r}, is a {type(layer).__name__}"


# The rows of a classifier.


def rows_of(net: nn.Module, name: str) -> tuple[Tensor, Any]:
    """The rows of a classifier, one per class, and its bias where it has one; refused where it has no such rows."""
    layer = net.get_submodule(name)
    rows = _rows_by_anchor(net, name)
    if rows is not None:
        return rows, None
    weight, bias = windows(layer), weights(layer)[1]
    if not isinstance(weight, Tensor) or weight.ndim != 2:
        raise no_classifier(net, f"its layer {name!r} is a {type(layer).__name__}")
    return weight, bias


def _rows_by_anchor(net: nn.Module, name: str) -> Tensor | None:
    """The rows of each class side by side, of a layer of torchvision that answers once per anchor; else None.

    Such a layer gives all classes of the first anchor, then all of the second.
    """
    layer: Any = net.get_submodule(name)
    columns = getattr(layer, "num_columns", None)
    if isinstance(columns, int):  # SSD: one layer per size of feature map
        layers = [list(weighted_layers(entry).values())[-1:] or [entry] for entry in layer.module_list]
        return torch.cat([_side_by_side(last, columns) for [last] in layers], dim=1)
    owner: Any = net.get_submodule(name.rpartition(".")[0])
    if isinstance(getattr(owner, "num_anchors", None), int) and isinstance(getattr(owner, "num_classes", None), int):
        return _side_by_side(layer, owner.num_classes)
    return None


def _side_by_side(layer: nn.Module, classes: int) -> Tensor:
    weight: Tensor = windows(layer)
    return weight.reshape(-1, classes, weight.shape[1]).movedim(0, 1).flatten(1)


# The answer of a pass.


def answer_field(net: nn.Module, output: Any, label: str, layer: str | None = None, calls: Calls | None = None) -> Any:
    """The field of an output that holds the answer: that of as many columns as there are classes.

    With the calls of a pass, it may also be what a layer made of another field. None means what `first_tensor`
    finds. Refused where nothing says which of several it is.
    """
    rows = possible_answers(output)
    if not rows or hasattr(unwrapped(net), "main_input_name"):  # those of transformers give their answer first
        return None
    classes = None
    with suppress(LikewiseError):
        classes = len(head(net, layer).weight)
    for field, value in rows.items():
        if value.shape[1] == classes:
            return field
    for field, value in rows.items():
        widths = {other.shape[1] for key, other in rows.items() if key != field}
        names = [call.partition("#")[0] for call, recorded in (calls or {}).items() if same_numbers(recorded, value)]
        makers = [unwrapped(net).get_submodule(name) for name in names]
        if any(has_matrix(layer) and getattr(layer, "in_features", None) in widths for layer in makers):
            return field
    shapes = ", ".join(f"{field!r} {tuple(value.shape)}" for field, value in rows.items())
    raise InputError(
        f"{label} gives several tensors and nothing says which is its answer: {shapes}. Name the layer "
        "that gives it: head='name' where it is asked for, or net.head_layer = 'name'."
    )


def find_call(network: nn.Module, calls: Calls, output: Any, ask: Ask | None) -> str | None:
    """The call that answered in a pass, from what was recorded of it and its output; None where there is no tensor."""
    net = unwrapped(network)
    reason = why_no_logits(net, output)
    if reason:
        raise no_classifier(net, reason)
    field = answer_field(net, output, type(net).__name__, calls=calls)
    return call_that_answers(net, calls, output, field, ask)


def gives_logits(net: nn.Module, output: Any) -> bool:
    """Whether what a network gives may be logits, as far as that is known."""
    try:
        from_get_classifier(unwrapped(net))
    except NoClassifierError:
        return False
    return not why_no_logits(net, output)
