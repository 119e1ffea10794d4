"""A language model larger than memory, block by block: each weight is read once for all texts, and let go again.

The network's own forward pass is called for every batch and every block. Blocks that were passed before give what they
gave, the block whose weights are loaded computes, and the pass ends behind it; the last one goes on to the head, whose
inputs are kept where tokens are asked for. So one block is in memory with the hidden states of the texts, and what a
network does around its blocks and behind its head (masks, rotations, scales, caps) is done by itself. A network that
uses more of a block than the next one's input is refused: earlier outputs are NaN, and NaN must not come in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from likewise._base.machine import accelerator, free_memory
from likewise._base.progress import Progress
from likewise.errors import InputError, LikewiseError
from likewise.language.blockwise.weights import Weights
from likewise.language.texts import IDS, Row
from likewise.networks.address import SHOWING, has_prefix, parse
from likewise.networks.anatomy.outputs import first_tensor
from likewise.networks.building import building
from likewise.networks.forward import DTYPES, call, check_dtype, explained
from likewise.networks.sources.base import Request
from likewise.networks.sources.language import LM, language_kind
from likewise.networks.sources.repository import locate
from likewise.networks.sources.shards import Shards
from likewise.networks.sources.transformers import skeleton

SHARE = 3  # the hidden states of the texts of a round may take a third of what is free
_EMBEDDING = -1  # the stage before the first block
_WHOLE = "Leave blockwise out, or say blockwise=False: it is read whole."
Batch = tuple[list[int], Tensor, Any]  # texts, the places that are asked for in the flattened batch, what is asked
Walks = Sequence[Iterator[int]]  # networks on their way through their blocks


class Together(Protocol):
    """What leads several networks through their blocks, and looks at them meanwhile."""

    def __call__(self, blocks: Sequence[Blocks], walks: Walks) -> None: ...


class Watcher(Protocol):
    """What looks at the layers of a network: it is told of every pass."""

    def begin(self, texts: tuple[int, ...], inputs: Row, stage: int) -> None:
        """A pass begins, of these texts; of none where it is not to be looked at."""


def are_larger_than_memory(nets: Sequence[Any]) -> bool:
    """Whether these are addresses of networks whose weights do not fit into memory together."""
    sizes = [_size(net) for net in nets]
    return None not in sizes and sum(size or 0 for size in sizes) > free_memory()


def _size(net: Any) -> int | None:
    """Bytes of the weights of an address, None where they cannot be read in blocks."""
    try:
        request = _request(net)
        here = request.options
        subfolder, trusted = here.get("subfolder"), bool(here.get("trust_remote_code"))
        return Shards(locate(request, here.get("revision"), subfolder, trusted)).size
    except (LikewiseError, OSError):  # said where it is loaded
        return None


def _request(net: Any) -> Request:
    """What the address of a whole network of transformers asks for."""
    if not isinstance(net, str) or not has_prefix(net) or parse(net).prefix != "hf":
        raise InputError(
            f"{net if isinstance(net, str) else type(net).__name__} cannot be read block by block, only networks of "
            f"transformers that an address names ('hf:FOLDER'). {_WHOLE}"
        )
    parts = parse(net)
    options = {name: value for name, value in parts.options.items() if name not in SHOWING}
    if {"bits", "device_map"} & options.keys():
        raise InputError(
            f"{net} cannot be read block by block: bits and device_map are for networks that are loaded whole. Leave "
            "them out, or say blockwise=False."
        )
    if parts.weights or "+" in parts.name or not options.pop("pretrained", True) or options.pop("part", LM) != LM:
        raise InputError(f"{net} cannot be read block by block: it is no whole network with its weights. {_WHOLE}")
    return Request("hf", parts.name, options, True, net)


@dataclass
class _Passing:
    """A batch on its way through a network."""

    texts: tuple[int, ...]
    inputs: Row
    places: Tensor | None  # None: nothing is kept for the head
    embedded: Any = None
    hidden: Any = None
    kept: Tensor | None = None


class _PassEndsError(Exception):
    """The pass of a batch ends here."""


class Blocks:
    """A language model that is read block by block.

    Args:
        address: Its address.
        device: Where it computes; by default on the accelerator, if there is one.
        dtype: The precision it runs in, as `Show` has it.
        precision: What its weights are rounded to, by default nothing.
    """

    most = None  # logits are never held whole

    def __init__(
        self,
        address: Any,
        device: Any = None,
        dtype: str | None = None,
        *,
        precision: str | None = None,
    ) -> None:
        request = _request(address)
        options = {} if precision is None else {"dtype": precision}
        with building(request):
            self.net, repository = skeleton(replace(request, options={**request.options, **options}))
        self.address = str(address)
        self.device = torch.device(device or accelerator() or "cpu")
        if dtype is not None:
            check_dtype(dtype)
        self._autocast = DTYPES[dtype] if dtype in ("float16", "bfloat16") else None
        self._raised = dtype == "float32"
        self.shards = Shards(repository)
        self.blocks = self._find_blocks()
        self._embedding, self._head = self.net.get_input_embeddings(), self.net.get_output_embeddings()
        self.vocabulary = int(self._head.weight.shape[0])
        self.watcher: Watcher | None = None
        self.weights = Weights(
            self.net,
            self.shards,
            self.address,
            self.device,
            raised=self._raised,
            parts=[self._embedding, self._head, *self.blocks],
            remedy=_WHOLE,
        )
        self._stage, self._seen, self._now = _EMBEDDING, 0, _Passing((), {}, None)
        self._one: _Passing | None = None  # a token that goes with every pass, for the head
        self._given: Tensor | None = None  # what the head is given
        self._kept: dict[tuple[int, ...], tuple[Tensor, Tensor]] = {}
        self._embedding.forward = partial(self._pass_embedding, self._embedding.forward)
        self._embedding.register_forward_hook(partial(self._end, _EMBEDDING))
        self._head.forward = partial(self._pass_head, self._head.forward)
        for i, block in enumerate(self.blocks):
            block.forward = partial(self._pass_block, i, block.forward)
            if i < len(self.blocks) - 1:
                block.register_forward_hook(partial(self._end, i))

    def _find_blocks(self) -> nn.ModuleList:
        """The list of modules that has most weights, in a network with one embedding and one head."""
        lists = [module for module in self.net.modules() if isinstance(module, nn.ModuleList) and len(module)]
        blocks = max(lists, key=lambda one: sum(weight.numel() for weight in one.parameters()), default=None)
        ends = [self.net.get_input_embeddings(), self.net.get_output_embeddings()]
        kind = language_kind(self.net)
        quantised = getattr(self.net.config, "quantization_config", None) is not None
        if blocks is None or kind in (None, "seq2seq") or quantised or not all(hasattr(e, "weight") for e in ends):
            raise InputError(
                f"{self.address} cannot be read block by block: a {type(self.net).__name__} is no plain list of blocks "
                f"between an embedding and a head. {_WHOLE}"
            )
        return blocks

    @property
    def bytes_per_token(self) -> int:
        """What a token takes while it passes: its embedding, its hidden state, and another of those meanwhile."""
        width = int(self._embedding.weight.shape[1])
        size = 4 if self._raised else self._embedding.weight.element_size()
        return 3 * width * size

    def walk(
        self,
        batches: Mapping[tuple[int, ...], tuple[Row, Tensor]],
        watched: Mapping[tuple[int, ...], Row] | None = None,
    ) -> Iterator[int]:
        """Pass batches of texts to the head, and keep what it would be given at the places that are asked for.

        The embedding and every block are given by their stages, from -1 on, while their weights are in memory. Layers
        are watched on these batches, or on others that pass with them.
        """
        asked = [
            _Passing(texts if watched is None else (), inputs, places.to(self.device))
            for texts, (inputs, places) in batches.items()
        ]
        passing = [*asked, *(_Passing(texts, inputs, None) for texts, inputs in (watched or {}).items())]
        token = {name: value[:1, :1] for name, value in passing[0].inputs.items()}
        self._one = _Passing((), token, None)
        self.weights.load_rest()
        for stage in range(_EMBEDDING, len(self.blocks)):
            with self.weights.of(self._embedding if stage == _EMBEDDING else self.blocks[stage]):
                for batch in [*passing, self._one]:
                    self._pass(batch, stage)
                yield stage
        self._kept = {
            texts: (one.places, one.kept)
            for texts, one in zip(batches, asked, strict=True)
            if one.places is not None and one.kept is not None
        }

    def of(self, texts: Sequence[int]) -> Callable[[Tensor], Tensor]:
        """The logits of a batch that was read, by positions of the flattened batch."""
        places, states = self._kept.pop(tuple(texts))
        return lambda positions: self._logits(states[torch.searchsorted(places, positions)])

    def load_head(self) -> None:
        """Load the weights of the head, until it is closed."""
        self.weights.load(self._head)

    def close(self) -> None:
        """Let go of the head, and of what was read."""
        self.weights.free(self._head)
        self._kept = {}

    def _logits(self, states: Tensor) -> Tensor:
        """What the network makes of these inputs of its head: its own pass over one token, with them put in."""
        self.load_head()
        self._given = states[None]
        assert self._one is not None
        logits = first_tensor(self._pass(self._one, len(self.blocks)))
        if logits is None or logits.shape[:-1] != self._given.shape[:-1]:
            raise self._refusal("it does not answer with the numbers of its head")
        return logits[0]

    def _pass(self, batch: _Passing, stage: int) -> Any:
        """Pass a batch as far as a stage goes."""
        self._stage, self._seen, self._now = stage, 0, batch
        if self.watcher is not None:
            self.watcher.begin(batch.texts, batch.inputs, stage)
        half = nullcontext() if self._autocast is None else torch.autocast(self.device.type, dtype=self._autocast)
        try:
            with torch.no_grad(), half, explained(self.net, batch.inputs):
                try:
                    output = call(self.net, dict(batch.inputs))
                except _PassEndsError:
                    return None
        finally:
            self._now = _Passing((), {}, None)
        if stage < len(self.blocks):
            raise self._refusal("its blocks are not called one after another")
        return output

    def _pass_embedding(self, forward: Any, *args: Any, **kwargs: Any) -> Any:
        if self._stage == _EMBEDDING:
            self._now.embedded = forward(*args, **kwargs)
        return self._now.embedded

    def _end(self, stage: int, *_: Any) -> None:
        """End the pass behind the module whose weights are loaded: after it, so that its output can be watched."""
        if stage == self._stage:
            raise _PassEndsError

    def _pass_block(self, i: int, forward: Any, *args: Any, **kwargs: Any) -> Any:
        if i != self._seen:
            raise self._refusal("its blocks are not called one after another")
        self._seen += 1
        before = self._now.hidden
        if i < self._stage:
            return before if i == self._stage - 1 else _nothing(before)
        given = first_tensor((args, kwargs))
        expected = given if i == 0 else first_tensor(before)
        if given is None or expected is None or not (given is expected or torch.equal(given, expected)):
            raise self._refusal("something is computed between its blocks")
        if any(value is not given and bool(value.isnan().any()) for value in _tensors((args, kwargs))):
            raise self._refusal("its blocks use more than what the block before gives")
        self._now.hidden = forward(*args, **kwargs)
        return self._now.hidden

    def _pass_head(self, forward: Any, states: Tensor) -> Any:
        if self._stage == len(self.blocks):
            return forward(self._given)
        if states.ndim != 3 or states.shape[:2] != self._now.inputs[IDS].shape:
            raise self._refusal("its head is not given one row per token")
        if self._now.places is not None:
            self._now.kept = states.flatten(0, 1)[self._now.places]
        if self._now is not self._one:
            self._now.hidden = self._now.embedded = None
        raise _PassEndsError

    def _refusal(self, reason: str) -> InputError:
        return InputError(f"{self.address} cannot be read block by block: {reason}. {_WHOLE}")


def _tensors(values: Any) -> Iterator[Tensor]:
    """All tensors of real numbers in nested arguments."""
    if isinstance(values, Tensor):
        yield from (values,) if values.is_floating_point() else ()
    elif isinstance(values, Mapping):
        yield from _tensors(tuple(values.values()))
    elif isinstance(values, (tuple, list)):
        for value in values:
            yield from _tensors(value)


def _nothing(values: Any) -> Any:
    """The same with NaN in place of all numbers."""
    if isinstance(values, Tensor):
        return values.new_full((), torch.nan).expand_as(values) if values.is_floating_point() else values
    if type(values) in (tuple, list):
        return type(values)(_nothing(value) for value in values)
    return values


def in_rounds(
    batches: Iterator[Batch], runs: Sequence[Any], together: Together | None = None, *, progress: bool = True
) -> Iterator[Batch]:
    """Batches after all networks have read them, as many in a round as hidden states fit.

    One network at a time, or both side by side where `together` leads them.
    """
    room = free_memory() // SHARE
    per_token = [run.blocks.bytes_per_token for run in runs]
    size = max(per_token) if together is None else sum(per_token)
    waiting: list[Batch] = []
    used = 0
    for batch in batches:
        need = sum(runs[0].lengths[i] for i in batch[0]) * size
        if waiting and used + need > room:
            yield from _round(waiting, runs, together, progress)
            waiting, used = [], 0
        waiting.append(batch)
        used += need
    if waiting:
        yield from _round(waiting, runs, together, progress)


def _round(batches: Sequence[Batch], runs: Sequence[Any], together: Together | None, progress: bool) -> Iterator[Batch]:
    blocks = [run.blocks for run in runs]
    what = f"reading {' and '.join(one.address for one in blocks)} block by block"
    with Progress(sum(len(one.blocks) + 1 for one in blocks), what, show=progress) as bar:

        def steps(run: Any) -> Iterator[int]:
            given = {tuple(texts): (run.inputs(texts), places) for texts, places, _ in batches}
            hides = together is not None and run.hidden is not None
            watched = {tuple(texts): run.inputs(texts, hidden=False) for texts, _, _ in batches} if hides else None
            for stage in run.blocks.walk(given, watched):
                bar.advance()
                yield stage

        walks = [steps(run) for run in runs]
        if together is None:
            for walk in walks:
                for _ in walk:
                    pass
        else:
            together(blocks, walks)
    yield from batches
    for one in blocks:
        one.close()
