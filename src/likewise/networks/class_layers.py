"""Which layers of a network could name classes: by what it declares, by their names, by their shapes.

Detectors and segmenters answer more than once: one layer says what a thing is, its neighbours where it is, and
others help in training only. A detector may also have one such layer per block of its decoder, of which the
last answers, or a small network in its place, whose last layer answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor, nn

from likewise.networks.parts import has_weights, is_linear, matrix, named_parts, weighted_parts

# What libraries call the layer that says what a thing is; the first of these that a network has.
NAMES_THINGS = (
    "cls_score",  # torchvision's R-CNNs
    "class_labels_classifier",  # DETR, YOLOS
    "class_predictor",  # MaskFormer, Mask2Former
    "class_embed",  # deformable DETR, RT-DETR, OneFormer
    "classification_head",  # torchvision's RetinaNet, FCOS and SSD
)
_OF_TORCHVISION = ("fc", "classifier", "head", "heads")  # where its other networks have theirs
_TAKES = ("in_features", "in_channels", "num_features", "input_size", "embed_dim")


def declared(net: nn.Module) -> list[str]:
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
    for word in NAMES_THINGS:
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
    inside = {other: inside[other] for other in inside if set(other.split(".")) & set(NAMES_THINGS)} or inside
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


def declared_counts(net: nn.Module) -> list[int]:
    """How many rows a classifier has by the configuration of transformers, the likeliest first."""
    config: Any = getattr(net, "config", None)
    labels, words = (getattr(config, name, None) for name in ("num_labels", "vocab_size"))
    if not isinstance(labels, int):
        return []
    return [labels, labels + 1, *([words] if isinstance(words, int) else [])]  # one more: no object


def candidates(net: nn.Module, weighted: Mapping[str, nn.Module], classes: int | None) -> list[str]:
    """The linear layers whose output no other layer takes, the outermost ones where there are more.

    As many rows as `classes`, or as a configuration says, are evidence; where a configuration says it
    and no layer has as many, there is no classifier.
    """
    widths = {name: matrix(part).shape[0] for name, part in weighted.items() if is_linear(part)}
    widths = {name: width for name, width in widths.items() if not _says_where(name)}
    widths = {name: width for name, width in widths.items() if not _is_auxiliary(name)} or widths
    counts = declared_counts(net)
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
    return distinct(net, named or outer)


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
