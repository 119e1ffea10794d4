"""What a network is shown, batch by batch: from data, an array, a dataset, a list of texts or any iterable.

A batch knows how many inputs it holds and (for graphs, where the network is shown every node) which rows are asked
for. One that does not fit in memory is shown in parts, whose rows are put together again, so that nothing but rounding
depends on how many there are: a measure that is taken batch by batch sees the batch. Texts are shown in parts of
similar length, which are padded as far as each of them needs.
"""

from __future__ import annotations

import math
import traceback
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from likewise._base.arrays import tensor_from_numpy
from likewise._base.machine import is_out_of_memory
from likewise.data.images import Transformed
from likewise.data.inputs import Data, are_sounds, are_texts, are_tokens, take, to_device
from likewise.data.loading import automatic
from likewise.errors import ForwardError, InputError, LikewiseError, brief, first_line
from likewise.networks.anatomy.layers import named_layers, watch
from likewise.networks.anatomy.outputs import first_tensor
from likewise.networks.forward import call, shape_remedy
from likewise.networks.inputs.normalisation import unwrapped
from likewise.networks.inputs.padding import by_length

READ, _READ_BYTES = 256, 2**28  # inputs read at a time, where nobody says how many, and what images of them may take
_ROOM = 64 * 2**20  # bytes that the largest layer may give at a time on a CPU
_FEW, _SMALL = 8, 2**20  # inputs, and bytes of an array of them, that are shown at once whatever they take


@dataclass(frozen=True)
class Batch:
    """Some inputs, as they came, with their labels where they are known."""

    inputs: Any
    labels: Tensor | None
    start: int
    positions: Tensor | None = None  # of a part whose inputs are in another order, where they are in the batch

    @property
    def total(self) -> int:
        """How many rows the network gives: inputs, or nodes of the whole graph."""
        return _length(self.inputs)

    @property
    def rows(self) -> Callable[[Tensor], Tensor] | None:
        """Picks the rows that are asked for, where those are not all."""
        return getattr(self.inputs, "rows", None)

    @property
    def size(self) -> int:
        """How many rows are asked for."""
        return self.total if self.rows is None else len(self.rows(torch.empty(self.total, 0)))


def batches(
    data: Any, batch_size: int, *, shuffle: int | None = None, device: Any = None, num_workers: int | None = None
) -> Iterator[Batch]:
    """Batches of whatever `data` is, inputs on the device; an iterable keeps the batches it has."""
    if isinstance(data, Data):
        count = automatic(data.inputs, device) if num_workers is None else num_workers
        pairs = data.batches(batch_size, shuffle=shuffle, num_workers=count)
    else:
        pairs = _loose(data, batch_size, shuffle)
    start = 0
    for inputs, labels in pairs:
        batch = Batch(to_device(inputs, device), labels, start)
        start += batch.size
        yield batch


def known_length(data: Any) -> int | None:
    """How many inputs there are, where that is known before the first batch."""
    listed = isinstance(data, (Data, Tensor, np.ndarray)) or are_texts(data) or are_sounds(data)
    return len(data) if listed else _length(data) if are_tokens(data) else None


def first_inputs(inputs: Any, n: int) -> Any:
    """The first `n` of a batch's inputs; None where they cannot be separated."""
    fields = list(inputs.values()) if isinstance(inputs, dict) else [inputs]
    if hasattr(inputs, "rows") or not all(isinstance(values, (Tensor, list)) for values in fields):
        return None
    return take(inputs, slice(0, n))


def _loose(data: Any, batch_size: int, shuffle: int | None) -> Iterator[tuple[Any, Tensor | None]]:
    """Batches of what is not data of this library."""
    data = {key: _tensors(value) for key, value in data.items()} if are_tokens(data) else _tensors(data)
    if isinstance(data, Tensor) or are_texts(data) or are_sounds(data) or are_tokens(data):
        yield from _cut(data, batch_size, shuffle)
        return
    if isinstance(data, torch.utils.data.Dataset):
        # a loader draws a seed even where it shuffles nothing: not from the caller's generator
        data = torch.utils.data.DataLoader(data, batch_size=batch_size, generator=torch.Generator())
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
        order = torch.randperm(_length(data), generator=torch.Generator().manual_seed(shuffle))
    for start in range(0, _length(data), batch_size):
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
    if isinstance(batch, (list, tuple)) and batch and not are_texts(batch):
        labels = batch[1] if len(batch) > 1 and _are_labels(batch[1]) else None
        return _tensors(batch[0]), None if labels is None else torch.as_tensor(_tensors(labels))
    return _tensors(batch), None


def _tensors(value: Any) -> Any:
    """An array as a tensor (texts as a list); anything else as it is."""
    if not isinstance(value, np.ndarray):
        return value
    return tensor_from_numpy(value) if value.dtype.kind in "biufc" else value.tolist()


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


def answer_to(network: nn.Module, inputs: Any, batch: Batch, number: int, label: str) -> Any:
    """The network's answer to a batch; where it fails, an error with the layer and the batch."""
    try:
        return call(network, inputs)
    except LikewiseError:
        raise
    except Exception as error:
        if is_out_of_memory(error):  # fewer inputs may fit
            raise
        first, last = batch.start, batch.start + batch.size - 1
        if batch.positions is not None:  # texts of one length, from all over the batch
            first, last = int(batch.positions.min()), int(batch.positions.max())
        raise ForwardError(
            f"{label} failed in {_failing_layer(network, error)} on batch {number} (inputs {first} "
            f"to {last}, {_shapes(inputs)}): {type(error).__name__}: {first_line(error)}. "
            f"{shape_remedy(network, inputs)}"
        ) from error


def _failing_layer(network: nn.Module, error: Exception) -> str:
    """The innermost layer on the traceback: found afterwards, so that a good pass costs nothing."""
    names = {id(module): name for name, module in unwrapped(network).named_modules() if name}
    callers = [frame.f_locals.get("self") for frame, _ in traceback.walk_tb(error.__traceback__)]
    layers = [caller for caller in callers if id(caller) in names]
    return f"layer {names[id(layers[-1])]!r} ({type(layers[-1]).__name__})" if layers else "its forward pass"


def _shapes(inputs: Any) -> str:
    if isinstance(inputs, Tensor):
        return f"{tuple(inputs.shape)} {str(inputs.dtype).removeprefix('torch.')}"
    if isinstance(inputs, Mapping):
        return "; ".join(f"{key} {_shapes(value)}" for key, value in inputs.items())
    return type(inputs).__name__


# As many inputs at once as memory takes.


def read_at_once(data: Any) -> int:
    """How many inputs are read at a time: fewer of images that are large when they are shown."""
    if not isinstance(data, Data) or data.domain != "image":
        return READ
    size = data.inputs.size if isinstance(data.inputs, Transformed) else getattr(data.inputs, "shape", (0,) * 4)[2:]
    return READ if not size or 0 in size else max(1, min(READ, _READ_BYTES // (12 * math.prod(size))))


def split(batch: Batch, most: int | None) -> list[Batch]:
    """A batch in chunks of at most so many inputs; whole where its inputs cannot be separated."""
    if most is None or batch.total <= most or not _is_divisible(batch):
        return [batch]
    starts = range(0, batch.total, most)
    positions = [None if batch.positions is None else batch.positions[i : i + most] for i in starts]
    parts = [take(batch.inputs, slice(i, i + most)) for i in starts]
    return [Batch(part, None, batch.start + i, at) for i, part, at in zip(starts, parts, positions, strict=True)]


def split_by_length(net: nn.Module, batch: Batch) -> list[Batch]:
    """Texts in parts of similar length, longest first; any other batch whole."""
    parts, start = [], batch.start
    for rows, inputs in by_length(net, batch.inputs):
        parts.append(Batch(inputs, None, start, batch.start + rows))
        start += len(rows)
    return parts or [batch]


def _is_divisible(batch: Batch) -> bool:
    """Whether every tensor or list of a batch has one entry per input."""
    inputs = list(batch.inputs.values()) if isinstance(batch.inputs, dict) else [batch.inputs]
    return first_inputs(batch.inputs, 1) is not None and all(len(values) == batch.total for values in inputs)


def most_on_cpu(
    net: nn.Module, batch: Batch, label: str, hooked: Collection[str] = (), room: int | None = None
) -> int | None:
    """How many inputs may be shown at once on a CPU, by what the largest layer gives for two of them.

    With `room`, what all `hooked` layers give together has to fit into it, too.
    """
    small = isinstance(batch.inputs, Tensor) and batch.inputs.nbytes <= _SMALL
    if batch.total <= _FEW or small or not _is_divisible(batch):
        return None
    few, largest, together = first_inputs(batch.inputs, 2), 1, 1

    def receive(name: str, _module: nn.Module, output: Any) -> None:
        nonlocal largest, together
        value = first_tensor(output)
        size = 0 if value is None else value.nbytes
        largest = max(largest, size)
        together += size if name.partition("#")[0] in hooked else 0

    try:
        with watch(named_layers(net), receive, {}):
            answer_to(net, few, batch, 1, label)
    except LikewiseError:  # the batch itself will say it better
        return None
    return max(1, min(2 * _ROOM // largest, 2 * (room or 2**62) // together))


class BatchSplitter:
    """Runs a network on batches in chunks, and remembers how large a chunk fits in memory.

    What all `hooked` layers give for a chunk takes at most `room` bytes, where that is named. With `by_length`, texts
    come by their length, so results are not in the order of the batch.
    """

    def __init__(
        self,
        label: str,
        *,
        automatic: bool,
        hooked: Collection[str] = (),
        room: int | None = None,
        by_length: bool = False,
    ) -> None:
        self.label, self.automatic, self.hooked, self.room = label, automatic, hooked, room
        self.by_length = by_length
        self.most: int | None = None

    def run(self, net: nn.Module, batch: Batch, forward: Callable[[Batch], Any]) -> Iterator[Any]:
        """The results of `forward` for the chunks of a batch, which are halved until they fit."""
        if self.automatic:
            self.automatic = False
            device = next((value.device.type for value in net.parameters()), "cpu")
            self.most = most_on_cpu(net, batch, self.label, self.hooked, self.room) if device == "cpu" else None
        parts = split_by_length(net, batch) if self.by_length else [batch]
        chunks = deque(chunk for part in parts for chunk in split(part, self.most))
        while chunks:
            try:
                result = forward(chunks[0])
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                self._halve(chunks[0], error)
                result = None
            if result is not None:
                chunks.popleft()
                yield result
                continue
            # outside of the handler, whose traceback holds what has to be let go
            chunks = deque(smaller for chunk in chunks for smaller in split(chunk, self.most))
            if torch.cuda.is_available():
                torch.cuda.empty_cache()

    def _halve(self, chunk: Batch, error: Exception) -> None:
        if chunk.total == 1 or not _is_divisible(chunk):
            one = "one input at a time" if chunk.total == 1 else f"{chunk.total} inputs, which cannot be shown in parts"
            raise ForwardError(
                f"{self.label} does not fit in memory with {one}. Choose a smaller network, another device, or "
                "dtype='bfloat16'."
            ) from error
        self.most = chunk.total // 2
