"""How far the layers of two networks have moved apart, in the order of the forward pass.

Layers of the same name are compared if the networks share three quarters of names and sizes: by debiased CKA, which
ignores rotation and scale, and by the relative difference of the numbers, which ignores nothing and so finds the first
layer that changes at all. In networks of different kinds, each layer is compared with the most similar one of the other
network. Only sums are kept, batch by batch.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn

from likewise._base.machine import on_precise_device
from likewise.comparison.layerwise import is_text, layerwise
from likewise.comparison.streaming.layer_groups import CHUNK, Limits
from likewise.comparison.streaming.layer_rows import check_rows, paired_rows
from likewise.difference.counterparts import counterparts
from likewise.measures.numerics.minibatch import MinibatchCKA
from likewise.networks.anatomy.adapters import adapted_layers
from likewise.networks.forward import transform_for
from likewise.views.layers import Layer, layers
from likewise.views.recorder import Recorder
from likewise.views.show import Show

ROUNDING = 1e-5  # a relative difference up to which numbers are the same but for rounding
BEYOND = 1.25  # times what a lower precision alone changes, from which on a layer counts as changed
DIVERGED = 0.95  # debiased CKA below which a layer sees the inputs differently
_ROOM = 2**30  # bytes that one batch of all layers of both networks may take
_SMALLEST, _LARGEST = 8, 512  # inputs in a batch


@dataclass(frozen=True)
class LayerChange:
    """One layer of the first network and its counterpart in the second."""

    layer: str
    counterpart: str  # the layer of the second network that it is compared with
    likeness: float  # debiased CKA, NaN where undefined
    change: float  # |X - Y| / |X| over all inputs, NaN where the widths differ
    block: bool  # whether it is a block of the network
    reason: str = ""  # why debiased CKA is undefined, if so
    floor: float = 0.0  # what the precision of the second network alone changes, where that was measured

    @property
    def moved(self) -> bool:
        """Whether the numbers differ by more than rounding."""
        if math.isnan(self.change):
            return not self.likeness > 1 - ROUNDING
        return self.change > max(ROUNDING, BEYOND * self.floor)


def layer_changes(
    nets: Mapping[str, nn.Module], shows: Sequence[Show], selected: str | Sequence[str] | None, seed: int, memory: int
) -> list[LayerChange]:
    """Every layer that both networks have; of networks of different kinds, each block with the most similar one."""
    data, show = shows[0].data, shows[0]
    listed = [_without_adapters(net, layers(net, data, name=name)) for name, net in nets.items()]
    same = counterparts(*([layer.name for layer in side] for side in listed))
    shapes = [{layer.name: layer.shape for layer in side} for side in listed]
    shared = sum(shapes[0][name] == shapes[1][other] for other, name in same.items())
    if 4 * shared < 3 * max(map(len, listed)):
        return _nearest(nets, shows, selected or "blocks", seed, memory)
    reduction = show.reduce or ("mean" if is_text(data) else "flatten")
    inputs = [
        transform_for(net, data, repr(name), side.transform)
        for (name, net), side in zip(nets.items(), shows, strict=True)
    ]
    changes: dict[str, Any] = {"layers": "all" if selected is None else selected, "reduce": reduction}
    recorders = [
        Recorder(net, name, replace(side, **changes), room=memory // CHUNK)
        for (name, net), side in zip(nets.items(), shows, strict=True)
    ]
    sums = LayerSums()
    size = show.batch_size or _batch_size(listed[0])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"\d+ layers of .* are left out")  # none of them was asked for
        for rows, _, number, _ in paired_rows(
            recorders, inputs, size, seed, show.progress, Limits(memory), aliases=same
        ):
            names = [name for name in rows[0] if name in rows[1]]
            common = [{name: side.pop(name) for name in names} for side in rows]
            check_rows(common, [recorder.label for recorder in recorders], number)
            for name in names:
                sums.add(name, common[0].pop(name), common[1].pop(name))
    return sums.changes({layer.name for layer in listed[0] if layer.block})


def _without_adapters(net: nn.Module, listed: Sequence[Layer]) -> list[Layer]:
    """The layers that a network has without its adapters."""
    around = tuple(f"{name}." for name in adapted_layers(net))
    return [layer for layer in listed if not layer.name.startswith(around)]


class LayerSums:
    """Per layer, sums for debiased CKA and for the relative difference."""

    def __init__(self) -> None:
        self._cka: dict[str, MinibatchCKA] = {}
        self._squares: dict[str, tuple[float, float]] = {}

    def add(self, layer: str, x: Tensor, y: Tensor) -> None:
        """One batch of a layer, as rows of either network."""
        y = y.to(x.device)
        self._cka.setdefault(layer, MinibatchCKA()).add([x], [y])
        x, y = on_precise_device(x), on_precise_device(y)
        apart = float((x.double() - y.double()).square().sum()) if x.shape == y.shape else math.nan
        before = self._squares.get(layer, (0.0, 0.0))
        self._squares[layer] = before[0] + apart, before[1] + float(x.double().square().sum())

    def changes(self, in_blocks: set[str]) -> list[LayerChange]:
        """The layers in the order of the forward pass."""
        changes = []
        for layer, sums in self._cka.items():
            apart, whole = self._squares[layer]
            change = math.sqrt(apart / whole) if whole else (math.inf if apart else 0.0)
            reason = next((f"{layer} {fault}" for (fault,) in sums.faults() if fault), "")
            similarity = math.nan if reason else min(float(sums.values()[0, 0]), 1.0)
            changes.append(LayerChange(layer, layer, similarity, change, layer.partition("#")[0] in in_blocks, reason))
        return changes


def _nearest(
    nets: Mapping[str, nn.Module], shows: Sequence[Show], selected: str | Sequence[str], seed: int, memory: int
) -> list[LayerChange]:
    """Each layer of the first network with the most similar one of the second."""
    per_network: dict[str, Any] = {
        name: dict(zip(nets, (getattr(show, name) for show in shows), strict=True)) for name in ("head", "transform")
    }
    shared: dict[str, Any] = {
        name: getattr(shows[0], name) for name in ("reduce", "batch_size", "device", "dtype", "progress")
    }
    matrix = layerwise(nets, data=shows[0].data, layers=selected, seed=seed, memory=memory, **shared, **per_network)
    changes = []
    for row, values in zip(matrix.rows, matrix.values.tolist(), strict=True):
        defined = [(value, column) for value, column in zip(values, matrix.columns, strict=True) if value == value]
        similarity, column = max(defined, default=(math.nan, ""))
        reason = "" if defined else matrix.reasons.get((row, matrix.columns[0]), "")
        changes.append(LayerChange(row, column, similarity, math.nan, True, reason))
    return changes


def _batch_size(listed: Sequence[Layer]) -> int:
    """How many inputs a batch may have, by the size of all layers for one of them."""
    numbers = sum(math.prod(layer.shape) for layer in listed if layer.shape is not None)
    return max(_SMALLEST, min(_LARGEST, _ROOM // max(8 * numbers, 1)))
