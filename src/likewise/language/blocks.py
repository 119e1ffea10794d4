"""A language model larger than memory, block by block: each weight is read once for all texts, and let go again.

The network's own forward pass is called for every batch and every block. Blocks that were passed before give what they
gave, the block whose weights are loaded computes, and the pass ends behind it; the last one goes on to the head, whose
inputs are kept where tokens are asked for. So one block is in memory with the hidden states of the texts, and what a
network does around its blocks and behind its head (masks, rotations, scales, caps) is done by itself. A network that
uses more of a block than the next one's input is refused: earlier outputs are NaN, and NaN must not come in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from likewise._base.machine import accelerator, free_memory
from likewise._base.progress import Progress
from likewise.errors import InputError, LikewiseError
from likewise.language.texts import IDS, Row
from likewise.networks.address import SHOWING, has_prefix, parse
from likewise.networks.anatomy.outputs import first_tensor
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
    if parts.weights or "+" in parts.name or not options.pop("pretrained", True) or options.pop("part", LM) != LM:
        raise InputError(f"{net} cannot be read block by block: it is no whole network with its weights. {_WHOLE}")
    return Request("hf", parts.name, options, True, net)


@dataclass
class _Passing:
    """A batch on its way through a network."""

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
        progress: Whether progress is shown.
    """

    most = None  # logits are never held whole

    def __init__(self, address: Any, device: Any = None, dtype: str | None = None, *, progress: bool = True) -> None:
        self.net, repository = skeleton(_request(address))
        self.address, self.progress = str(address), progress
        self.device = torch.device(device or accelerator() or "cpu")
        if dtype is not None:
            check_dtype(dtype)
        self._autocast = DTYPES[dtype] if dtype in ("float16", "bfloat16") else None
        self._raised = dtype == "float32"
        self.shards = Shards(repository)
        self.blocks = self._find_blocks()
        self._embedding, self._head = self.net.get_input_embeddings(), self.net.get_output_embeddings()
        self.vocabulary = int(self._head.weight.shape[0])
        self._weights = _Weights(self)
        self._rest: dict[str, nn.Module] | None = None
        self._stage, self._seen, self._now = _EMBEDDING, 0, _Passing({}, None)
        self._one: _Passing | None = None  # a token that goes with every pass, for the head
        self._given: Tensor | None = None  # what the head is given
        self._kept: dict[tuple[int, ...], tuple[Tensor, Tensor]] = {}
        self._embedding.forward = partial(self._pass_embedding, self._embedding.forward)
        self._head.forward = partial(self._pass_head, self._head.forward)
        for i, block in enumerate(self.blocks):
            block.forward = partial(self._pass_block, i, block.forward)

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

    def read(self, batches: Mapping[tuple[int, ...], tuple[Row, Tensor]]) -> None:
        """Pass batches of texts to the head, and keep what it would be given at the places that are asked for."""
        passing = [_Passing(inputs, places.to(self.device)) for inputs, places in batches.values()]
        token = {name: value[:1, :1] for name, value in passing[0].inputs.items()}
        self._one = _Passing(token, None)
        self._weights.load_rest()
        what = f"reading {self.address} block by block"
        with torch.no_grad(), Progress(len(self.blocks) + 1, what, show=self.progress) as bar:
            for stage in range(_EMBEDDING, len(self.blocks)):
                with self._weights.of(self._embedding if stage == _EMBEDDING else self.blocks[stage]):
                    for batch in [*passing, self._one]:
                        self._pass(batch, stage)
                bar.advance()
        self._kept = {
            texts: (one.places, one.kept)
            for texts, one in zip(batches, passing, strict=True)
            if one.places is not None and one.kept is not None
        }

    def of(self, texts: Sequence[int]) -> Callable[[Tensor], Tensor]:
        """The logits of a batch that was read, by positions of the flattened batch."""
        places, states = self._kept.pop(tuple(texts))
        return lambda positions: self._logits(states[torch.searchsorted(places, positions)])

    def close(self) -> None:
        """Let go of the head, and of what was read."""
        self._weights.free(self._head)
        self._kept = {}

    def _logits(self, states: Tensor) -> Tensor:
        """What the network makes of these inputs of its head: its own pass over one token, with them put in."""
        self._weights.load(self._head)
        self._given = states[None]
        assert self._one is not None
        with torch.no_grad():
            logits = first_tensor(self._pass(self._one, len(self.blocks)))
        if logits is None or logits.shape[:-1] != self._given.shape[:-1]:
            raise self._refusal("it does not answer with the numbers of its head")
        return logits[0]

    def _pass(self, batch: _Passing, stage: int) -> Any:
        """Pass a batch as far as a stage goes."""
        self._stage, self._seen, self._now = stage, 0, batch
        half = nullcontext() if self._autocast is None else torch.autocast(self.device.type, dtype=self._autocast)
        try:
            with half, explained(self.net, batch.inputs):
                try:
                    output = call(self.net, dict(batch.inputs))
                except _PassEndsError:
                    return None
        finally:
            self._now = _Passing({}, None)
        if stage < len(self.blocks):
            raise self._refusal("its blocks are not called one after another")
        return output

    def _pass_embedding(self, forward: Any, *args: Any, **kwargs: Any) -> Any:
        if self._stage == _EMBEDDING:
            self._now.embedded = forward(*args, **kwargs)
            raise _PassEndsError
        return self._now.embedded

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
        if i < len(self.blocks) - 1:
            raise _PassEndsError
        return self._now.hidden

    def _pass_head(self, forward: Any, states: Tensor) -> Any:
        if self._stage == len(self.blocks):
            return forward(self._given)
        if states.ndim != 3 or states.shape[:2] != self._now.inputs[IDS].shape:
            raise self._refusal("its head is not given one row per token")
        if self._now.places is not None:
            self._now.kept = states.flatten(0, 1)[self._now.places]
            self._now.hidden = self._now.embedded = None
        raise _PassEndsError

    def _refusal(self, reason: str) -> InputError:
        return InputError(f"{self.address} cannot be read block by block: {reason}. {_WHOLE}")


class _Weights:
    """Loads the weights of parts of a network from its files, and lets go of them."""

    def __init__(self, owner: Blocks) -> None:
        self._net, self._shards, self._address = owner.net, owner.shards, owner.address
        self._device, self._raised = owner.device, owner._raised
        self._parts = [owner.net.get_input_embeddings(), owner.net.get_output_embeddings(), *owner.blocks]
        self._names = {id(module): name for name, module in owner.net.named_modules()}
        self._values: dict[str, Tensor] = dict(owner.net.state_dict(keep_vars=True))
        self._loaded: set[str] = set()
        self._sources = self._find()

    def _find(self) -> dict[str, str]:
        """The tensor of the files that every weight is; tied weights have one."""
        tied: dict[int, list[str]] = {}
        for key, value in self._values.items():
            tied.setdefault(id(value), []).append(key)
        base = f"{getattr(self._net, 'base_model_prefix', '')}."
        sources: dict[str, str] = {}
        for key, value in self._values.items():
            names = [form for one in (key, *tied[id(value)]) for form in (one, one.removeprefix(base), base + one)]
            source = next((name for name in names if name in self._shards.files), None)
            if source is not None:
                sources[key] = source
            elif isinstance(value, nn.Parameter):
                raise InputError(
                    f"the files of {self._address} have no tensor of the name {key!r}, so it cannot be read block by "
                    f"block. {_WHOLE}"
                )
        return sources

    def load_rest(self) -> None:
        """Load what belongs to no part; it stays."""
        prefixes = tuple(f"{self._names[id(part)]}." for part in self._parts)
        self._load([key for key in self._values if not key.startswith(prefixes)])
        for module in self._net.modules():
            for name, value in module._buffers.items():
                module._buffers[name] = None if value is None else value.to(self._device)

    def load(self, part: nn.Module) -> None:
        """Load a part of the network."""
        self._load(self._keys(part))

    @contextmanager
    def of(self, part: nn.Module) -> Iterator[None]:
        """A part of the network with its weights meanwhile."""
        self.load(part)
        try:
            yield
        finally:
            self.free(part)

    def free(self, part: nn.Module) -> None:
        """Let go of the weights of a part."""
        for key in self._loaded.intersection(self._keys(part)):
            _put(self._net, key, self._values[key])
            self._loaded.discard(key)

    def _keys(self, part: nn.Module) -> list[str]:
        return [key for key in self._values if key.startswith(f"{self._names[id(part)]}.")]

    def _load(self, keys: Sequence[str]) -> None:
        keys = [key for key in keys if key in self._sources and key not in self._loaded]
        tensors = self._shards.read({self._sources[key] for key in keys})
        for key in keys:
            value, tensor = self._values[key], tensors[self._sources[key]]
            if value.shape != tensor.shape:
                raise InputError(
                    f"the weights of {self._address} do not fit it: {key} has {tuple(tensor.shape)} there and "
                    f"{tuple(value.shape)} here. Leave options out of its address."
                )
            dtype = torch.float32 if self._raised and value.is_floating_point() else value.dtype
            _put(self._net, key, tensor.to(self._device, dtype))
            self._loaded.add(key)


def _put(net: nn.Module, key: str, value: Tensor) -> None:
    """Put a tensor into a network as the weight or buffer of a name."""
    place, _, name = key.rpartition(".")
    module = net.get_submodule(place)
    if name in module._buffers:
        module._buffers[name] = value
    else:
        module._parameters[name] = (
            value if isinstance(value, nn.Parameter) else nn.Parameter(value, requires_grad=False)
        )


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


def in_rounds(batches: Iterator[Batch], runs: Sequence[Any]) -> Iterator[Batch]:
    """Batches after both networks have read them, as many in a round as hidden states fit; one network at a time."""
    room = free_memory() // SHARE
    waiting: list[Batch] = []
    used = 0
    for batch in batches:
        need = sum(run.lengths[i] for run in runs[:1] for i in batch[0]) * max(
            run.blocks.bytes_per_token for run in runs
        )
        if waiting and used + need > room:
            yield from _round(waiting, runs)
            waiting, used = [], 0
        waiting.append(batch)
        used += need
    if waiting:
        yield from _round(waiting, runs)


def _round(batches: Sequence[Batch], runs: Sequence[Any]) -> Iterator[Batch]:
    for run in runs:
        run.blocks.read({tuple(texts): (run.inputs(texts), places) for texts, places, _ in batches})
    yield from batches
    for run in runs:
        run.blocks.close()
