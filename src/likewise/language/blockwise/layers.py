"""The rows of all layers of a language model that is read block by block, while each block is in memory.

Layers of a block are looked at while its weights are loaded, everything else (embeddings, norms, what holds all blocks)
in the pass of the last one. Rows are those of `extract`: one per text, reduced over its tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from likewise.errors import InputError
from likewise.language.blockwise.blocks import Blocks
from likewise.language.texts import Row
from likewise.networks.anatomy.blocks import blocks as blocks_of
from likewise.networks.anatomy.channel_axis import ChannelAxes
from likewise.networks.anatomy.layers import named_layers
from likewise.networks.sources.language import encoder_of
from likewise.views.batches import Batch
from likewise.views.hooks import CallFacts, NoRowsError, RowMaker, Selection
from likewise.views.recorder import facts_of
from likewise.views.reduction import BY_POSITION, check_reduction

OUTPUT = ""  # the name of what the network without its head gives
_BEFORE, _AFTER = -1, 2**31  # where layers outside of the blocks come in the order of all


class LayerRows:
    """The rows of the layers of one network.

    Args:
        blocks: The network.
        name: What it is called.
        selected: Names or globs of layers; by default all.
        reduce: How the tokens of a text become one row.
    """

    def __init__(self, blocks: Blocks, name: str, selected: str | Sequence[str] | None, reduce: str) -> None:
        check_reduction(reduce)
        if reduce in (*BY_POSITION, "flatten"):
            raise InputError(
                f"reduce={reduce!r} keeps every token, and a network that is read block by block gives one row per "
                "text. Choose 'mean', 'last' or 'cls'."
            )
        encoder = encoder_of(blocks.net)
        self._net, self._reduce, self._label = encoder, reduce, repr(name)
        self._last = len(blocks.blocks) - 1
        self.selection = Selection(encoder, "all" if selected is None else selected, self._label)
        modules = named_layers(encoder)
        self.in_blocks = set(blocks_of(modules))
        numbers = {id(block): i for i, block in enumerate(blocks.blocks)}
        roots = {name: numbers[id(module)] for name, module in modules.items() if id(module) in numbers}
        self._homes = {name: roots[root] for name in modules for root in roots if f"{name}.".startswith(f"{root}.")}
        for layer, module in {**self.selection.hooked(), OUTPUT: encoder}.items():
            module.register_forward_hook(partial(self._receive, layer), prepend=True, with_kwargs=True)
        self._facts: dict[str, CallFacts] = {}
        self._lost: set[str] = set()
        self._order: dict[str, tuple[int, int]] = {}
        self._rows: dict[str, list[Tensor]] = {}
        self._texts: dict[str, list[int]] = {}
        self._channels: ChannelAxes | None = None
        self._first: tuple[int, ...] = ()
        self._calls: Counter[str] = Counter()
        self.begin((), {}, 0)
        blocks.watcher = self

    def begin(self, texts: tuple[int, ...], inputs: Row, stage: int) -> None:
        """A pass begins, of these texts; of none where it is not to be looked at."""
        self._now, self._stage, self._inside = texts, stage, False
        self._calls.clear()
        if not texts:
            return
        if self._channels is None:
            self._first, self._channels = texts, ChannelAxes(inputs)
        self._maker = RowMaker(Batch(inputs, None, 0), inputs, self._reduce, self._label, self._net)

    def take(self) -> dict[str, tuple[list[int], Tensor]]:
        """The texts and the rows of layers that were passed since this was called last."""
        taken = {}
        for call, pieces in self._rows.items():
            if call not in self._lost:
                texts = self._texts[call]
                order = sorted(range(len(texts)), key=texts.__getitem__)
                taken[call] = [texts[i] for i in order], torch.cat(pieces)[order]
        self._rows, self._texts = {}, {}
        return taken

    def in_order(self, calls: Sequence[str]) -> list[str]:
        """These layers in the order of the forward pass."""
        return sorted(calls, key=self._order.__getitem__)

    def _receive(self, layer: str, module: nn.Module, args: Any, words: Any, output: Any) -> None:
        home = self._homes.get(layer)
        if not self._now or self._stage != (self._last if home is None else home):
            return
        self._calls[layer] += 1
        call = layer if self._calls[layer] == 1 else f"{layer}#{self._calls[layer]}"
        place = home if home is not None else _AFTER if self._inside else _BEFORE
        self._order.setdefault(call, (place, len(self._order)))
        self._inside |= home is not None
        if self._now == self._first and self._channels is not None:
            self._channels.after(module, args, words, output)
        try:
            facts = self._facts.get(call) or self._facts_of(call, module, output)
            rows = self._maker.of(call, output, facts).cpu()
        except NoRowsError:
            self._lost.add(call)
            return
        self._rows.setdefault(call, []).append(rows)
        self._texts.setdefault(call, []).extend(self._now)

    def _facts_of(self, call: str, module: nn.Module, output: Any) -> CallFacts:
        value = self._maker.activations(call, output)
        facts = facts_of(module, value, self._maker.batch.total, self._channels)
        self._facts[call] = replace(facts, ndim=self._maker.aligned(call, value, facts).ndim)
        return self._facts[call]
