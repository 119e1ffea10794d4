"""Which axis of what a layer gives holds the channels, the second or the last, and which the inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from likewise.networks.anatomy.outputs import first_tensor

_AXES: dict[type[nn.Module], int] = {  # what layers give, whatever they are given
    nn.modules.conv._ConvNd: 1,
    nn.modules.batchnorm._NormBase: 1,
    nn.GroupNorm: 1,
    nn.modules.pooling._MaxPoolNd: 1,
    nn.modules.pooling._AvgPoolNd: 1,
    nn.modules.pooling._LPPoolNd: 1,
    nn.modules.pooling._AdaptiveMaxPoolNd: 1,
    nn.modules.pooling._AdaptiveAvgPoolNd: 1,
    nn.RNNBase: -1,
    nn.MultiheadAttention: -1,
    nn.Embedding: -1,
}


class ChannelAxes:
    """Which axis of what layers give holds the channels, learned while a network runs once.

    Nothing in a tensor says so, but some layers do: a convolution gives `(n, c, ...)`, a
    normalisation of a layer works on the last axis. What comes after them (an activation function,
    a permutation, a whole block) follows from the tensor it was given, or from the sizes there were
    last. A linear layer says nothing alone: it may mix positions as well as channels. Names of classes
    are no evidence.
    """

    def __init__(self, inputs: Any) -> None:
        self._axes: Any = WeakTensorKeyDictionary()  # what passed between layers: its `_Axis`
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
        taken = first_tensor([*args, *words.values()])
        axis = self._by(module, taken if taken is None or taken.ndim == value.ndim else None, value)
        if axis is not None:
            self._note(value, axis)

    def axis(self, value: Tensor) -> int:
        """1 or -1; 0 where it could be either."""
        axis = self._axis_of(value)
        return default_axis(value) if axis is None else axis.axis

    def _note(self, value: Tensor, axis: _Axis) -> None:
        self._axes[value] = axis
        if axis.firm and axis.axis:
            self._last[value.ndim] = axis.axis, tuple(value.shape[1:])
            self._met.add((value.ndim, axis.axis))

    def _axis_of(self, value: Tensor) -> _Axis | None:
        """The axis of a tensor by itself or by its sizes; None where nothing is known of it."""
        if value in self._axes or value.ndim not in self._last:
            return self._axes.get(value)
        (axis, last), now = self._last[value.ndim], tuple(value.shape[1:])
        channels = last[0 if axis == 1 else -1]
        fitting = [side for side in (1, -1) if value.shape[side] == channels]
        if len(fitting) == 2:
            unsure = _rearranged(now, last) or (value.ndim, -axis) in self._met
            return _Axis(0 if unsure else axis)
        if not fitting or (fitting == [-axis] and not _rearranged(now, last)):
            return None  # as large by chance
        return _Axis(fitting[0])

    def _by(self, module: nn.Module, taken: Tensor | None, value: Tensor) -> _Axis | None:
        by_kind = next((axis for kind, axis in _AXES.items() if isinstance(module, kind)), None)
        if by_kind is not None:
            return _Axis(by_kind)
        before = None
        if taken is not None:  # a block was given it before the sizes that were last
            before = self._axes.get(taken) if any(module.children()) else self._axis_of(taken)
        if isinstance(module, (nn.Linear, nn.LayerNorm, nn.RMSNorm)):
            return self._by_last_axis(module, taken, before, value)
        axes = None if taken is None else _permutation(taken, value)
        if axes is not None and before is not None and before.axis:
            index = axes.index(before.axis % value.ndim)
            return {1: _Axis(1), value.ndim - 1: _Axis(-1)}.get(index)
        if taken is not None and taken.shape == value.shape and taken in self._axes:
            return before
        axis = self._axis_of(value)
        if axis is not None or taken is None:
            return axis
        if any(module.children()):  # a block ends as its last layers do
            return _Axis(self._last[value.ndim][0], firm=False) if value.ndim in self._last else None
        return None if _rearranged(taken.shape[1:], value.shape[1:]) else before

    def _by_last_axis(self, module: nn.Module, taken: Tensor | None, before: _Axis | None, value: Tensor) -> _Axis:
        linear = isinstance(module, nn.Linear)
        if not linear and _normalises_second(module, taken, value):
            return _Axis(1)
        if taken is not None and taken not in self._axes and taken.shape[1] == taken.shape[-1]:
            # moved there for a normalisation surely, for another layer perhaps
            unsure = linear and before is not None and before.axis != -1
            return _Axis(0 if unsure else -1, firm=not linear or before is not None)
        if before is not None and before.axis == 1 and (linear or before.firm):
            return before  # maps (n, c, h, w) as they are: it mixes positions, the channels stay
        return _Axis(-1, firm=not linear or (before is not None and before.firm))


def default_axis(value: Tensor) -> int:
    """Where channels are if nothing is known: last in tokens, second in maps."""
    return -1 if value.ndim == 3 else 1


def input_axis(module: nn.Module, value: Tensor, count: int, few: Sequence[int]) -> int:
    """Which of three axes is the inputs: 0, or 1 where time is first; `few` is the shape for fewer inputs, or ()."""
    axes = [axis for axis in (0, 1) if value.shape[axis] == count]
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


def _permutation(taken: Tensor, value: Tensor) -> list[int] | None:
    """For every axis of a view, which one of the tensor it is a view of; None where axes did not change places."""
    if value.data_ptr() != taken.data_ptr() or value.stride() == taken.stride():
        return None
    before = list(zip(taken.shape, taken.stride(), strict=True))
    after = list(zip(value.shape, value.stride(), strict=True))
    return [before.index(axis) for axis in after] if len({*before}) == len(before) and {*before} == {*after} else None


def _normalises_second(module: Any, taken: Tensor | None, value: Tensor) -> bool:
    """Whether a normalisation works on the second axis, as the LayerNorm2d of libraries do: tried if both axes fit."""
    size = module.normalized_shape[-1]
    if type(module) in (nn.LayerNorm, nn.RMSNorm):
        return False
    if value.shape[-1] != size or value.shape[1] != size or taken is None:
        return bool(value.shape[-1] != size)
    disturbed = taken[:1].clone()
    disturbed[(0,) * disturbed.ndim] += 1
    changed = module.forward(disturbed) != module.forward(taken[:1])
    return bool(changed[(0, 1, *(0,) * (changed.ndim - 2))])
