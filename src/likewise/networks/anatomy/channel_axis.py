"""Which axis of what a layer gives holds the channels, the second or the last, and which the inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from likewise.networks.anatomy.outputs import first_tensor

_CHANNELS_FIRST = (
    nn.modules.conv._ConvNd,
    nn.modules.batchnorm._NormBase,
    nn.GroupNorm,
    nn.modules.pooling._MaxPoolNd,
    nn.modules.pooling._AvgPoolNd,
    nn.modules.pooling._LPPoolNd,
    nn.modules.pooling._AdaptiveMaxPoolNd,
    nn.modules.pooling._AdaptiveAvgPoolNd,
)
_CHANNELS_LAST = (nn.RNNBase, nn.MultiheadAttention, nn.Embedding)


class ChannelAxes:
    """Which axis of what layers give holds the channels, learned while a network runs once.

    Nothing in a tensor says so, but some layers do: a convolution gives `(n, c, ...)`, a
    normalisation of a layer works on the last axis. What comes after them (an activation function,
    a permutation, a whole block) is told by the tensor it was given, or by the sizes there were
    last. A linear layer says nothing alone: it may mix positions as well as channels.
    """

    def __init__(self, inputs: Any) -> None:
        self._known: Any = WeakTensorKeyDictionary()  # what passed between layers: its `_Axis`
        self._last: dict[int, tuple[int, tuple[int, ...]]] = {}  # by rank: axis, sizes of an input
        self._met: set[tuple[int, int]] = set()
        # images have one or three channels, which says where those are
        if isinstance(inputs, Tensor) and inputs.ndim > 3:
            sides = [axis for axis in (1, -1) if inputs.shape[axis] in (1, 3)]
            if len(sides) == 1:
                self._note(inputs, _Axis(sides[0]))

    def after(self, module: nn.Module, args: Any, words: Any, output: Any) -> None:
        """A forward hook of every layer."""
        value = first_tensor(output)
        if value is None or value.ndim < 3 or not value.is_floating_point():
            return
        given = first_tensor([*args, *words.values()])
        axis = self._by(module, given if given is None or given.ndim == value.ndim else None, value)
        if axis is not None:
            self._note(value, axis)

    def axis(self, value: Tensor) -> int:
        """1 or -1; 0 where it could be either."""
        known = self._axis_of(value)
        return default_axis(value) if known is None else known.axis

    def _note(self, value: Tensor, axis: _Axis) -> None:
        self._known[value] = axis
        if axis.firm and axis.axis:
            self._last[value.ndim] = axis.axis, tuple(value.shape[1:])
            self._met.add((value.ndim, axis.axis))

    def _axis_of(self, value: Tensor) -> _Axis | None:
        """The axis of a tensor by itself or by its sizes; None where nothing is known of it."""
        if value in self._known or value.ndim not in self._last:
            return self._known.get(value)
        (axis, last), now = self._last[value.ndim], tuple(value.shape[1:])
        channels = last[0 if axis == 1 else -1]
        fitting = [side for side in (1, -1) if value.shape[side] == channels]
        if len(fitting) == 2:
            unsure = _rearranged(now, last) or (value.ndim, -axis) in self._met
            return _Axis(0 if unsure else axis)
        if not fitting or (fitting == [-axis] and not _rearranged(now, last)):
            return None  # as large by chance
        return _Axis(fitting[0])

    def _by(self, module: nn.Module, given: Tensor | None, value: Tensor) -> _Axis | None:
        if isinstance(module, _CHANNELS_FIRST):
            return _Axis(1)
        if isinstance(module, _CHANNELS_LAST):
            return _Axis(-1)
        before = None
        if given is not None:  # a block was given it before the sizes that were last
            before = self._known.get(given) if any(module.children()) else self._axis_of(given)
        if isinstance(module, (nn.Linear, nn.LayerNorm, nn.RMSNorm)):
            return self._by_last_axis(module, given, before, value)
        if type(module).__name__ == "Permute" and before is not None and before.axis:
            places: Any = getattr(module, "dims", ())
            if len(places) == value.ndim:
                place = list(places).index(before.axis % value.ndim)
                return {1: _Axis(1), value.ndim - 1: _Axis(-1)}.get(place)
        if given is not None and given.shape == value.shape and given in self._known:
            return before
        known = self._axis_of(value)
        if known is not None or given is None:
            return known
        if any(module.children()):  # a block ends as its last layers do
            return _Axis(self._last[value.ndim][0], firm=False) if value.ndim in self._last else None
        return None if _rearranged(given.shape[1:], value.shape[1:]) else before

    def _by_last_axis(self, module: nn.Module, given: Tensor | None, before: _Axis | None, value: Tensor) -> _Axis:
        linear = isinstance(module, nn.Linear)
        if _turns_inside(module, value):
            return _Axis(1)
        if given is not None and given not in self._known and given.shape[1] == given.shape[-1]:
            # moved there for a normalisation surely, for another layer perhaps
            unsure = linear and before is not None and before.axis != -1
            return _Axis(0 if unsure else -1, firm=not linear or before is not None)
        if before is not None and before.axis == 1 and (linear or before.firm):
            return before  # maps (n, c, h, w) as they are: it mixes positions, the channels stay
        return _Axis(-1, firm=not linear or (before is not None and before.firm))


def default_axis(value: Tensor) -> int:
    """Where channels are if nothing is known: last in tokens, second in maps."""
    return -1 if value.ndim == 3 else 1


def input_axis(module: nn.Module, value: Tensor, shown: int, few: Sequence[int]) -> int:
    """The axis of the inputs of three: 0, or 1 where time is first; `few` is the shape for fewer inputs, if known."""
    axes = [axis for axis in (0, 1) if value.shape[axis] == shown]
    if len(few) == 3:
        axes = [axis for axis in axes if few[axis] != value.shape[axis]]
    if len(axes) == 2:
        return int(not all(getattr(submodule, "batch_first", True) for submodule in module.modules()))
    return axes[0] if axes else 0


@dataclass(frozen=True)
class _Axis:
    """The axis of the channels, 0 where it may be either; not firm where nothing confirms it."""

    axis: int
    firm: bool = True


def _rearranged(now: Sequence[int], before: Sequence[int]) -> bool:
    return now != before and math.prod(now) == math.prod(before)


def _turns_inside(module: nn.Module, value: Tensor) -> bool:
    """Whether a normalisation moves the channels to the end and back, as LayerNorm2d does."""
    sizes: Any = getattr(module, "normalized_shape", None)
    if not sizes or type(module) in (nn.LayerNorm, nn.RMSNorm):
        return False
    named = "2d" in type(module).__name__.lower() and value.shape[1] == sizes[-1]
    return named or value.shape[-1] != sizes[-1]
