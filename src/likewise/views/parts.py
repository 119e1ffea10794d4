"""How many inputs a network is shown at once: as many as memory takes.

Data is read a batch at a time. A batch that does not fit is shown in parts, whose rows are put together again, so that
nothing but rounding depends on how many there are: texts keep the padding of their batch, and a measure that
is taken batch by batch sees the batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from likewise._base.machine import is_out_of_memory
from likewise.data import Data
from likewise.data.images import Transformed
from likewise.data.inputs import take
from likewise.errors import ForwardError, InputError, LikewiseError
from likewise.networks.forward import first_tensor
from likewise.views.batches import Batch, fewer
from likewise.views.hooks import answer_to, watch
from likewise.views.selection import named_layers

READ, _READ_BYTES = 256, 2**28  # inputs read at a time, where nobody says how many, and what images of them may take
_ROOM = 64 * 2**20  # bytes that the largest layer may give at a time on a CPU
_FEW, _SMALL = 8, 2**20  # inputs, and bytes of an array of them, that are shown at once whatever they take


def read_at_once(data: Any) -> int:
    """How many inputs are read at a time: fewer of images that are large when they are shown."""
    if not isinstance(data, Data) or data.domain != "image":
        return READ
    size = data.inputs.size if isinstance(data.inputs, Transformed) else getattr(data.inputs, "shape", (0,) * 4)[2:]
    return READ if not size or 0 in size else max(1, min(READ, _READ_BYTES // (12 * math.prod(size))))


def check_batch_size(batch_size: int | None) -> None:
    """Refuse batches of nothing; None is as many inputs as fit."""
    if batch_size is not None and batch_size < 1:
        raise InputError(f"batch_size is {batch_size}. Give at least 1.")


def split(batch: Batch, most: int | None) -> list[Batch]:
    """A batch in parts of at most so many inputs; whole where its inputs cannot be told apart."""
    if most is None or batch.shown <= most or not _is_divisible(batch):
        return [batch]
    starts = range(0, batch.shown, most)
    return [Batch(take(batch.inputs, slice(i, i + most)), None, batch.start + i) for i in starts]


def _is_divisible(batch: Batch) -> bool:
    """Whether every tensor or list of a batch has one entry per input."""
    inputs = list(batch.inputs.values()) if isinstance(batch.inputs, dict) else [batch.inputs]
    return fewer(batch.inputs, 1) is not None and all(len(values) == batch.shown for values in inputs)


def most_on_cpu(net: nn.Module, batch: Batch, label: str) -> int | None:
    """How many inputs may be shown at once on a CPU, by what the largest layer gives for two of them."""
    small = isinstance(batch.inputs, Tensor) and batch.inputs.nbytes <= _SMALL
    if batch.shown <= _FEW or small or not _is_divisible(batch):
        return None
    few, largest = fewer(batch.inputs, 2), 1

    def receive(_name: str, _module: nn.Module, output: Any) -> None:
        nonlocal largest
        value = first_tensor(output)
        largest = max(largest, 0 if value is None else value.numel() * value.element_size())

    try:
        with watch(named_layers(net), receive, {}):
            answer_to(net, few, batch, 1, label)
    except LikewiseError:  # the batch itself will say it better
        return None
    return max(1, 2 * _ROOM // largest)


class Parts:
    """Shows batches in parts, and remembers how large a part fits."""

    def __init__(self, label: str, *, automatic: bool) -> None:
        self.label, self.automatic = label, automatic
        self.most: int | None = None

    def show(self, net: nn.Module, batch: Batch, see: Callable[[Batch], Any]) -> list[Any]:
        """What is seen of each part of a batch; halved until they fit."""
        if self.automatic:
            self.automatic = False
            device = next((value.device.type for value in net.parameters()), "cpu")
            self.most = most_on_cpu(net, batch, self.label) if device == "cpu" else None
        while True:
            parts = split(batch, self.most)
            try:
                return [see(part) for part in parts]
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
                self._halve(parts[0], error)
            # outside of the handler, whose traceback holds what has to be let go
            if torch.cuda.is_available():
                torch.cuda.empty_cache()

    def _halve(self, part: Batch, error: Exception) -> None:
        if part.shown == 1 or not _is_divisible(part):
            one = "one input at a time" if part.shown == 1 else f"{part.shown} inputs, which cannot be shown in parts"
            raise ForwardError(
                f"{self.label} does not fit in memory with {one}. Choose a smaller network, another device, or "
                "dtype='bfloat16'."
            ) from error
        self.most = part.shown // 2
