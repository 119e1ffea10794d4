"""One network, watched over many batches: rows of the layers asked for, and its answers.

The first batch tells which layers there are, how often each is called and what each gives; from
then on only the layers that were asked for are hooked. Rows are reduced as they come and own their
memory, so that an in-place operation further on in the network cannot change them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from likewise._base.warnings import warn
from likewise.errors import ForwardError, InputError
from likewise.networks.forward import at_rest, first_tensor, ready
from likewise.networks.normalise import check_range
from likewise.views.activations import wrong_rank
from likewise.views.batches import Batch, cast, fewer
from likewise.views.channel_axis import Layouts
from likewise.views.hooks import answered, watched
from likewise.views.layers import LOGITS, PENULTIMATE, Selection
from likewise.views.penultimate import answering_call
from likewise.views.reduction import check_reduction, reduced


class _NoRowsError(InputError):
    """A layer that does not give one row per input: refused where it is asked for by name, else left out."""


@dataclass
class Seen:
    """What one batch showed: rows by layer, and the answer `(n, c)` where the network gives one."""

    rows: dict[str, Tensor] = field(default_factory=dict)
    answer: Tensor | None = None


class Watcher:
    """A context in which a network is shown batches; afterwards it is as it was."""

    def __init__(
        self,
        network: nn.Module,
        layers: str | Sequence[str],
        reduce: str | None,
        *,
        label: str,
        device: Any = None,
        head: str | None = None,
    ) -> None:
        if reduce is not None:
            check_reduction(reduce)
        self.network, self.reduce, self.label, self.device = network, reduce, label, device
        self.head, self._answering = head, ""
        self.selection = Selection(network, layers, label)
        self.kinds: dict[str, str] = {}
        self.dtypes: dict[str, str] = {}
        self.chosen: list[str] | None = None
        self._hooked = self.selection.hooked()
        self._inputs_of: dict[str, nn.Module] = {}
        self._axes: dict[str, int] = {}
        self._layouts: Layouts | None = None if reduce is None else Layouts()
        self._channels: dict[str, int] = {}
        self._input_axes: dict[str, int] = {}
        self._few: dict[str, tuple[int, ...]] = {}
        self._left_out: dict[str, str] = {}

    def __enter__(self) -> Watcher:
        with ExitStack() as stack:
            self._bare = stack.enter_context(at_rest(self.network, self.device))
            floating = (value for value in self._bare.parameters() if value.is_floating_point())
            self._dtype = next((value.dtype for value in floating), None)
            self._hooks = stack.enter_context(ExitStack())
            self._hook()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def place(self) -> torch.device | None:
        """Where batches have to be for this network."""
        return next((value.device for value in self._bare.parameters()), self.device)

    def see(self, batch: Batch, number: int) -> Seen:
        """Show the network a batch."""
        self._batch, self._seen = batch, Seen()
        self._new_pass()
        inputs = cast(ready(self._bare, batch.inputs), self._dtype)
        self._mask = inputs.get("attention_mask") if isinstance(inputs, dict) else None
        if self.chosen is None:
            self._look_ahead(inputs, number)
        answer = answered(self._bare, inputs, batch, number, self.label)
        if LOGITS in self.selection.asked:
            self._receive(LOGITS, self._bare, answer)
        self._seen.answer = self._logits(answer)
        if self.chosen is None:
            self._settle()
        assert self.chosen is not None
        missing = [name for name in self.chosen if name not in self._seen.rows]
        if missing:
            raise InputError(
                f"{missing[0]!r} of {self.label} is not called on batch {number}, though it was on "
                "the first. Leave it out."
            )
        self._seen.rows = {name: self._seen.rows[name] for name in self.chosen}
        return self._seen

    def _hook(self) -> None:
        self._hooks.close()
        first = {}
        if self._layouts is not None and self.chosen is None:
            parts = self.selection.modules.values()
            closed = torch.jit.ScriptModule
            open_parts = (part for part in parts if not isinstance(part, closed))
            first = dict.fromkeys(open_parts, self._layouts.after)
        hooks = watched(self._hooked, self._receive, self._inputs_of, first=first)
        self._new_pass = self._hooks.enter_context(hooks)

    def _look_ahead(self, inputs: Any, number: int) -> None:
        """Before the first batch, with a few inputs of it: what cannot be told from it alone."""
        check_range(self._bare, inputs, self.label)
        if self._layouts is not None:
            self._layouts.start(inputs)
        few = fewer(inputs, 2 if self._batch.shown > 2 else 1)
        shown = inputs if few is None else few
        ask = partial(answered, self._bare, shown, self._batch, number, self.label)
        self._hooks.close()
        if PENULTIMATE in self.selection.asked:
            call = answering_call(self._bare, ask, self.head)
            self._answering = call.partition("#")[2]
            self._inputs_of = {PENULTIMATE: self.selection.modules[call.partition("#")[0]]}
        time_first = not all(getattr(part, "batch_first", True) for part in self._bare.modules())
        if time_first and few is not None and self._batch.shown > 1:
            # where this fails, the batch itself will, and says so better
            with suppress(ForwardError), watched(self._hooked, self._note_few, self._inputs_of):
                ask()
        self._hook()

    def _note_few(self, name: str, _module: nn.Module, output: Any) -> None:
        """A layer may give as many steps as there are inputs: only the inputs can become fewer."""
        value, name = first_tensor(output), self._meant(name)
        self._few[name] = () if value is None else tuple(value.shape)

    def _settle(self) -> None:
        """After the first batch: which calls are meant, and no more hooks than they need."""
        self.chosen = self.selection.chosen([*self._seen.rows, *self._left_out])
        kept = [name for name in self.chosen if name not in self._left_out]
        if len(kept) < len(self.chosen):
            names = [name for name in self.chosen if name in self._left_out]
            if not kept or any(name in self.selection.asked for name in names):
                raise InputError(self._left_out[names[0]])
            warn(
                f"{len(names)} layers of {self.label} are left out, the first because {self._left_out[names[0]]}",
            )
        self.chosen = kept
        bases = {name.partition("#")[0] for name in kept}
        self._hooked = {name: part for name, part in self._hooked.items() if name in bases}
        self._hook()

    def _meant(self, name: str) -> str:
        """A call under the name it is asked for: the answering one is what `penultimate` means."""
        base, _, number = name.partition("#")
        if base != PENULTIMATE or number == self._answering:
            return base if base == PENULTIMATE else name
        return f"{PENULTIMATE}#{number or 1}"

    def _receive(self, name: str, module: nn.Module, output: Any) -> None:
        name = self._meant(name)
        if self.chosen is not None and name not in self.chosen:
            return
        try:
            value = self._aligned(name, module, output)
            rows = self._rows(name, value, self._channel_axis(name, output))
        except _NoRowsError as error:
            if self.chosen is not None:
                raise
            self._left_out[name] = str(error)
            return
        self.kinds[name] = type(module).__name__
        self.dtypes[name] = str(value.dtype).removeprefix("torch.")
        self._axes.setdefault(name, value.ndim)
        # a view of what the network computed could still be overwritten by the network
        shared = rows.untyped_storage().data_ptr() == value.untyped_storage().data_ptr()
        self._seen.rows[name] = rows.clone() if shared else rows

    def _aligned(self, name: str, module: nn.Module, output: Any) -> Tensor:
        """What a layer gives, with the inputs along the first axis."""
        value, shown = first_tensor(output), self._batch.shown
        if value is None or not value.is_floating_point():
            what = "no tensor" if value is None else f"{value.dtype} entries"
            raise _NoRowsError(f"{name!r} of {self.label} gives {what}, not activations. Choose another layer.")
        if value.ndim == 3:
            if name not in self._input_axes:
                self._input_axes[name] = self._input_axis(name, module, value)
            value = value.transpose(0, self._input_axes[name])
        if value.ndim == 1 and len(value) == shown > 1:
            value = value[:, None]  # one number per input
        if shown == 1 and (value.ndim < self._axes.get(name, 2) or value.ndim == 0):
            value = value.reshape(1, *value.shape)  # a squeeze took the axis of a batch of one
        if value.ndim < 2 or value.shape[0] != shown:
            raise _NoRowsError(
                f"{name!r} of {self.label} gives shape {tuple(value.shape)} for {shown} inputs, so "
                "its first axis is not the inputs. Choose another layer."
            )
        return value if self._batch.rows is None else self._batch.rows(value)

    def _input_axis(self, name: str, module: nn.Module, value: Tensor) -> int:
        """0, or 1 where time comes first; settled on the first batch."""
        shown, few = self._batch.shown, self._few.get(name, ())
        axes = [axis for axis in (0, 1) if value.shape[axis] == shown]
        if len(few) == 3:
            axes = [axis for axis in axes if few[axis] != value.shape[axis]]
        if len(axes) == 2:
            return int(not all(getattr(part, "batch_first", True) for part in module.modules()))
        return axes[0] if axes else 0

    def _channel_axis(self, name: str, output: Any) -> int:
        """1 or -1, settled on the first batch; 0 where it could be either."""
        value = first_tensor(output)
        if name not in self._channels and self._layouts is not None and value is not None:
            if value.ndim < 3:
                return -1
            self._channels[name] = self._layouts.axis(value)
        return self._channels.get(name, -1)

    def _rows(self, name: str, value: Tensor, axis: int) -> Tensor:
        label = f"{name!r} of {self.label}"
        if value.ndim == 2:
            return value
        if self.reduce is None:
            raise InputError(wrong_rank(value, label))
        maps = value.ndim > 3 or axis == 1
        if axis == 0 and self.reduce != "flatten":
            raise _NoRowsError(
                f"{label} gives shape {tuple(value.shape)}, whose channels may be the second axis "
                "or the last. Choose reduce='flatten', inputs of another size or another layer."
            )
        value = value.movedim(-1, 1) if axis == -1 and maps else value
        mask = None if maps else self._mask
        if mask is not None and mask.shape != value.shape[:2]:
            mask = None
        try:
            return reduced(value, self.reduce, label, mask, maps=maps)
        except InputError as error:
            raise _NoRowsError(str(error)) from error

    def _logits(self, answer: Any) -> Tensor | None:
        value, shown = first_tensor(answer), self._batch.shown
        if value is not None and value.ndim == 1:
            value = value[None] if shown == 1 else value[:, None]  # squeezed
        if value is None or value.ndim != 2 or len(value) != shown or not value.is_floating_point():
            return None
        return value if self._batch.rows is None else self._batch.rows(value)
