"""How far the layers of two networks have moved apart, in the order in which they answer.

Layers of one name are held against each other where three quarters of names and sizes are the same: by debiased CKA,
which ignores rotation and scale, and by the relative difference of the numbers themselves, which ignores nothing and
so finds the first layer that any change shows in. Networks of different kinds have other layers, and then each is held
against the one it is most like. Nothing is kept but sums, batch by batch.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from likewise._base.progress import Progress
from likewise.comparison.layerwise import check_rows, is_text, layerwise, paired_batches
from likewise.measures.minibatch import MinibatchCKA
from likewise.networks.forward import transform_for
from likewise.views.batches import known_length
from likewise.views.layers import Layer, layers
from likewise.views.watcher import Watcher

ROUNDING = 1e-5  # a relative difference up to which numbers are the same but for rounding
DIVERGED = 0.95  # debiased CKA below which a layer sees the inputs differently
_ROOM = 2**30  # bytes that one batch of all layers of both networks may take
_SMALLEST, _LARGEST = 8, 512  # inputs in a batch


@dataclass(frozen=True)
class LayerChange:
    """One layer of the first network and its counterpart in the second.

    likeness  debiased CKA; NaN where it is undefined, and `reason` says why
    change    |X - Y| / |X| over all inputs; NaN where the widths differ
    block     whether it is a block of the network, and no part of one
    """

    layer: str
    counterpart: str
    likeness: float
    change: float
    block: bool
    reason: str = ""

    @property
    def moved(self) -> bool:
        """Whether the numbers differ by more than rounding."""
        if math.isnan(self.change):
            return not self.likeness > 1 - ROUNDING
        return self.change > ROUNDING


def layer_changes(
    a: nn.Module,
    b: nn.Module,
    data: Any,
    names: tuple[str, str],
    *,
    chosen: str | Sequence[str] | None = None,
    reduce: str | None = None,
    batch_size: int | None = None,
    device: Any = None,
    seed: int = 0,
    progress: bool = True,
) -> list[LayerChange]:
    """Every layer that both networks have; of networks of different kinds, each block with its nearest."""
    listed = [layers(net, data, name=name) for net, name in ((a, names[0]), (b, names[1]))]
    calls = [{(layer.name, layer.shape) for layer in side} for side in listed]
    if 4 * len(calls[0] & calls[1]) < 3 * max(map(len, calls)):
        return _nearest(a, b, data, chosen or "blocks", (reduce, batch_size, device, seed, progress))
    how = reduce or ("mean" if is_text(data) else "flatten")
    shown = [transform_for(net, data, repr(name)) for net, name in ((a, names[0]), (b, names[1]))]
    asked = "all" if chosen is None else chosen
    watchers = [
        Watcher(net, asked, how, label=repr(name), device=device, automatic=True)
        for net, name in ((a, names[0]), (b, names[1]))
    ]
    sums = _Sums()
    size = batch_size or _fitting(listed[0])
    total = -(-(known_length(shown[0]) or 0) // size)
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", message=r"\d+ layers of .* are left out")  # none of them was asked for
        bar = stack.enter_context(Progress(total, "layer by layer", shown=progress))
        for watcher in watchers:
            stack.enter_context(watcher)
        for number, own in enumerate(paired_batches(watchers, shown, size, seed), start=1):
            seen = [watcher.see(batch, number).rows for watcher, batch in zip(watchers, own, strict=True)]
            common = {name: rows for name, rows in seen[0].items() if name in seen[1]}
            check_rows([common, {name: seen[1][name] for name in common}], [w.label for w in watchers], number)
            for name, rows in common.items():
                sums.add(name, rows, seen[1][name])
            bar.advance()
    return sums.changes({layer.name for layer in listed[0] if layer.block})


class _Sums:
    """What is kept of layers: sums for debiased CKA, and for the relative difference."""

    def __init__(self) -> None:
        self._cka: dict[str, MinibatchCKA] = {}
        self._squares: dict[str, tuple[float, float]] = {}

    def add(self, layer: str, x: Tensor, y: Tensor) -> None:
        """One batch of a layer, as rows of either network."""
        y = y.to(x.device)
        self._cka.setdefault(layer, MinibatchCKA()).add([x], [y])
        apart = float((x.double() - y.double()).square().sum()) if x.shape == y.shape else math.nan
        before = self._squares.get(layer, (0.0, 0.0))
        self._squares[layer] = before[0] + apart, before[1] + float(x.double().square().sum())

    def changes(self, in_blocks: set[str]) -> list[LayerChange]:
        """The layers in the order in which they answered."""
        found = []
        for layer, sums in self._cka.items():
            apart, whole = self._squares[layer]
            change = math.sqrt(apart / whole) if whole else (math.inf if apart else 0.0)
            reason = next((f"{layer} {fault}" for (fault,) in sums.faults() if fault), "")
            likeness = math.nan if reason else min(float(sums.values()[0, 0]), 1.0)
            found.append(LayerChange(layer, layer, likeness, change, layer.partition("#")[0] in in_blocks, reason))
        return found


def _nearest(a: nn.Module, b: nn.Module, data: Any, chosen: Any, how: tuple[Any, ...]) -> list[LayerChange]:
    reduce, batch_size, device, seed, progress = how
    options: dict[str, Any] = {"batch_size": batch_size, "device": device, "seed": seed, "progress": progress}
    found = layerwise(a, b, data, layers=chosen, reduce=reduce, **options)
    changes = []
    for row, values in zip(found.rows, found.values.tolist(), strict=True):
        known = [(value, column) for value, column in zip(values, found.columns, strict=True) if value == value]
        likeness, column = max(known, default=(math.nan, ""))
        reason = "" if known else found.reasons.get((row, found.columns[0]), "")
        changes.append(LayerChange(row, column, likeness, math.nan, True, reason))
    return changes


def _fitting(listed: Sequence[Layer]) -> int:
    """How many inputs a batch may have, by what all layers give for one of them."""
    numbers = sum(math.prod(layer.shape) for layer in listed if layer.shape is not None)
    return max(_SMALLEST, min(_LARGEST, _ROOM // max(8 * numbers, 1)))
