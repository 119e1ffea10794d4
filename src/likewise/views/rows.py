"""From what layers give for one batch to rows, one per input, or per token or position where that is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from likewise.errors import InputError
from likewise.networks.forward import first_tensor, padding_mask
from likewise.views.activations import wrong_rank
from likewise.views.batches import Batch
from likewise.views.channel_axis import default_axis
from likewise.views.reduction import reduced


class NoRowsError(InputError):
    """A layer that does not give one row per input: refused where it is asked for by name, else left out."""


class UnfitReductionError(NoRowsError):
    """A reduction of tokens for a layer of maps, or the other way: refused for blocks, which belong together."""


@dataclass(frozen=True)
class CallFacts:
    """What the first batch showed of one call: the layer's class and precision, and the axes of what it gives.

    Of the embedding, `reduce` is how it becomes rows where nobody chose, `source` what it was made from.
    """

    kind: str
    dtype: str
    ndim: int
    input_axis: int
    channel_axis: int | None  # 1 or -1, 0 where it could be either, None for rows
    reduce: str | None = None
    source: str = ""


def is_row(value: Tensor) -> bool:
    """Whether a layer gives one row per input, be it with axes of size 1: `(n, d)`, `(n, c, 1, 1)`, `(n, 1, 1, c)`."""
    if value.ndim < 4:
        return value.ndim == 2
    return {1} in (set(value.shape[2:]), set(value.shape[1:-1]))


@dataclass(frozen=True)
class RowMaker:
    """From what layers give for one batch to rows, one per input (or per token or position)."""

    batch: Batch
    inputs: Any
    reduce: str | None
    label: str
    net: nn.Module

    def of(self, name: str, output: Any, facts: CallFacts) -> Tensor:
        """The rows of one call, in memory of their own."""
        value = self.aligned(name, self.activations(name, output), facts)
        rows = self._reduced(name, value, facts.channel_axis, facts.reduce or self.reduce)
        # a view of what the network computed could still be overwritten by the network
        shared = rows.untyped_storage().data_ptr() == value.untyped_storage().data_ptr()
        return rows.clone() if shared else rows

    def activations(self, name: str, output: Any) -> Tensor:
        """The tensor a layer gives: the first, or the first with one entry per input where that has none."""
        value, shown = first_tensor(output), self.batch.shown
        if type(output) is tuple and value is not None and shown not in value.shape[: 2 if value.ndim == 3 else 1]:
            others = (part for part in output if isinstance(part, Tensor) and part.ndim > 1)
            value = next((part for part in others if len(part) == shown), value)
        if value is None or not value.is_floating_point():
            what = "no tensor" if value is None else f"{value.dtype} entries"
            raise NoRowsError(f"{name!r} of {self.label} gives {what}, not activations. Choose another layer.")
        return value

    def aligned(self, name: str, value: Tensor, facts: CallFacts) -> Tensor:
        """What a layer gives, with the inputs along the first axis."""
        shown = self.batch.shown
        if value.ndim == 3:
            value = value.transpose(0, facts.input_axis)
        if value.ndim == 1 and len(value) == shown > 1:
            value = value[:, None]  # one number per input
        if shown == 1 and (value.ndim < facts.ndim or value.ndim == 0):
            value = value.reshape(1, *value.shape)  # a squeeze took the axis of a batch of one
        if value.ndim < 2 or value.shape[0] != shown:
            raise NoRowsError(
                f"{name!r} of {self.label} gives shape {tuple(value.shape)} for {shown} inputs, so "
                "its first axis is not the inputs. Choose another layer."
            )
        return value if self.batch.rows is None else self.batch.rows(value)

    def _reduced(self, name: str, value: Tensor, axis: int | None, how: str | None) -> Tensor:
        label = f"{name!r} of {self.label}"
        if is_row(value):
            return value.flatten(1)
        if how is None:
            raise InputError(wrong_rank(value, label))
        axis = default_axis(value) if axis is None else axis
        maps = value.ndim > 3 or axis == 1
        if axis == 0 and how != "flatten":
            raise NoRowsError(
                f"{label} gives shape {tuple(value.shape)}, whose channels may be the second axis "
                "or the last. Choose reduce='flatten', inputs of another size or another layer."
            )
        value = value.movedim(-1, 1) if axis == -1 and maps else value
        mask = None if maps else padding_mask(self.net, self.inputs, value.shape[1])
        try:
            return reduced(value, how, label, mask, maps=maps)
        except InputError as error:
            raise UnfitReductionError(str(error)) from error

    def logits(self, value: Tensor | None) -> Tensor | None:
        """What the network answered, `(n, c)`; None where it is no such thing."""
        shown = self.batch.shown
        if value is not None and value.ndim == 1:
            value = value[None] if shown == 1 else value[:, None]  # squeezed
        if value is None or value.ndim != 2 or len(value) != shown or not value.is_floating_point():
            return None
        return value if self.batch.rows is None else self.batch.rows(value)
