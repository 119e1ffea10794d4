"""The parts of a network, their weights, and which of them is its classifier where that is named.

A linear layer is a matrix, one row per number it gives. So are convolutions (the window of each output in one
row), quantised layers, whose weights are given when asked for, and the layers of graph networks.

The classifier is named by a person, by the network itself (`head_layer`, or as timm's networks do) or by what a library
calls its layers. Detectors and segmenters answer more than once: one layer says what a thing is, its neighbours where
it is, and others help in training only. A detector may also have one such layer per block of its decoder, of which the
last answers, or a small network in its place, whose last layer answers. It may have several rows per class, one per
anchor of a place, or one layer per size of feature map. They are answers of their own, so a class is all its rows side
by side: what two classes have in common is then the sum of what they have in common at each anchor.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from likewise._base.compat import geometric
from likewise.errors import NoClassifierError, UnknownNameError, did_you_mean, quoted_list
from likewise.networks.inputs.normalisation import unwrapped

Receive = Callable[[str, nn.Module, Any], None]
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
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


def named_parts(net: nn.Module) -> dict[str, nn.Module]:
    """Every part of a network by name, without the network itself and what only makes weights.

    >>> from torch.nn.utils.parametrizations import weight_norm
    >>> list(named_parts(nn.Sequential(weight_norm(nn.Linear(2, 2)))))
    ['0']
    """
    return {name: part for name, part in net.named_modules() if name and "parametrizations" not in name.split(".")}


def named_layers(network: nn.Module) -> dict[str, nn.Module]:
    """Every part of a network by name, without the network itself and what wraps it."""
    return named_parts(unwrapped(network))


def weighted_parts(net: nn.Module) -> dict[str, nn.Module]:
    """The parts of a network that hold weights of their own."""
    return {name: part for name, part in named_parts(net).items() if has_weights(part)}


@contextmanager
def watch(
    modules: Mapping[str, nn.Module],
    receive: Receive,
    inputs_of: Mapping[str, nn.Module],
    *,
    first: Mapping[nn.Module, Callable[..., None]] | None = None,
) -> Iterator[Callable[[], None]]:
    """Hand on what these modules give, and what those in `inputs_of` are given, during one pass.

    The second call of a module is handed on as `name#2`; whoever watches several passes calls the result
    before each. Hooks in `first` get a call (module, arguments, arguments by name, output) before.
    """
    calls: Counter[str] = Counter()

    def hand_on(name: str, module: nn.Module, value: Any) -> None:
        calls[name] += 1
        receive(name if calls[name] == 1 else f"{name}#{calls[name]}", module, value)

    def after(name: str) -> Any:
        return lambda module, _args, output: hand_on(name, module, output)

    def before(name: str) -> Any:
        return lambda module, args, words: hand_on(name, module, args or words)

    hooks = []
    try:
        for module, on_call in (first or {}).items():
            hooks.append(module.register_forward_hook(on_call, with_kwargs=True))
        for name, module in modules.items():
            hooks.append(module.register_forward_hook(after(name)))
        for name, module in inputs_of.items():
            hooks.append(module.register_forward_pre_hook(before(name), with_kwargs=True))
        yield calls.clear
    finally:
        for hook in hooks:
            hook.remove()


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


# The part that classifies, by its name.


def declared_classifiers(net: nn.Module, layer: str | None = None) -> tuple[str, ...]:
    """The classifier that was named, or that the network declares; several of timm, none where neither is."""
    declared = () if layer is not None else classifiers_of_timm(unwrapped(net))
    named = None if declared else named_head(net, layer)
    return declared if named is None else (named,)


def named_head(net: nn.Module, layer: str | None = None) -> str | None:
    """The classifier that was named, or that the network declares; None where neither is."""
    named = layer if layer is not None else declared_head(net)
    if named is None:
        return None
    name = classifier_within(unwrapped(net), named)
    rows_of(unwrapped(net), name)  # refused where it has none
    return name


def declared_head(net: nn.Module) -> str | None:
    """The classifier by what the network itself says of it, None where it says nothing, or names several."""
    net = unwrapped(net)
    if hasattr(net, "head_layer"):
        if net.head_layer is None:
            raise no_classifier(net, "it does not classify by a linear layer")
        return str(net.head_layer)
    layers = declared_layers(net)
    if len(layers) == 1 and hasattr(net.get_submodule(layers[0]), "num_columns"):
        raise no_classifier(net, f"{layers[0]!r} is one layer per size of feature map")
    return layers[0] if len(layers) == 1 else None


def classifier_within(net: nn.Module, layer: str) -> str:
    """The layer that answers within the one that is named."""
    layers = list(named_parts(net))
    if layer not in layers:
        raise UnknownNameError(f"{type(net).__name__} has no layer named {layer!r}.{did_you_mean(layer, layers)}")
    return only_one(net, answering(net, layer))


def only_one(net: nn.Module, layers: list[str]) -> str:
    """The layer that answers, refused where several do together."""
    if len(layers) > 1:
        raise no_classifier(net, f"{quoted_list(layers)} answer together, so that no one layer is it")
    return layers[0]


def rows_of(net: nn.Module, name: str) -> tuple[Tensor, Any]:
    """The rows of a classifier, one per class, and its bias where it has one; refused where it has no such rows."""
    part = net.get_submodule(name)
    rows = _by_anchor(net, name)
    if rows is not None:
        return rows, None
    weight, bias = windows(part), weights(part)[1]
    if not isinstance(weight, Tensor) or weight.ndim != 2:
        raise no_classifier(net, f"its layer {name!r} is a {type(part).__name__}")
    return weight, bias


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


def no_classifier(net: nn.Module, reason: str) -> NoClassifierError:
    """The refusal of a network whose classifier cannot be found."""
    error = NoClassifierError(
        f"{type(net).__name__} has no classifier that could be found: {reason}. Name the layer yourself: "
        "head='name' where it is asked for, or net.head_layer = 'name'."
    )
    error.reason = reason
    return error


def declared_layers(net: nn.Module) -> list[str]:
    """The layers a network itself, or the name a library gave them, says to classify: often one or none."""
    parts = named_parts(net)
    ask: Any = getattr(net, "get_classifier", None)
    if callable(ask):
        answer = ask()
        wanted = answer if isinstance(answer, (tuple, list)) else [answer]
        found = [name for name, part in parts.items() if any(part is one for one in wanted)]
        if found:
            return [layer for name in found for layer in answering(net, name)]
    if hasattr(net, "convs") and hasattr(net, "jk_mode"):  # the models of PyTorch Geometric
        layers: Any = net.convs
        return ["lin" if hasattr(net, "lin") else f"convs.{len(layers) - 1}"]
    for word in _NAMES_THINGS:
        places = [name for name in parts if name.rpartition(".")[2] == word]
        outermost = [name for name in places if name.count(".") == min(map(_steps, places))]
        layers = [layer for name in outermost for layer in answering(net, name)]
        if layers and all(any(map(has_weights, parts[layer].modules())) for layer in layers):
            return layers
    if type(net).__module__.startswith("torchvision.models."):
        return [layer for name in _OF_TORCHVISION if hasattr(net, name) for layer in answering(net, name)]
    return []


def answering(net: nn.Module, name: str) -> list[str]:
    """The layers that answer within a part of a network: itself, its last, or several side by side.

    >>> answering(nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))), "0")
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
    together = width not in map(width_taken, inside.values())  # else one may be given the other's output
    return [f"{name}.{layer}" for layer in (alike if together else [last])]


def _of_row(net: nn.Module, name: str, row: nn.ModuleList) -> list[str]:
    """Of a row of classifiers one per block of a decoder, the last block's; of any other, all that differ."""
    depth = getattr(getattr(net, "config", None), "decoder_layers", None)
    names = [layer for i in range(len(row)) for layer in answering(net, f"{name}.{i}")]
    if isinstance(depth, int) and 0 < depth <= len(names):  # one more proposes regions
        return [names[depth - 1]]
    return distinct(net, names)


def distinct(net: nn.Module, names: Iterable[str]) -> list[str]:
    """Layers without those that share their weights with an earlier one."""
    kept: dict[Any, str] = {}
    for name in names:
        weight = getattr(net.get_submodule(name), "weight", None)
        kept.setdefault(id(weight) if isinstance(weight, Tensor) else name, name)
    return list(kept.values())


def width_taken(part: nn.Module) -> int | None:
    """The width of what a layer takes, where its weights tell."""
    for name in _TAKES:
        width = getattr(part, name, None)
        if isinstance(width, int):
            return width
    shape = getattr(part, "normalized_shape", None)
    return int(shape[-1]) if isinstance(shape, tuple) and shape else None


def _steps(name: str) -> int:
    return name.count(".")


def classifiers_of_timm(net: nn.Module) -> tuple[str, ...]:
    """The classifiers that a network of timm names; of its own kinds of head, the layer that classifies."""
    ask: Any = getattr(net, "get_classifier", None)
    parts = list(_each_module(ask())) if callable(ask) else []
    names = {part: name for name, part in named_parts(net).items()}
    if not parts or any(part not in names for part in parts):
        return ()
    if all(isinstance(part, nn.Identity) for part in parts):
        raise no_classifier(net, f"its layer {names[parts[0]]!r} is an Identity")
    return tuple(dict.fromkeys(_whole_head(net, part, names[part]) for part in parts))


def _each_module(given: Any) -> Iterator[nn.Module]:
    if isinstance(given, (tuple, list, nn.ModuleList)):
        for entry in given:
            yield from _each_module(entry)
    elif isinstance(given, nn.Module):
        yield given


def _whole_head(net: nn.Module, part: nn.Module, name: str) -> str:
    """The part of a head of timm that classifies, as its `pre_logits` counts it.

    A head that takes `pre_logits` pools before its layer `fc`, any other is all classifier: a norm in it too.
    """
    above = name.rpartition(".")[0]
    if above and "." not in above:
        whole = net.get_submodule(above)
        if type(whole) not in (nn.Sequential, nn.ModuleList) and not _takes_pre_logits(whole):
            return above
    pools = isinstance(getattr(part, "fc", None), nn.Module) and _takes_pre_logits(part)
    return f"{name}.fc" if pools else name


def _takes_pre_logits(part: nn.Module) -> bool:
    return "pre_logits" in inspect.signature(part.forward).parameters
