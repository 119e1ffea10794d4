"""What people have in memory, as data: images, texts, generators, bare graphs, datasets of torchvision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise._base.machine import free_memory
from likewise._base.optional import require
from likewise.data.graphs import nodes_of
from likewise.data.image_files import ImageFiles
from likewise.data.images import is_picture
from likewise.data.inputs import Data
from likewise.errors import InputError, brief

_SMALLEST = 8  # pixels of a side, below which three numbers of three are no image


def from_memory(data: Any) -> Any:
    """Data for graphs, PIL images, photographs, texts and datasets of torchvision; anything else as it is.

    >>> from_memory(("a text", "another"))
    Data('texts', n=2)
    """
    if hasattr(data, "edge_index") and hasattr(data, "x"):
        split = "test" if getattr(data, "test_mask", None) is not None else "all"
        return nodes_of(data, split, name="graph")
    if isinstance(data, tuple) and _are_inputs_and_labels(data):
        return _labelled(*data)
    if isinstance(data, (list, tuple)) and len(data):
        data = _pictures(data)
    if _are_photographs(data):
        return Data("images", "image", torch.from_numpy(data[..., :3]).permute(0, 3, 1, 2))
    if isinstance(data, torch.utils.data.Dataset):
        return _of_torchvision(data)
    if isinstance(data, (list, tuple, np.ndarray)):
        return _texts(data)
    return _read_texts(data) if isinstance(data, Iterator) else data


def _are_inputs_and_labels(pair: Any) -> bool:
    """Whether this is `(x, y)`, as scikit-learn and Keras have data: inputs, and one whole number for each."""
    if len(pair) != 2 or not all(isinstance(value, (Tensor, np.ndarray)) for value in pair):
        return False
    inputs, labels = pair
    whole = labels.dtype.kind in "iu" if isinstance(labels, np.ndarray) else not labels.is_floating_point()
    one_each = labels.ndim == 1 or (_are_photographs(inputs) and labels.shape[1:] == (1,))
    return whole and one_each and inputs.ndim > 1 and len(inputs) == len(labels) > 1


def _labelled(inputs: Any, labels: Any) -> Any:
    """Photographs with their labels as data, other inputs, which are shown as they are, as a dataset of both."""
    labels = torch.as_tensor(labels).reshape(-1).long()
    if not _are_photographs(inputs):
        return torch.utils.data.TensorDataset(torch.as_tensor(inputs), labels)
    return replace(from_memory(inputs), labels=labels, classes=tuple(map(str, range(int(labels.max()) + 1))))


def _are_photographs(data: Any) -> bool:
    return isinstance(data, np.ndarray) and data.ndim == 4 and data.shape[1] not in (1, 3) and _is_photograph(data[0])


def _pictures(entries: Any) -> Any:
    """PIL images and arrays of bytes `(h, w, 3)` as data, single images `(c, h, w)` as one tensor; else as it is."""
    if is_picture(entries[0]) or _is_photograph(entries[0]):
        for row, image in enumerate(entries):
            if not is_picture(image) and not _is_photograph(image):
                raise InputError(f"entry {row} of the images is {brief(image)}, not an image. Leave such entries out.")
        pil: Any = require("PIL.Image", extra="vision", to="show images")
        return Data("images", "image", [image if is_picture(image) else pil.fromarray(image) for image in entries])
    shapes = list(dict.fromkeys(tuple(image.shape) for image in entries if _is_image(image)))
    if len(entries) < 2 or not all(map(_is_image, entries)):
        return entries
    if len(shapes) > 1:
        raise InputError(
            f"the images have shapes {shapes[0]} and {shapes[1]}, and make no batch. Resize them, or give PIL images."
        )
    return torch.stack([torch.as_tensor(image) for image in entries])


def _is_photograph(value: Any) -> bool:
    """Whether this is an image as a camera or OpenCV's readers give it: bytes (height, width, channels)."""
    return isinstance(value, np.ndarray) and value.dtype == np.uint8 and value.ndim == 3 and value.shape[2] in (3, 4)


def _is_image(value: Any) -> bool:
    """Whether this is one image of 1 or 3 channels, and not a batch: those of so few steps or words are rare."""
    sides = tuple(getattr(value, "shape", ())) if isinstance(value, (Tensor, np.ndarray)) else ()
    return len(sides) == 3 and sides[0] in (1, 3) and min(sides[1:]) >= _SMALLEST


def _of_torchvision(images: Any) -> Any:
    """A dataset of torchvision that gives PIL images, with its labels where it lists them; any other as it is."""
    kinds = {kind.__name__ for kind in type(images).__mro__}
    # what transforms its images has them shown as it gives them, and to look at one might draw at random
    if "VisionDataset" not in kinds or getattr(images, "transforms", None) is not None or not len(images):
        return images
    first = images[0]
    if not (isinstance(first, tuple) and is_picture(first[0])):
        return images
    files = ImageFiles.from_pil(len(images), lambda number: images[number][0])
    name, labels = type(images).__name__, getattr(images, "targets", None)
    if labels is None or len(labels) != len(images) or not getattr(images, "classes", None):
        return Data(name, "image", files)
    return Data(name, "image", files, labels, tuple(map(str, images.classes)))


def _texts(entries: Any) -> Any:
    """Texts, or pairs of them, as data; other lists and arrays as they are."""
    if isinstance(entries, np.ndarray):
        if entries.dtype.kind in "biufc" or entries.ndim != 1:
            return entries
        entries = entries.tolist()
    if not len(entries) or not _is_text(entries[0]):
        return entries
    for row, text in enumerate(entries):
        if not _is_text(text) or isinstance(text, str) != isinstance(entries[0], str):
            raise InputError(f"entry {row} of the texts is {brief(text)}, not a text. Leave such entries out.")
    return Data("texts", "text", list(entries))


def _is_text(value: Any) -> bool:
    """Whether this is a text or a pair of texts."""
    return isinstance(value, str) or (isinstance(value, tuple) and bool(value) and isinstance(value[0], str))


def _read_texts(generator: Iterator[Any]) -> Any:
    """The texts that a generator gives, as data; one of batches as it is."""
    first = list(islice(generator, 1))
    if not first or not _is_text(first[0]):
        return chain(first, generator)
    return _texts(read_once(chain(first, generator)))


def read_once(generator: Iterator[Any]) -> list[Any]:
    """All that a generator gives, kept for the next network, as far as memory can hold it."""
    kept: list[Any] = []
    room = free_memory() // 2
    for value in generator:
        kept.append(value)
        room -= _size(value)
        if room < 0:
            raise InputError(
                "the data is a generator, which can be read once only, and it gives more than memory can keep for "
                "the next network. Pass what can be read again: an address, a dataset or a DataLoader."
            )
    return kept


def _size(value: Any) -> int:
    """Bytes that a batch takes."""
    if isinstance(value, dict):
        return sum(map(_size, value.values()))
    if isinstance(value, (list, tuple)):
        return sum(map(_size, value))
    return int(getattr(value, "nbytes", 64 + len(value) if isinstance(value, (str, bytes)) else 64))


def is_numeric(frame: Any) -> bool:
    """Whether a data frame or a column of one holds numbers alone."""
    kinds = getattr(frame, "dtypes", None)
    listed = [kinds] if hasattr(kinds, "kind") else list(kinds) if kinds is not None else []
    return bool(listed) and all(getattr(kind, "kind", "O") in "biuf" for kind in listed)
