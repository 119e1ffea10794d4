"""Texts as a language model reads them: tokens of each text by themselves, cut to a window, without padding.

A text is cut where it has more tokens than the window or the network takes; how many were cut is counted. Pairs of
texts are a source and its target for networks with an encoder and a decoder; any other network reads both as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from likewise.data import Data, as_data
from likewise.data.inputs import are_texts
from likewise.errors import InputError, brief
from likewise.networks.forward import prepare_inputs
from likewise.networks.inputs.normalisation import unwrapped
from likewise.networks.inputs.tokenizers import cut_texts

READ = 256  # texts that are tokenised at a time
IDS, MASK = "input_ids", "attention_mask"
Row = dict[str, Tensor]  # the tensors of one text, each of one axis


@dataclass(frozen=True)
class Tokens:
    """Texts as one network reads them.

    Attributes:
        rows: The tensors of every text, among them `input_ids`.
        targets: Of networks with a decoder, the tokens that it answers with; None for any other.
        cut: How many texts were longer than the window or the network takes.
        bytes: How many bytes of each text were read, in UTF-8; None where only tokens are known.
    """

    rows: list[Row]
    targets: list[Tensor] | None
    cut: int
    bytes: list[int] | None

    @property
    def answered(self) -> list[Tensor]:
        """The tokens of every text that a network is asked for."""
        return [row[IDS] for row in self.rows] if self.targets is None else self.targets


def texts_of(data: Any) -> list[Any] | Mapping[str, Tensor]:
    """Texts, or the tensors that a tokenizer gave; anything else is refused."""
    inputs = data if isinstance(data, Mapping) else as_data(data)
    inputs = inputs.inputs if isinstance(inputs, Data) and inputs.domain == "text" else inputs
    if isinstance(inputs, Tensor) and inputs.ndim == 2 and not inputs.is_floating_point():
        inputs = {IDS: inputs}
    if isinstance(inputs, Mapping) and isinstance(inputs.get(IDS), Tensor) and inputs[IDS].ndim == 2:
        return inputs
    if isinstance(inputs, Iterator):
        inputs = list(inputs)
    if not are_texts(inputs):
        raise InputError(
            f"a language model reads texts, and was given {brief(data)}. Give a list of texts, the path of a text "
            "file, or what a tokenizer gives: {'input_ids': ..., 'attention_mask': ...}."
        )
    for number, text in enumerate(inputs):
        if not (text.strip() if isinstance(text, str) else all(part.strip() for part in text)):
            raise InputError(f"text {number} is empty, so there is nothing to predict. Leave such texts out.")
    return list(inputs)


def read_texts(net: nn.Module, texts: list[Any] | Mapping[str, Tensor], window: int, *, decoder: bool) -> Tokens:
    """The tokens of every text for one network."""
    if isinstance(texts, Mapping):
        if decoder:
            raise InputError(
                f"{type(unwrapped(net)).__name__} has an encoder and a decoder, and tokens alone do not say what it "
                "should answer. Give pairs of texts: a source and its target."
            )
        rows = _split(texts, window)
        return Tokens(rows, None, int(_lengths(texts).gt(window).sum()), None)
    if decoder and isinstance(texts[0], str):
        raise InputError(
            f"{type(unwrapped(net)).__name__} has an encoder and a decoder, and texts alone do not say what it should "
            "answer. Give pairs of texts: a source and its target."
        )
    if decoder:
        sources, targets = (list(side) for side in zip(*texts, strict=True))
        read, answered = _tokenised(net, sources, window), _tokenised(net, targets, window)
        return Tokens(read.rows, [row[IDS] for row in answered.rows], read.cut + answered.cut, answered.bytes)
    return _tokenised(net, texts, window)


def _tokenised(net: nn.Module, texts: Sequence[Any], window: int) -> Tokens:
    rows: list[Row] = []
    sizes: list[int] = []
    cut = 0
    for start in range(0, len(texts), READ):
        batch = list(texts[start : start + READ])
        given = prepare_inputs(net, batch)
        tensors = {IDS: given} if isinstance(given, Tensor) else dict(given)
        lengths = _lengths(tensors)
        shortened = (lengths > window).tolist()
        cut += max(cut_texts(net, batch, given), sum(shortened))
        rows += (made := _split(tensors, window))
        full = _cut_by_network(net, lengths)
        sizes += [
            _bytes_read(net, text, row) if short or whole else _bytes(text)
            for text, row, short, whole in zip(batch, made, shortened, full, strict=True)
        ]
    return Tokens(rows, None, cut, sizes)


def _cut_by_network(net: nn.Module, lengths: Tensor) -> list[bool]:
    """Which texts have as many tokens as the network takes, and so may have been cut."""
    inside: Any = unwrapped(net)
    longest = getattr(getattr(inside, "tokenize", None), "longest", None)
    return [longest is not None and length >= longest for length in lengths.tolist()]


def _bytes(text: Any) -> int:
    return len(text.encode()) if isinstance(text, str) else sum(len(part.encode()) for part in text)


def _bytes_read(net: nn.Module, text: Any, row: Row) -> int:
    """How many bytes the tokens of a text that was cut stand for."""
    inside: Any = unwrapped(net)
    decode = getattr(getattr(getattr(inside, "tokenize", None), "tokenizer", None), "decode", None)
    if decode is None:
        return _bytes(text)
    return min(_bytes(text), len(str(decode(row[IDS].tolist(), skip_special_tokens=True)).encode()))


def _lengths(tensors: Mapping[str, Tensor]) -> Tensor:
    """How many tokens every text has."""
    ids, mask = tensors[IDS], tensors.get(MASK)
    return torch.full((len(ids),), ids.shape[1]) if mask is None else (mask != 0).sum(dim=1).cpu()


def _split(tensors: Mapping[str, Tensor], window: int) -> list[Row]:
    """One row per text, without padding on either side, cut to the window."""
    ids = tensors[IDS]
    mask = tensors.get(MASK, torch.ones_like(ids)) != 0
    fields = {
        name: value
        for name, value in tensors.items()
        if name != MASK and isinstance(value, Tensor) and value.shape == ids.shape
    }
    return [{name: value[i][mask[i]][:window].cpu() for name, value in fields.items()} for i in range(len(ids))]


def batched(rows: Sequence[Row], device: Any) -> Row:
    """Texts as one batch, padded on the right, with a mask."""
    longest = max(len(row[IDS]) for row in rows)
    batch = {
        name: torch.stack([torch.nn.functional.pad(row[name], (0, longest - len(row[name]))) for row in rows])
        for name in rows[0]
    }
    lengths = torch.tensor([len(row[IDS]) for row in rows])
    batch[MASK] = (torch.arange(longest)[None] < lengths[:, None]).long()
    return {name: value.to(device) for name, value in batch.items()}


def by_length(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Texts of similar length together, the longest first, each batch with at most `budget` tokens and padding.

    >>> by_length([3, 9, 2, 8], budget=16)
    [[1], [3, 0], [2]]
    """
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    batches: list[list[int]] = []
    for i in order:
        if batches and lengths[batches[-1][0]] * (len(batches[-1]) + 1) <= budget:
            batches[-1].append(i)
        else:
            batches.append([i])
    return batches
