"""What the outputs of a network are called, where that is known, and which label means which output.

A label counts the classes of its data; an output counts the classes of its network. They are the same
numbers only where the two lists are the same, so labels are carried over by name or WordNet id.
Trained networks have their classes recorded (and saved with their weights); published ones say theirs
in their configuration, or are ImageNet's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from likewise import wordnet
from likewise._base.optional import require
from likewise.data import Data
from likewise.errors import InputError, quoted_list
from likewise.networks.inputs.normalisation import note, noted, unwrapped
from likewise.wordnet import ClassNames, listed, locate, recognised

_IMAGENET = 1000
_UNNAMED = re.compile(r"LABEL_\d+")  # what transformers calls a class that was given no name


def record_classes(net: nn.Module, classes: ClassNames | None) -> None:
    """Say what the outputs of a network are called, from the first on."""
    note(net, "classes", classes)


def recorded_classes(net: nn.Module) -> ClassNames | None:
    """What was recorded of a network's classes."""
    classes: ClassNames | None = noted(net, "classes")
    return classes


def class_names(net: nn.Module, count: int) -> ClassNames | None:
    """The classes of a network that answers with `count` numbers, None where they are not known.

    Recorded ones may be fewer than the outputs: the rest was never trained.
    """
    classes = recorded_classes(net)
    if classes is not None:
        return classes if len(classes) <= count else None
    classes = declared_classes(net) or _of_torchvision(unwrapped(net), count) or _of_timm(unwrapped(net), count)
    fits = classes is not None and count in (len(classes), len(classes) + _no_object(net, count))
    return classes if fits else None


def class_rows(net: nn.Module, count: int) -> tuple[list[int], ClassNames | None]:
    """Which of the `count` outputs of a network are classes, and what these are called where it is known.

    Left out are what detectors and segmenters have in addition: no object, background, and numbers that mean
    nothing, "N/A" (COCO counts to 90 and has 80 classes).
    """
    classes = class_names(net, count)
    # a detector of torchvision has the background first, by its documentation
    background = int(type(unwrapped(net)).__module__.startswith("torchvision.models.detection."))
    rows = list(range(background, count - _no_object(net, count)))
    if classes is None or len(classes) <= rows[-1]:  # the rest was never trained
        return rows, None
    rows = [i for i in rows if not _is_placeholder(classes.names[i])]
    if len(rows) == len(classes):
        return rows, classes
    names = tuple(classes.names[i] for i in rows)
    ids = None if classes.wnids is None else tuple(classes.wnids[i] for i in rows)
    return rows, ClassNames(names, ids) if ids is not None else recognised(names)


def declared_classes(net: nn.Module) -> ClassNames | None:
    """The classes recorded of a network or named in its own configuration, whatever it answers with."""
    return recorded_classes(net) or _of_transformers(unwrapped(net))


def classes_of(data: Any) -> ClassNames | None:
    """The classes of data, of a torch dataset or of a loader of one, None where it names none.

    >>> from types import SimpleNamespace
    >>> classes_of(SimpleNamespace(dataset=SimpleNamespace(classes=["cat", "dog"]))).names
    ('cat', 'dog')
    """
    names, wnids = declared_names(data)
    if names is None:
        return None
    return ClassNames(names, wnids) if wnids is not None else recognised(names)


def declared_names(data: Any) -> tuple[tuple[str, ...] | None, tuple[str | None, ...] | None]:
    """The names of the classes of data as `classes_of` takes it, and their WordNet ids where it has them."""
    names = getattr(data, "classes", None)
    if isinstance(names, (list, tuple)) and names and all(isinstance(name, (str, int)) for name in names):
        wnids = getattr(data, "wnids", None)
        has_ids = isinstance(wnids, (list, tuple)) and len(wnids) == len(names)
        return tuple(map(str, names)), tuple(wnids or ()) if has_ids else None
    within = getattr(data, "dataset", None)
    return (None, None) if within is None else declared_names(within)


def output_indices(data: Any, net: nn.Module, count: int, label: str) -> list[int] | None:
    """For every class of the data, which of the network's `count` outputs is its own.

    None where labels can only be taken as they are: the data names no classes, or the network names
    none and answers with as many. Refused where they are not the same classes.
    """
    (names, _), outputs = declared_names(data), class_names(net, count)
    if names is None or (outputs is None and len(names) == count):
        return None
    start = f"the labels of {(getattr(data, 'name', None) or type(data).__name__)!r} do not fit {label}:"
    classes = classes_of(data)
    if outputs is None or classes is None:
        raise InputError(
            f"{start} it has {len(names)} classes ({quoted_list(names)}), and the network answers "
            f"with {count} numbers that have no names. Use a network of these classes."
        )
    return locate(
        classes,
        outputs,
        lambda missing: (
            f"{start} of its {len(names)} classes, {missing} are not surely among the network's {len(outputs)} "
            f"({quoted_list(outputs.names)}). Name them as the network does, or by WordNet id."
        ),
    )


def output_labels(labels: Tensor, indices: list[int] | None) -> Tensor:
    """Labels as the network counts them."""
    if indices is None or indices == list(range(len(indices))):
        return labels
    return torch.tensor(indices, device=labels.device)[labels]


def relabel(data: Data, net: nn.Module, count: int, label: str) -> Data:
    """The data with its labels and classes as a network with `count` outputs counts them."""
    indices, outputs = output_indices(data, net, count, label), class_names(net, count)
    if indices is None or outputs is None:
        return data
    names = [*outputs.names, *(f"output {i}" for i in range(len(outputs), count))]
    wnids: list[str | None] = [*outputs.ids, *[None] * (count - len(outputs))]
    for label_index, index in enumerate(indices):
        wnids[index] = (data.wnids and data.wnids[label_index]) or wnids[index]
    ids = tuple(wnids) if any(wnids) else None
    labels = output_labels(data.need_labels(f"score {label}"), indices)
    return replace(data, labels=labels, classes=tuple(names), wnids=ids)


def _of_transformers(net: nn.Module) -> ClassNames | None:
    """The labels in a configuration of transformers, unless they are its placeholders."""
    declared = getattr(getattr(net, "config", None), "id2label", None)
    if not isinstance(declared, Mapping) or not declared:
        return None
    labels = {str(key): str(name) for key, name in declared.items()}
    if set(labels) != {str(i) for i in range(len(labels))}:
        return None
    names = tuple(labels[str(i)] for i in range(len(labels)))
    if all(map(_UNNAMED.fullmatch, names)):
        return None
    return recognised(names)


def _no_object(net: nn.Module, count: int) -> int:
    """1 for a detector or segmenter of transformers with one output more than classes, the last; else 0."""
    net = unwrapped(net)
    labels = getattr(getattr(net, "config", None), "num_labels", None)
    finds_things = any(word in type(net).__name__ for word in ("Detection", "Segmentation"))
    return int(finds_things and isinstance(labels, int) and count == labels + 1)


def _is_placeholder(name: str) -> bool:
    """Whether an output's name says that it is no class.

    >>> names = ("person", "N/A", "__background__", "no-object", "LABEL_201")
    >>> [name for name in names if not _is_placeholder(name)]
    ['person']
    """
    plain = re.sub(r"[\W_]+", " ", name.casefold()).strip()
    return plain in ("n a", "background", "no object") or bool(_UNNAMED.fullmatch(name))


def _of_torchvision(net: nn.Module, count: int) -> ClassNames | None:
    """The classes that networks of torchvision were trained on: ImageNet's, COCO's, Pascal VOC's, Kinetics's."""
    if not type(net).__module__.startswith("torchvision.models."):
        return None
    if count == _IMAGENET:
        return listed("imagenet1k")
    return _published_by_torchvision(type(net).__module__.split(".")[2], count)


@cache
def _published_by_torchvision(task: str, count: int) -> ClassNames | None:
    """The classes of published weights for a task with as many outputs."""
    models: Any = require("torchvision.models", extra="vision", to="name the classes of a network of torchvision")
    if task not in ("detection", "segmentation", "video"):  # one module per classifier of images
        return None
    weights = [models.get_model_weights(name).DEFAULT for name in models.list_models(module=getattr(models, task))]
    lists = (weight.meta["categories"] for weight in weights)
    return next((recognised(names) for names in lists if len(names) == count), None)


def _of_timm(net: nn.Module, count: int) -> ClassNames | None:
    """ImageNet's classes, or more of them, for the networks of timm that say so."""
    config = getattr(net, "pretrained_cfg", None)
    if not isinstance(config, Mapping) or config.get("num_classes") != count:
        return None
    if count == _IMAGENET:
        return listed("imagenet1k")
    timm: Any = require("timm.data", extra="vision", to="name the classes of a network of timm")
    subset = timm.infer_imagenet_subset(net)
    return None if subset is None else ClassNames(tuple(timm.ImageNetInfo(subset).label_names()))


def classes_of_dataset(dataset: Any) -> ClassNames | None:
    """The classes of a dataset by its published name, None where they are not known.

    >>> classes_of_dataset("CIFAR-10").names[:2]
    ('airplane', 'automobile')
    """
    plain = _plain(str(dataset))
    for name in wordnet.lists():
        if _plain(name) == plain:
            return listed(name)
    return ClassNames(tuple("0123456789")) if plain in ("mnist", "digits") else None


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name.lower())
