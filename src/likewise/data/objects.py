"""What people have in memory, as data: images, texts, generators, bare graphs, datasets of torchvision."""

from __future__ import annotations

from collections.abc import Iterator
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


def from_memory(given: Any) -> Any:
    """Data for graphs, PIL images, photographs, texts and datasets of torchvision; anything else as it is.

    >>> from_memory(("a text", "another"))
    Data('texts', n=2)
    """
    if hasattr(given, "edge_index") and hasattr(given, "x"):
        split = "test" if getattr(given, "test_mask", None) is not None else "all"
        return nodes_of(given, split, name="graph")
    if isinstance(given, (list, tuple)) and len(given):
        given = _pictures(given)
    if isinstance(given, np.ndarray) and given.ndim == 4 and given.shape[1] not in (1, 3) and _is_photograph(given[0]):
        return Data("images", "image", torch.from_numpy(given[..., :3]).permute(0, 3, 1, 2))
    if isinstance(given, torch.utils.data.Dataset):
        return _of_torchvision(given)
    if isinstance(given, (list, tuple, np.ndarray)):
        return _texts(given)
    return _read_texts(given) if isinstance(given, Iterator) else given


def _pictures(given: Any) -> Any:
    """PIL images and arrays of bytes `(h, w, 3)` as data, single images `(c, h, w)` as one tensor; else as it is."""
    if is_picture(given[0]) or _is_photograph(given[0]):
        for place, image in enumerate(given):
            if not is_picture(image) and not _is_photograph(image):
                raise InputError(
                    f"entry {place} of the images is {brief(image)}, not an image. Leave such entries out."
                )
        pil: Any = require("PIL.Image", extra="vision", to="show images")
        return Data("images", "image", [image if is_picture(image) else pil.fromarray(image) for image in given])
    shapes = list(dict.fromkeys(tuple(image.shape) for image in given if _is_image(image)))
    if len(given) < 2 or not all(map(_is_image, given)):
        return given
    if len(shapes) > 1:
        raise InputError(
            f"the images have shapes {shapes[0]} and {shapes[1]}, and make no batch. Resize them, or give PIL images."
        )
    return torch.stack([torch.as_tensor(image) for image in given])


def _is_photograph(value: Any) -> bool:
    """Whether this is an image as a camera or OpenCV's readers give it: bytes (height, width, channels)."""
    return isinstance(value, np.ndarray) and value.dtype == np.uint8 and value.ndim == 3 and value.shape[2] in (3, 4)


def _is_image(value: Any) -> bool:
    """Whether this is one image of 1 or 3 channels, and not a batch: those of so few steps or words are rare."""
    sides = tuple(getattr(value, "shape", ())) if isinstance(value, (Tensor, np.ndarray)) else ()
    return len(sides) == 3 and sides[0] in (1, 3) and min(sides[1:]) >= _SMALLEST


def _of_torchvision(given: Any) -> Any:
    """A dataset of torchvision that gives PIL images, with its labels where it lists them; any other as it is."""
    kinds = {kind.__name__ for kind in type(given).__mro__}
    # what transforms its images has them shown as it gives them, and to look at one might draw at random
    if "VisionDataset" not in kinds or getattr(given, "transforms", None) is not None or not len(given):
        return given
    first = given[0]
    if not (isinstance(first, tuple) and is_picture(first[0])):
        return given
    images = ImageFiles.from_pil(len(given), lambda number: given[number][0])
    name, labels = type(given).__name__, getattr(given, "targets", None)
    if labels is None or len(labels) != len(given) or not getattr(given, "classes", None):
        return Data(name, "image", images)
    return Data(name, "image", images, labels, tuple(map(str, given.classes)))


def _texts(given: Any) -> Any:
    """Texts, or pairs of them, as data; other lists and arrays as they are."""
    if isinstance(given, np.ndarray):
        if given.dtype.kind in "biufc" or given.ndim != 1:
            return given
        given = given.tolist()
    if not len(given) or not _is_text(given[0]):
        return given
    for place, text in enumerate(given):
        if not _is_text(text) or isinstance(text, str) != isinstance(given[0], str):
            raise InputError(f"entry {place} of the texts is {brief(text)}, not a text. Leave such entries out.")
    return Data("texts", "text", list(given))


def _is_text(value: Any) -> bool:
    """Whether this is a text or a pair of texts."""
    return isinstance(value, str) or (isinstance(value, tuple) and bool(value) and isinstance(value[0], str))


def _read_texts(given: Iterator[Any]) -> Any:
    """The texts that a generator gives, as data; one of batches is given on, whole."""
    first = list(islice(given, 1))
    if not first or not _is_text(first[0]):
        return chain(first, given)
    return _texts(read_once(chain(first, given)))


def read_once(given: Iterator[Any]) -> list[Any]:
    """All that a generator gives, kept for the next network, as far as memory can hold it."""
    kept: list[Any] = []
    room = free_memory() // 2
    for value in given:
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


def is_numeric(given: Any) -> bool:
    """Whether a data frame or a column of one holds numbers alone."""
    kinds = getattr(given, "dtypes", None)
    listed = [kinds] if hasattr(kinds, "kind") else list(kinds) if kinds is not None else []
    return bool(listed) and all(getattr(kind, "kind", "O") in "biuf" for kind in listed)
