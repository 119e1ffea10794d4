"""Looking inside a network while it runs: which layers are asked for, what they give, and the rows that become of it.

A layer is named as in `network.named_modules()`; wrappers that add nothing to look at (DataParallel, a compiled
network, normalisation of the input) do not show in names. A layer called several times in one pass has one name per
call: `attention`, `attention#2`. How often that is shows only in a pass, so patterns are matched twice: before the
first batch against modules, after it against calls.

What a layer gives is passed on the moment it exists, before an in-place operation further on can change it, and
nothing else is kept; hooks are removed whatever happens. Rows are one per input, or per token or position where that
is asked for.
"""

from __future__ import annotations

import fnmatch
import glob
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from likewise.errors import InputError, UnknownNameError
from likewise.networks.anatomy.blocks import blocks
from likewise.networks.anatomy.channel_axis import default_axis
from likewise.networks.anatomy.layers import named_layers
from likewise.networks.anatomy.outputs import first_tensor
from likewise.networks.forward import padding_mask
from likewise.networks.inputs.normalisation import unwrapped
from likewise.views.activations import wrong_rank
from likewise.views.batches import Batch
from likewise.views.reduction import BY_POSITION, reduced

LOGITS, PENULTIMATE, EMBEDDING = "logits", "penultimate", "embedding"
Layers = str | Sequence[str] | None  # None: penultimate where there is a classifier, else embedding


def is_pattern(layers: Layers) -> bool:
    """Whether a request may mean several layers."""
    if not isinstance(layers, str):
        return layers is not None
    return layers in ("all", "blocks") or any(mark in layers for mark in "*?[")


class Selection:
    """A request for layers, resolved against a network."""

    def __init__(self, network: nn.Module, layers: Layers, label: str) -> None:
        self.default = layers is None
        self.asked = [PENULTIMATE] if layers is None else [layers] if isinstance(layers, str) else list(layers)
        self.label = label
        self.modules = named_layers(network)
        if not self.asked:
            raise InputError(f"no layers of {label} were asked for. Name at least one, or 'all'.")
        for word in (PENULTIMATE, EMBEDDING):
            if word in self.asked and word in self.modules and not self.default:
                raise InputError(
                    f"{word!r} of {label} may be its layer of that name or what the word stands for. Ask for "
                    f"'[{word[0]}]{word[1:]}', which is the layer, or leave layers out for the other."
                )
        if set(self.asked) != {LOGITS}:
            self._check_open(unwrapped(network))
        self._patterns = {asked: self._expanded(asked) for asked in self.asked}

    def take_embedding(self) -> None:
        """Without a classifier, the default is the embedding."""
        self.asked, self._patterns = [EMBEDDING], {EMBEDDING: [EMBEDDING]}

    def hooked(self) -> dict[str, nn.Module]:
        """The modules that may hold what was asked for; an error where a request has none."""
        modules: dict[str, nn.Module] = {}
        for asked, patterns in self._patterns.items():
            if asked in (PENULTIMATE, EMBEDDING):
                continue
            names = _matching(self.modules, [pattern.partition("#")[0] for pattern in patterns])
            if not names and asked != LOGITS:
                raise UnknownNameError(f"no layer of {self.label} matches {asked!r}.{nearest(asked, self.modules)}")
            modules |= {name: self.modules[name] for name in names}
        return modules

    def select(self, calls: Sequence[str]) -> list[str]:
        """The calls of one pass that were asked for, in the order of the requests."""
        selected: dict[str, None] = {}
        for asked, patterns in self._patterns.items():
            names = _matching(calls, patterns)
            if not names:
                raise UnknownNameError(
                    f"{asked!r} of {self.label} is not called in its forward pass. `likewise layers` lists what is."
                )
            selected |= dict.fromkeys(names)
        return list(selected)

    def _check_open(self, network: nn.Module) -> None:
        """Refuse networks that cannot be looked into, or not yet."""
        if any(isinstance(module, torch.jit.ScriptModule) for module in network.modules()):
            raise InputError(
                f"{self.label} is compiled by TorchScript, so nothing but its 'logits' can be "
                "watched. Pass the module it was made from."
            )
        for name, module in self.modules.items():
            if any(is_lazy(value) for value in module.parameters(recurse=False)):
                raise InputError(
                    f"{name!r} of {self.label} is a {type(module).__name__}, whose size shows with "
                    "its first inputs. Show it some before: network(inputs)."
                )

    def _expanded(self, asked: str) -> list[str]:
        if asked == "all":
            return ["*"]
        if asked == "blocks":
            names = [glob.escape(name) for name in blocks(self.modules)]
            return [*names, *(f"{name}#*" for name in names)]
        return [asked]


def nearest(asked: str, names: Iterable[str]) -> str:
    """' The nearest are ...' for an error sentence; the first where none is near."""
    names = list(names)
    plain = asked.replace("*", "").replace("?", "").rstrip(".")
    close = get_close_matches(plain, names, n=3, cutoff=0.3)
    quoted = ", ".join(repr(name) for name in close or names[:3])
    return f" The {'nearest' if close else 'first'} are {quoted}; `likewise layers` lists all."


def _matching(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    return [n for n in names if any(fnmatch.fnmatchcase(n, pattern) for pattern in patterns)]


class NoRowsError(InputError):
    """A layer that does not give one row per input: refused where it is asked for by name, else left out."""


class UnfitReductionError(NoRowsError):
    """A reduction of tokens for a layer of maps, or vice versa: refused for blocks, which belong together."""


@dataclass(frozen=True)
class CallFacts:
    """What the first batch showed of one call: the layer's class and precision, and the axes of what it gives.

    Of the embedding, `reduce` is how it becomes rows by default, `source` what it was made from.
    """

    kind: str
    dtype: str
    ndim: int
    input_axis: int
    channel_axis: int | None  # 1 or -1, 0 where it could be either, None for rows
    reduce: str | None = None
    source: str = ""


def is_row(value: Tensor) -> bool:
    """Whether a layer gives one row per input, also with axes of size 1: `(n, d)`, `(n, c, 1, 1)`, `(n, 1, 1, c)`."""
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
    counts: dict[str, Tensor] = field(default_factory=dict)  # of calls that give tokens or positions, rows per input

    def of(self, name: str, output: Any, facts: CallFacts) -> Tensor:
        """The rows of one call, in memory of their own."""
        value = self.aligned(name, self.activations(name, output), facts)
        rows = self._reduced(name, value, facts.channel_axis, facts.reduce or self.reduce)
        # a view of what the network computed could still be overwritten by the network
        shared = rows.untyped_storage().data_ptr() == value.untyped_storage().data_ptr()
        return rows.clone() if shared else rows

    def activations(self, name: str, output: Any) -> Tensor:
        """The tensor a layer gives: the first, or the first with one entry per input where that has none."""
        value, count = first_tensor(output), self.batch.total
        if type(output) is tuple and value is not None and count not in value.shape[: 2 if value.ndim == 3 else 1]:
            others = (entry for entry in output if isinstance(entry, Tensor) and entry.ndim > 1)
            value = next((entry for entry in others if len(entry) == count), value)
        if value is None or not value.is_floating_point():
            what = "no tensor" if value is None else f"{value.dtype} entries"
            raise NoRowsError(f"{name!r} of {self.label} gives {what}, not activations. Choose another layer.")
        return value

    def aligned(self, name: str, value: Tensor, facts: CallFacts) -> Tensor:
        """What a layer gives, with the inputs along the first axis."""
        count = self.batch.total
        if value.ndim == 3:
            value = value.transpose(0, facts.input_axis)
        if value.ndim == 1 and len(value) == count > 1:
            value = value[:, None]  # one number per input
        if count == 1 and (value.ndim < facts.ndim or value.ndim == 0):
            value = value.reshape(1, *value.shape)  # a squeeze took the axis of a batch of one
        if value.ndim < 2 or value.shape[0] != count:
            raise NoRowsError(
                f"{name!r} of {self.label} gives shape {tuple(value.shape)} for {count} inputs, so "
                "its first axis is not the inputs. Choose another layer."
            )
        return value if self.batch.rows is None else self.batch.rows(value)

    def _reduced(self, name: str, value: Tensor, axis: int | None, reduce: str | None) -> Tensor:
        label = f"{name!r} of {self.label}"
        if is_row(value):
            return value.flatten(1)
        if reduce is None:
            raise InputError(wrong_rank(value, label))
        axis = default_axis(value) if axis is None else axis
        maps = value.ndim > 3 or axis == 1
        if axis == 0 and reduce != "flatten":
            raise NoRowsError(
                f"{label} gives shape {tuple(value.shape)}, whose channels may be the second axis "
                "or the last. Choose reduce='flatten', inputs of another size or another layer."
            )
        value = value.movedim(-1, 1) if axis == -1 and maps else value
        mask = None if maps else padding_mask(self.net, self.inputs, value.shape[1])
        try:
            rows = reduced(value, reduce, label, mask, maps=maps)
        except InputError as error:
            raise UnfitReductionError(str(error)) from error
        if reduce in BY_POSITION:
            each = torch.full((len(value),), len(rows) // len(value))
            self.counts[name] = each if mask is None else mask.bool().sum(dim=1).cpu()
        return rows

    def logits(self, value: Tensor | None) -> Tensor | None:
        """What the network answered, `(n, c)`; None where it is no such thing."""
        count = self.batch.total
        if value is not None and value.ndim == 1:
            value = value[None] if count == 1 else value[:, None]  # squeezed
        if value is None or value.ndim != 2 or len(value) != count or not value.is_floating_point():
            return None
        return value if self.batch.rows is None else self.batch.rows(value)
