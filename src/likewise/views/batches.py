"""What a network is shown, batch by batch: from data, an array, a dataset, a list of texts or any
iterable.

A batch knows how many inputs it holds, which of its positions are padding, and (for graphs, where
the network is shown every node) which rows are asked for.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise._base.arrays import tensor_from_numpy
from likewise.data.inputs import Data, take, to_device
from likewise.errors import InputError, brief


@dataclass(frozen=True)
class Batch:
    """Some inputs, as they came, with their labels where they are known."""

    inputs: Any
    labels: Tensor | None
    start: int

    @property
    def shown(self) -> int:
        """How many rows the network gives: inputs, or nodes of the whole graph."""
        return _length(self.inputs)

    @property
    def rows(self) -> Callable[[Tensor], Tensor] | None:
        """Picks the rows that are asked for, where those are not all."""
        return getattr(self.inputs, "rows", None)

    @property
    def size(self) -> int:
        """How many rows are asked for."""
        return self.shown if self.rows is None else len(self.rows(torch.empty(self.shown, 0)))


def batches(data: Any, batch_size: int, *, shuffle: int | None = None, device: Any = None) -> Iterator[Batch]:
    """Batches of whatever `data` is; an iterable keeps the batches it has."""
    start = 0
    for inputs, labels in _pairs(data, batch_size, shuffle, device):
        batch = Batch(inputs, labels, start)
        start += batch.size
        yield batch


def known_length(data: Any) -> int | None:
    """How many inputs there are, where that is known before the first batch."""
    listed = isinstance(data, (Data, Tensor, np.ndarray)) or _are_texts(data) or _are_sounds(data)
    return len(data) if listed else None


def domain_of(data: Any) -> str | None:
    """What kind of inputs data holds, None where nothing about it says so.

    >>> domain_of(["a text"]), domain_of(torch.zeros(2, 3, 8, 8)), domain_of([torch.zeros(9)]), domain_of(iter([]))
    ('text', 'image', 'audio', None)
    """
    if isinstance(data, Data):
        return data.domain
    if _are_texts(data):
        return "text"
    if _are_sounds(data):
        return "audio"
    return "image" if isinstance(data, (Tensor, np.ndarray)) and data.ndim == 4 else None


def cast(inputs: Any, dtype: torch.dtype | None) -> Any:
    """Inputs in the precision of the network; whole numbers (tokens, bytes) as they are."""
    if isinstance(inputs, Tensor):
        return inputs.to(dtype) if dtype is not None and inputs.is_floating_point() else inputs
    if isinstance(inputs, dict):
        same = copy.copy(inputs)  # a graph stays one
        same.update({key: cast(value, dtype) for key, value in inputs.items()})
        return same
    return inputs


def fewer(inputs: Any, n: int) -> Any:
    """The first `n` of a batch's inputs; None where they cannot be told apart."""
    parts = list(inputs.values()) if isinstance(inputs, dict) else [inputs]
    if hasattr(inputs, "rows") or not all(isinstance(part, (Tensor, list)) for part in parts):
        return None
    return take(inputs, slice(0, n))


def _pairs(data: Any, batch_size: int, shuffle: int | None, device: Any) -> Iterator[tuple[Any, Tensor | None]]:
    if isinstance(data, Data):
        yield from data.batches(batch_size, shuffle=shuffle, device=device)
        return
    for inputs, labels in _loose(data, batch_size, shuffle):
        yield to_device(inputs, device), labels


def _loose(data: Any, batch_size: int, shuffle: int | None) -> Iterator[tuple[Any, Tensor | None]]:
    """Batches of what is not data of this library."""
    data = _tensors(data)
    if isinstance(data, Tensor) or _are_texts(data) or _are_sounds(data):
        yield from _cut(data, batch_size, shuffle)
        return
    if isinstance(data, torch.utils.data.Dataset):
        # a loader draws a seed even where it shuffles nothing: not from the caller's generator
        own = torch.Generator()
        data = torch.utils.data.DataLoader(data, batch_size=batch_size, generator=own)
    if not isinstance(data, Iterable) or isinstance(data, str):
        raise InputError(
            f"data is a {type(data).__name__}, which gives no batches. Pass data, an address, an "
            "array or an iterable of batches."
        )
    for batch in data:
        inputs, labels = _split(batch)
        if isinstance(inputs, str) or not hasattr(inputs, "__len__") or getattr(inputs, "ndim", 1) == 0:
            raise InputError(
                f"the data gives {brief(inputs)} where a batch of inputs is wanted. Give batches, or one array or list "
                "of all inputs."
            )
        yield inputs, labels


def _cut(data: Any, batch_size: int, shuffle: int | None) -> Iterator[tuple[Any, None]]:
    order: Tensor | None = None
    if shuffle is not None:
        order = torch.randperm(len(data), generator=torch.Generator().manual_seed(shuffle))
    for start in range(0, len(data), batch_size):
        rows = slice(start, start + batch_size)
        yield take(data, rows if order is None else order[rows].tolist()), None


def _split(batch: Any) -> tuple[Any, Tensor | None]:
    """Inputs and labels of one batch, in the forms that loaders give."""
    if isinstance(batch, Mapping) and not hasattr(batch, "rows"):
        words = {key: value for key, value in batch.items() if key not in ("label", "labels")}
        labels = _tensors(batch.get("labels", batch.get("label")))
        labels = labels if isinstance(labels, Tensor) or _are_labels(labels) else None
        labels = None if labels is None else torch.as_tensor(labels)
        return {key: _tensors(value) for key, value in words.items()}, labels
    if isinstance(batch, (list, tuple)) and batch and not _are_texts(batch):
        labels = batch[1] if len(batch) > 1 and _are_labels(batch[1]) else None
        return _tensors(batch[0]), None if labels is None else torch.as_tensor(_tensors(labels))
    return _tensors(batch), None


def _tensors(value: Any) -> Any:
    """An array as a tensor (texts as a list); anything else as it is."""
    if not isinstance(value, np.ndarray):
        return value
    return tensor_from_numpy(value) if value.dtype.kind in "biufc" else value.tolist()


def _are_texts(data: Any) -> bool:
    """Whether this is a list of texts, or of pairs of texts."""
    if not isinstance(data, list) or not data:
        return False
    first = data[0]
    return isinstance(first, str) or (isinstance(first, tuple) and isinstance(first[0], str))


def _are_sounds(data: Any) -> bool:
    """Whether this is a list of arrays of numbers of one axis, which may differ in length."""
    return isinstance(data, list) and bool(data) and all(map(_is_sound, data))


def _is_sound(value: Any) -> bool:
    return isinstance(value, (Tensor, np.ndarray)) and value.ndim == 1 and _kind_of(value) in "fi"


def _kind_of(value: Tensor | np.ndarray) -> str:
    if isinstance(value, np.ndarray):
        return value.dtype.kind
    return "f" if value.is_floating_point() else "i"


def _are_labels(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.ndim == 1 and not value.is_floating_point()
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and value.dtype.kind in "biu"
    return isinstance(value, (list, tuple)) and all(isinstance(entry, int) for entry in value)


def _length(inputs: Any) -> int:
    if isinstance(inputs, Mapping):  # a graph has more edges than nodes
        return len(inputs["x"] if "x" in inputs else next(iter(inputs.values())))
    return len(inputs)
