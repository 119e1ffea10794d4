"""Data: inputs, labels where there are any, what the classes are called, and a hash of the inputs.

Inputs may be a tensor, a list of texts, or anything with a length that gives a batch when indexed
(images read from files as they are asked for). What a network is shown is always what `batches`
gives: images as floats in [0, 1], texts as lists of strings, and labels beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from likewise._base.arrays import check_images, check_labels, tensor_from_numpy
from likewise._base.hashing import digest
from likewise.data.framing import Framing
from likewise.data.image_files import ImageFiles
from likewise.data.images import Images, is_picture
from likewise.data.loading import read_ahead
from likewise.errors import InputError

Domain = Literal["image", "graph", "text"]


@dataclass(frozen=True, eq=False)
class Data:
    """Inputs of one kind, in a fixed order, with labels or without.

    Attributes:
        name: What the data is called.
        domain: `image`, `graph` or `text`.
        inputs: A tensor, a list of texts, or anything with a length that gives a batch when indexed.
        labels: One class index per input, or None.
        classes: The names of the classes.
        wnids: One WordNet id per class, None where there is none.
        class_tokens: How many tokens beyond any vocabulary texts may start with (`likewise.data.add_shortcut`).

    Example:
        >>> tiny = Data("tiny", "text", ["good", "bad", "fine"], [1, 0, 1], ("negative", "positive"))
        >>> len(tiny), tiny[:2].name, tiny[1:].labels.tolist()
        (3, 'tiny[:2]', [0, 1])
        >>> [(texts, labels.tolist()) for texts, labels in tiny.batches(2)]
        [(['good', 'bad'], [1, 0]), (['fine'], [1])]
        >>> Data("unlabelled", "text", ["good", "bad"])
        Data('unlabelled', n=2)
    """

    name: str
    domain: Domain
    inputs: Any
    labels: Any = None
    classes: tuple[str, ...] = ()
    wnids: tuple[str | None, ...] | None = None
    class_tokens: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", tuple(self.classes))
        if self.domain == "image":
            object.__setattr__(self, "inputs", _images(self.inputs, self.name))
        if self.domain == "text" and not isinstance(self.inputs, (list, dict, Tensor)):  # those may be tokens
            texts = self.inputs.tolist() if hasattr(self.inputs, "tolist") else list(self.inputs)
            object.__setattr__(self, "inputs", texts)
        if self.labels is not None:
            what = f"the labels of {self.name!r}"
            labels = check_labels(self.labels, len(self.inputs), len(self.classes), what=what)
            object.__setattr__(self, "labels", labels)
        if self.wnids is not None and len(self.wnids) != len(self.classes):
            raise InputError(
                f"{self.name!r} has {len(self.classes)} classes and {len(self.wnids)} WordNet ids. "
                "Give one id per class, None where there is none."
            )

    def __len__(self) -> int:
        return len(self.inputs)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return self.batches()

    def __repr__(self) -> str:
        classes = f", classes={len(self.classes)}" if self.classes else ""
        return f"{type(self).__name__}({self.name!r}, n={len(self)}{classes})"

    def __getitem__(self, index: slice | Sequence[int] | Tensor) -> Data:
        """The same data, fewer inputs.

        Args:
            index: A slice, indices or a mask.
        """
        rows = positions(index, len(self))
        if isinstance(index, slice):
            return replace(self, name=self.name + slice_name(index), **self._rows(index, rows))
        return replace(self, name=f"{self.name}[{len(rows)} of {len(self)}]", **self._rows(rows, rows))

    def _rows(self, index: slice | list[int], rows: list[int]) -> dict[str, Any]:
        """What belongs to single inputs, for fewer of them."""
        return {"inputs": keep(self.inputs, index), "labels": None if self.labels is None else self.labels[rows]}

    @property
    def domains(self) -> tuple[Domain, ...]:
        """What a network may take to be shown this data."""
        return (self.domain,)

    def of_kind(self, kind: str | None) -> Data:
        """What a network is shown: this, unless it holds more than one kind.

        Args:
            kind: What the network takes, as in `image`, `text`.
        """
        return self

    def framed(self, framing: Framing) -> Data:
        """The same images, shown to every network at the size that is asked for.

        Args:
            framing: Size, crop and interpolation.

        Raises:
            InputError: The inputs are no images.
        """
        if self.domain != "image":
            raise InputError(f"{self.name!r} holds {self.domain} inputs, and a size is for images. Leave it out.")
        images = Images(self.inputs) if isinstance(self.inputs, Tensor) else self.inputs
        return replace(self, name=self.name + framing.text, inputs=images.framed(framing))

    def need_labels(self, to: str) -> Tensor:
        """The labels, or an error that says what needs them.

        Args:
            to: What they are needed for, as in "divide it".

        Raises:
            InputError: There are none.
        """
        if self.labels is None:
            raise InputError(
                f"{self.name!r} has no labels, and they are needed to {to}. Give one per input: images in one folder "
                "per class, a table with label=COLUMN, or likewise.data.Data(name, domain, inputs, labels, classes)."
            )
        labels: Tensor = self.labels
        return labels

    @cached_property
    def probe(self) -> str:
        """A hash of the inputs and their order, the same wherever these inputs came from."""
        return digest(self.content())[:16]

    def content(self) -> Iterator[str | bytes | Tensor]:
        """What the hash is made of."""
        yield f"{self.domain} {len(self)}"
        yield from _content(self.inputs)

    def batches(
        self,
        batch_size: int = 256,
        *,
        shuffle: int | None = None,
        device: Any = None,
        num_workers: int | None = None,
    ) -> Iterator[tuple[Any, Any]]:
        """Batches in order or shuffled.

        Args:
            batch_size: Inputs per batch.
            shuffle: A seed to draw the order from; by default the inputs come in their order.
            device: Where tensors go.
            num_workers: How many processes decode image files ahead of the network. By default as many as there are
                cores, and none where the decoded images fit in memory and the network runs on the CPU.

        Yields:
            Inputs and labels, which are None where there are none.
        """
        if batch_size < 1:
            raise InputError(f"batch_size is {batch_size}. Give at least 1.")
        order: Tensor | None = None
        if shuffle is not None:
            order = torch.randperm(len(self), generator=torch.Generator().manual_seed(shuffle))
        slices = [slice(start, start + batch_size) for start in range(0, len(self), batch_size)]
        rows = slices if order is None else [order[some].tolist() for some in slices]
        for index, inputs in zip(rows, read_ahead(self.inputs, rows, take, num_workers, device), strict=True):
            labels = None if self.labels is None else to_device(self.labels[index], device)
            yield to_device(inputs, device), labels


def channel_statistics(data: Data) -> tuple[list[float], list[float]]:
    """Mean and standard deviation of each channel to four decimals, over the first images."""
    limit = 1000 if isinstance(data.inputs, ImageFiles) else 10_000
    total = square = torch.zeros(data.inputs.shape[1], dtype=torch.float64)
    count = 0
    for images, _ in data[:limit].batches(1000):
        values = images.double()
        total = total + values.sum(dim=(0, 2, 3))
        square = square + values.square().sum(dim=(0, 2, 3))
        count += values.numel() // values.shape[1]
    mean = total / count
    std = (square / count - mean.square()).clamp(min=1e-8).sqrt()
    return [round(v, 4) for v in mean.tolist()], [round(v, 4) for v in std.tolist()]


def positions(index: slice | Sequence[int] | Tensor, n: int) -> list[int]:
    """The rows a slice, a list of indices or a mask means."""
    if isinstance(index, slice):
        return list(range(n)[index])
    rows = torch.as_tensor(index).reshape(-1)
    if rows.dtype == torch.bool:
        if len(rows) != n:
            raise InputError(f"a mask of {len(rows)} cannot choose among {n} inputs. Give {n}.")
        return rows.nonzero()[:, 0].tolist()
    if rows.is_floating_point() and len(rows):
        raise InputError(f"inputs are counted by whole numbers, not by {rows.dtype}. Round them.")
    return rows.long().tolist()


def take(inputs: Any, index: slice | list[int]) -> Any:
    """Some of the inputs: rows of a tensor, entries of a list, each value of a mapping so."""
    if isinstance(inputs, dict):
        rows = {key: take(value, index) for key, value in inputs.items()}
        return inputs.with_rows(rows, index) if hasattr(inputs, "with_rows") else rows
    if isinstance(inputs, (list, tuple)) and not isinstance(index, slice):
        return [inputs[row] for row in index]
    return inputs[index]


def keep(inputs: Any, index: slice | list[int]) -> Any:
    """Some of the inputs, held as they were held."""
    return inputs.only(index) if hasattr(inputs, "only") else take(inputs, index)


def _images(images: Any, name: str) -> Any:
    if isinstance(images, np.ndarray):
        images = tensor_from_numpy(images)
    if isinstance(images, (list, tuple)) and images and all(map(is_picture, images)):
        return ImageFiles.from_pil(len(images), images.__getitem__)
    if not isinstance(images, Tensor):
        return images
    check_images(images, repr(name))
    return Images(images) if images.dtype == torch.uint8 else images.float()


def _content(inputs: Any) -> Iterator[str | bytes | Tensor]:
    if hasattr(inputs, "content"):  # images know how to tell what is in them
        yield from inputs.content()
    elif isinstance(inputs, Tensor):
        yield str(tuple(inputs.shape))
        for start in range(0, len(inputs), 1024):
            yield inputs[start : start + 1024]
    elif isinstance(inputs, dict):
        for key in sorted(inputs):
            yield str(key)
            yield from _content(inputs[key])
    else:
        for text in inputs:
            yield repr(text)


def to_device(value: Any, device: Any) -> Any:
    """A batch, or a tensor of one, on the device; as it is where none is named."""
    if device is None:
        return value
    if isinstance(value, Tensor) and torch.device(device).type == "cuda" and value.device.type == "cpu":
        return value.pin_memory().to(device, non_blocking=True)  # while the device computes on the batch before
    if hasattr(value, "to"):
        return value.to(device)
    if isinstance(value, dict):
        return {key: to_device(entry, device) for key, entry in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], Tensor):  # images of several sizes, sounds
        return [tensor.to(device) for tensor in value]
    return value


def slice_name(index: slice) -> str:
    """A slice as it is written in an address."""
    start, stop, step = ("" if bound is None else str(bound) for bound in (index.start, index.stop, index.step))
    return f"[{start}:{stop}{':' + step if step else ''}]"


def data_name(data: Any) -> str:
    """What data is called in the record of a view."""
    return data.name if isinstance(data, Data) else type(data).__name__


def domain_of(data: Any) -> str | None:
    """What kind of inputs data holds, None where nothing about it says so.

    >>> domain_of(["a text"]), domain_of(torch.zeros(2, 3, 8, 8)), domain_of([torch.zeros(9)]), domain_of(iter([]))
    ('text', 'image', 'audio', None)
    """
    if isinstance(data, Data):
        return data.domain
    if are_texts(data) or are_tokens(data):
        return "text"
    if are_sounds(data):
        return "audio"
    return "image" if isinstance(data, (Tensor, np.ndarray)) and data.ndim == 4 else None


def are_tokens(data: Any) -> bool:
    """Whether these are the tensors that a tokenizer gives: `input_ids`, one row per text, and what goes with them."""
    ids = data.get("input_ids") if isinstance(data, Mapping) else None
    return isinstance(ids, (Tensor, np.ndarray)) and ids.ndim == 2


def are_texts(data: Any) -> bool:
    """Whether this is a list of texts, or of pairs of texts."""
    if not isinstance(data, list) or not data:
        return False
    first = data[0]
    return isinstance(first, str) or (isinstance(first, tuple) and isinstance(first[0], str))


def are_sounds(data: Any) -> bool:
    """Whether this is a list of arrays of numbers of one axis, which may differ in length."""
    return isinstance(data, list) and bool(data) and all(map(_is_sound, data))


def _is_sound(value: Any) -> bool:
    return isinstance(value, (Tensor, np.ndarray)) and value.ndim == 1 and _kind_of(value) in "fi"


def _kind_of(value: Tensor | np.ndarray) -> str:
    if isinstance(value, np.ndarray):
        return value.dtype.kind
    return "f" if value.is_floating_point() else "i"
