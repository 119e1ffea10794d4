"""The difference of two language models that are larger than memory: both are read block by block, side by side.

One block of each is in memory with the hidden states of the texts. Its layers are compared text by text, its weights
tensor by tensor, and both are let go; what is left at the end is what the heads answer with. Networks of different
kinds, or that read texts by different tokens, go one after another, and only what their blocks give is kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from likewise.comparison.streaming.layer_rows import check_rows
from likewise.data.inputs import data_name
from likewise.difference.counterparts import counterparts
from likewise.difference.language_models.whole import Limits, check_texts, summed_up
from likewise.difference.layers import LayerChange, LayerSums
from likewise.difference.result import Diff
from likewise.difference.rounding import precision_of, with_floors
from likewise.difference.weights import WeightTally
from likewise.language import TokenAnswers
from likewise.language.blockwise.blocks import Blocks, Walks
from likewise.language.blockwise.layers import OUTPUT, LayerRows
from likewise.language.reading import compare_tokens
from likewise.measures.numerics.minibatch import MinibatchCKA
from likewise.views import Activations
from likewise.views.show import Show

Rows = dict[str, tuple[list[int], Tensor]]  # of layers: the texts, and a row for each


def blockwise_diff(
    networks: Mapping[str, str], data: Any, show: Show, layers: Any, limits: Limits, scores: Any, seed: int
) -> Diff:
    """What changed from one language model to another; `scores` gives those of measures of two views."""
    check_texts(data)
    show = replace(show, reduce=show.reduce or "mean")
    blocks = [Blocks(address, show.device, show.dtype) for address in networks.values()]
    both, answers = _read(blocks, list(networks), data, show, layers, seed)
    floors, rounding = _rounding(list(networks.values()), blocks, data, show, layers, seed)
    views = [
        Activations(rows, name=name, probe=data_name(data), about={"layer": "embedding"})
        for name, rows in zip(networks, both.outputs(), strict=True)
    ]
    changes = with_floors(both.changes(), floors)
    return summed_up(views, changes, both.weights.result(), answers, rounding, data, limits, scores)


def _read(
    blocks: Sequence[Blocks], names: Sequence[str], data: Any, show: Show, layers: Any, seed: int
) -> tuple[SideBySide, TokenAnswers]:
    both = SideBySide(blocks, names, layers, str(show.reduce))
    nets = [one.net for one in blocks]
    return both, compare_tokens(nets, names, data, show, seed=seed, blocks=blocks, together=both)


def _rounding(
    addresses: Sequence[str], blocks: Sequence[Blocks], data: Any, show: Show, layers: Any, seed: int
) -> tuple[dict[str, float], float]:
    """What the lower precision of one alone changes: per layer, and in KL divergence; nothing where they agree."""
    precisions = [precision_of(one.net) for one in blocks]
    if show.dtype is not None or precisions[0] == precisions[1]:
        return {}, 0.0
    full = max(range(2), key=lambda i: torch.finfo(precisions[i]).bits)
    lower = str(precisions[1 - full]).removeprefix("torch.")
    pair = [Blocks(addresses[full], show.device), Blocks(addresses[full], show.device, precision=lower)]
    both, answers = _read(pair, ["whole", "rounded"], data, replace(show, progress=False), layers, seed)
    floors = {change.layer: change.change for change in both.changes()}
    return floors, 0.0 if answers.kl is None else float(answers.kl.mean())


class SideBySide:
    """Leads two networks through their blocks, and compares their layers and weights meanwhile."""

    def __init__(self, blocks: Sequence[Blocks], names: Sequence[str], selected: Any, reduce: str) -> None:
        self._names, self._blocks = list(names), blocks
        self._sides = [LayerRows(one, name, selected, reduce) for one, name in zip(blocks, names, strict=True)]
        shapes = [one.weights.shapes for one in blocks]
        self.weights = WeightTally(*shapes)
        self._aliases = counterparts(*(list(side.selection.modules) for side in self._sides))
        alike = 4 * len(self.weights.common) >= 3 * max(map(len, shapes))
        self._same = alike and len(blocks[0].blocks) == len(blocks[1].blocks)
        self._sums = LayerSums()
        self._kept: list[list[Rows]] = [[], []]  # of networks that went one after another
        self._outputs: list[list[tuple[list[int], Tensor]]] = [[], []]
        self._rounds = 0

    def __call__(self, blocks: Sequence[Blocks], walks: Walks) -> None:
        """One round of texts."""
        self._rounds += 1
        if len(blocks) == 2 and self._same:
            for _ in zip(*walks, strict=True):
                self._compare()
            for one in blocks:
                one.load_head()
            self._compare()
            return
        for one, walk in zip(blocks, walks, strict=True):
            index = self._blocks.index(one)
            for _ in walk:
                self._kept[index].append(self._taken(index, only=self._sides[index].in_blocks))

    def outputs(self) -> list[Tensor]:
        """What either network gives without its head, one row per text."""
        return [_joined(pieces)[1] for pieces in self._outputs]

    def changes(self) -> list[LayerChange]:
        """The layers in the order of the forward pass."""
        if any(self._kept):
            self._compare_kept()
        first = self._sides[0]
        changes = {change.layer: change for change in self._sums.changes(first.in_blocks)}
        return [changes[name] for name in first.in_order(list(changes))] if changes else self._nearest()

    def _taken(self, index: int, only: set[str] | None = None) -> Rows:
        """New rows of one network, by the names of the first; its output is put aside."""
        rows = self._sides[index].take()
        if OUTPUT in rows:
            self._outputs[index].append(rows.pop(OUTPUT))
        rows = {call: values for call, values in rows.items() if only is None or call.partition("#")[0] in only}
        return {self._alias(call): values for call, values in rows.items()} if index else rows

    def _alias(self, call: str) -> str:
        if not self._same:
            return call
        name, mark, number = call.partition("#")
        return f"{self._aliases.get(name, name)}{mark}{number}"

    def _compare(self) -> None:
        """Compare the layers that both networks passed now, and the weights that are in memory."""
        self._add(*(self._taken(index) for index in range(2)))
        self.weights.add(*(one.weights.loaded() for one in self._blocks))

    def _add(self, a: Rows, b: Rows) -> None:
        names = [name for name in a if name in b and a[name][0] == b[name][0]]
        if names:
            check_rows([{name: side[name][1] for name in names} for side in (a, b)], self._names, self._rounds)
        for name in names:
            self._sums.add(name, a[name][1], b[name][1])

    def _compare_kept(self) -> None:
        """Compare what was kept of networks that went one after another, and weights from their files."""
        a, b = (
            {name: _joined([rows[name] for rows in side if name in rows]) for name in _names(side)}
            for side in self._kept
        )
        self._kept = [[], []]
        for name, other in self.weights.left:
            self.weights.add({name: self._blocks[0].weights.read(name)}, {other: self._blocks[1].weights.read(other)})
        if self._same:
            self._add(a, b)
        else:
            self._blocks_of = a, b

    def _nearest(self) -> list[LayerChange]:
        """Each block of the first network with the most similar one of the second."""
        a, b = self._blocks_of
        sums = MinibatchCKA()
        sums.add(*([rows for _, rows in side.values()] for side in (a, b)))
        changes = []
        for row, values, fault in zip(a, sums.values().tolist(), sums.faults()[0], strict=True):
            defined = [(value, column) for value, column in zip(values, b, strict=True) if value == value]
            similarity, column = max(defined, default=(math.nan, ""))
            reason = f"{row} {fault}" if fault else ""
            changes.append(LayerChange(row, column, min(similarity, 1.0), math.nan, True, reason))
        return changes


def _names(pieces: Sequence[Rows]) -> list[str]:
    return list(dict.fromkeys(name for rows in pieces for name in rows))


def _joined(pieces: Sequence[tuple[list[int], Tensor]]) -> tuple[list[int], Tensor]:
    """Rows of several rounds in the order of the texts."""
    texts = [text for some, _ in pieces for text in some]
    order = sorted(range(len(texts)), key=texts.__getitem__)
    return [texts[i] for i in order], torch.cat([rows for _, rows in pieces])[order]
