"""Two language models on the same texts: what each says of every token, side by side.

Position t of a text answers with a distribution over the token at t + 1. The first position that counts is the second
token, since something has to be read; `context` raises that. Masked models answer at tokens that are hidden from both,
models with an encoder and a decoder at the tokens of the target. Both networks see a batch before the next one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import torch
from torch import Tensor, nn

from likewise._base.arrays import Array
from likewise._base.machine import on_precise_device
from likewise._base.progress import Progress
from likewise.data.inputs import data_name
from likewise.errors import InputError
from likewise.language.blockwise.blocks import Blocks, Together, are_larger_than_memory, in_rounds
from likewise.language.hidden import hide
from likewise.language.logits import Pieces, TokenLogits
from likewise.language.networks import language_network
from likewise.language.result import Side, TokenAnswers
from likewise.language.texts import IDS, Row, Tokens, batched, by_length, read_texts, texts_of
from likewise.networks.forward import device_of, eval_mode, in_precision
from likewise.networks.inputs.normalisation import unwrapped
from likewise.networks.names import named_networks
from likewise.networks.sources.language import LanguageKind, language_kind
from likewise.views.show import Show, ShowOptions

WINDOW = 512  # tokens of a text that are read, if the network takes so many
_TOKENS = {"cpu": 2**11}  # of a batch, with padding: more are no faster on a CPU
_ELSEWHERE = 2**14
_PIECE = 2**26  # bytes of logits in double precision that are compared at a time
_USELESS = ("layers", "head", "reduce", "transform", "mean", "std", "num_workers", "store")


def answers(
    a: Any,
    b: Any,
    data: Any,
    *,
    names: Sequence[str] | None = None,
    window: int = WINDOW,
    context: int = 1,
    seed: int = 0,
    blockwise: bool | None = None,
    **show: Unpack[ShowOptions],
) -> TokenAnswers:
    """What two language models say of every token of the same texts.

    Args:
        a: An address (`hf:NAME`, `gguf:FILE`) or a module: the one that the other is compared with.
        b: The other.
        data: Texts: a list, the path of a file, or what a tokenizer gives. Pairs (source, target) for networks with
            an encoder and a decoder.
        names: What the two are called, if not by their addresses.
        window: The most tokens of a text that are read.
        context: How many tokens are read before the first that is asked for. `window // 2` is what llama.cpp does.
        seed: Draws the tokens that are hidden from masked models.
        blockwise: Whether networks of `hf:` are read block by block, each weight once for all texts, so that one block
            and the hidden states of the texts are in memory. By default where the weights of both do not fit.
        **show: How networks are shown (`batch_size`, `device`, `dtype`, `progress`; see `Show`).

    Returns:
        The answers, with `statistics()`: KL divergence, same top token, perplexity and bits per byte, with intervals.

    Raises:
        InputError: A network is no language model, a text is empty, or logits are not finite.
    """
    options = Show.only("answers", show, without=_USELESS)
    called = list(names or named_networks([a, b]))
    if blockwise or (blockwise is None and are_larger_than_memory([a, b])):
        blocks = [Blocks(net, options.device, options.dtype) for net in (a, b)]
        nets = [one.net for one in blocks]
        return compare_tokens(nets, called, data, options, window=window, context=context, seed=seed, blocks=blocks)
    nets = [language_network(net, data=data, device=options.device) for net in (a, b)]
    return compare_tokens(nets, called, data, options, window=window, context=context, seed=seed)


def compare_tokens(
    nets: Sequence[nn.Module],
    names: Sequence[str],
    data: Any,
    show: Show,
    *,
    window: int = WINDOW,
    context: int = 1,
    seed: int = 0,
    blocks: Sequence[Blocks] | None = None,
    together: Together | None = None,
) -> TokenAnswers:
    """The same for two modules, or for two networks that are read block by block, side by side with `together`."""
    for name, value in (("window", window), ("context", context)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InputError(f"{name} is {value!r}. Give a whole number of at least 1.")
    if context >= window:
        raise InputError(f"context is {context} and window is {window}: no token is left. Give a smaller context.")
    texts = texts_of(data)
    kinds = [language_kind(net) or "causal" for net in nets]
    check_kinds(names, kinds)
    kind: LanguageKind = kinds[0]
    read = [read_texts(net, texts, window, decoder=kind == "seq2seq") for net in nets]
    shared = all(
        torch.equal(one, other) for one, other in zip(read[0].answered, read[1].answered, strict=True)
    ) and _same_vocabulary(nets)
    masked = kind == "masked"
    hidden = [hide(net, tokens, seed) if masked else None for net, tokens in zip(nets, read, strict=True)]
    with ExitStack() as stack:
        ready = list(nets) if blocks else [stack.enter_context(eval_mode(net, show.device)) for net in nets]
        for net in ready if show.dtype and not blocks else ():
            stack.enter_context(in_precision(net, str(show.dtype)))
        runs = [
            Run(net, name, tokens, kind, context, hidden[i], None if blocks is None else blocks[i], together)
            for i, (net, name, tokens) in enumerate(zip(ready, names, read, strict=True))
        ]
        columns = _both(runs, show) if shared else [_alone(run, show) for run in runs]
    one, other = (Side(**columns[i], bytes=tokens.bytes, cut=tokens.cut) for i, tokens in enumerate(read))
    between = columns[2] if shared else {}
    return TokenAnswers(
        (names[0], names[1]),
        data_name(data),
        len(read[0].rows),
        kind,
        one,
        other,
        kl=between.get("kl"),
        token=between.get("token"),
        decode=decoder_of(nets[0]),
    )


def check_kinds(names: Sequence[str], kinds: Sequence[str]) -> None:
    """Refuse two that answer in different ways."""
    if len(set(kinds)) > 1:
        raise InputError(
            f"{names[0]} is a {kinds[0]} and {names[1]} a {kinds[1]} language model. Compare two of a kind."
        )


@dataclass
class Run:
    """One network with its texts, and where it is asked for tokens."""

    net: nn.Module
    name: str
    tokens: Tokens
    kind: LanguageKind
    context: int
    hidden: list[tuple[Row, Tensor]] | None  # of masked models: what is shown, and which positions are hidden
    blocks: Blocks | None = None  # where it is read block by block
    together: Together | None = None  # what looks at its layers meanwhile

    def __post_init__(self) -> None:
        self.logits: Any = self.blocks or TokenLogits(self.net, self.name, self.inputs([0]))

    @property
    def device(self) -> Any:
        """Where its inputs have to be."""
        return device_of(self.net, torch.device("cpu")) if self.blocks is None else self.blocks.device

    def pieces(self, texts: Sequence[int]) -> Pieces:
        """The logits of a batch by positions."""
        pieces: Pieces = self.logits.of(self.inputs(texts) if self.blocks is None else texts)
        return pieces

    @property
    def lengths(self) -> list[int]:
        """How many tokens of every text the network passes."""
        rows, targets = self.tokens.rows, self.tokens.targets
        return [max(len(row[IDS]), 0 if targets is None else len(targets[i])) for i, row in enumerate(rows)]

    def inputs(self, texts: Sequence[int], *, hidden: bool = True) -> Row:
        """Some texts as one batch, with what is hidden of them or without."""
        device = self.device
        rows = [self.hidden[i][0] if hidden and self.hidden is not None else self.tokens.rows[i] for i in texts]
        inputs = batched(rows, device)
        if self.tokens.targets is not None:
            start = torch.tensor([_start_token(self.net)])
            shifted = [{IDS: torch.cat([start, self.tokens.targets[i][:-1]])} for i in texts]
            inputs["decoder_input_ids"] = batched(shifted, device)[IDS]
        return inputs

    def asked(self, text: int) -> tuple[Tensor, Tensor]:
        """Which positions of a text answer, and the tokens that they are asked for."""
        tokens = self.tokens.answered[text]
        if self.hidden is not None:
            positions = self.hidden[text][1]
            return positions, tokens[positions]
        if self.tokens.targets is not None:
            return torch.arange(len(tokens)), tokens
        positions = torch.arange(self.context - 1, max(len(tokens) - 1, self.context - 1))
        return positions, tokens[positions + 1]


def _both(runs: Sequence[Run], show: Show) -> list[dict[str, Array]]:
    """What both networks say, token by token: a column per network, and what is between them."""
    one, other = runs
    width = min(one.logits.vocabulary, other.logits.vocabulary)
    columns: list[dict[str, list[Array]]] = [{}, {}, {}]
    for texts, places, (text, position, token) in batches_of(runs, show):
        pieces = [run.pieces(texts) for run in runs]
        for some in pieces_of(places, width):
            sides = [
                log_probabilities(run, piece, places[some], width) for run, piece in zip(runs, pieces, strict=True)
            ]
            truth = token[some]
            for column, side in zip(columns, sides, strict=False):
                _append(column, _said(side, text[some], position[some], truth))
            p, q = sides[0], sides[1].to(sides[0].device)
            gaps = torch.where(p > -torch.inf, p.exp() * (p - q), 0).sum(dim=1)
            _append(columns[2], {"kl": gaps.clamp(min=0), "token": truth})
    return [_sorted(column, columns[0]) for column in columns]


def _alone(run: Run, show: Show) -> dict[str, Array]:
    """What one network says, token by token."""
    column: dict[str, list[Array]] = {}
    width = run.logits.vocabulary
    for texts, places, (text, position, token) in batches_of([run], show):
        piece = run.pieces(texts)
        for some in pieces_of(places, width):
            side = log_probabilities(run, piece, places[some], width)
            _append(column, _said(side, text[some], position[some], token[some]))
    return _sorted(column, column)


def batches_of(runs: Sequence[Run], show: Show) -> Any:
    """Batches of texts; of networks that are read block by block, after they were read."""
    batches = _asked(runs, show)
    if runs[0].blocks is None:
        return batches
    return in_rounds(batches, runs, runs[0].together, progress=show.progress)


def _asked(runs: Sequence[Run], show: Show) -> Any:
    """Batches of texts: which they are, the positions that answer in the flattened batch, and what is asked there."""
    first = runs[0]
    budget = min([_TOKENS.get(first.device.type, _ELSEWHERE), *(run.logits.most or 2**30 for run in runs)])
    lengths = first.lengths
    groups = by_length(lengths, budget)
    if show.batch_size is not None:
        order = [i for group in groups for i in group]
        groups = [order[start : start + show.batch_size] for start in range(0, len(order), show.batch_size)]
    if first.together is not None:  # where there are several rounds, each has texts of all lengths
        groups = [groups[i] for i in torch.randperm(len(groups), generator=torch.Generator().manual_seed(0)).tolist()]
    answered = first.tokens.answered if first.tokens.targets is not None else [row[IDS] for row in first.tokens.rows]
    with Progress(len(groups), "reading texts", show=show.progress and not first.blocks) as bar:
        for group in groups:
            longest = max(len(answered[i]) for i in group)
            asked = [first.asked(i) for i in group]
            places = torch.cat([k * longest + positions for k, (positions, _) in enumerate(asked)])
            text = torch.cat([torch.full((len(positions),), i) for i, (positions, _) in zip(group, asked, strict=True)])
            facts = text, torch.cat([positions for positions, _ in asked]), torch.cat([tokens for _, tokens in asked])
            if len(places):
                yield group, places, facts
            bar.advance()


def pieces_of(places: Tensor, width: int) -> Iterator[slice]:
    """Positions that are compared at a time."""
    size = max(1, _PIECE // (8 * width))
    return (slice(start, start + size) for start in range(0, len(places), size))


def log_probabilities(run: Run, pieces: Any, places: Tensor, width: int) -> Tensor:
    """The logarithms of what a network gives to every token, in double precision where the device has it."""
    logits = pieces(places.to(run.device))[:, :width]
    if not bool(logits.isfinite().any(dim=1).all()) or bool(logits.isnan().any()):
        raise InputError(
            f"{run.name!r} answers with NaN or infinite logits, so nothing can be compared. Check its weights, or "
            "show it the texts in float32 (dtype='float32')."
        )
    logits = on_precise_device(logits)
    return logits.double().log_softmax(dim=1)


def _said(side: Tensor, text: Tensor, position: Tensor, token: Tensor) -> dict[str, Tensor]:
    loss = -side.gather(1, token[:, None].to(side.device))[:, 0]
    return {"text": text, "position": position, "loss": loss, "top": side.argmax(dim=1)}


def _append(column: dict[str, list[Array]], values: Mapping[str, Tensor]) -> None:
    for name, value in values.items():
        column.setdefault(name, []).append(value.cpu().numpy())


def _sorted(column: Mapping[str, list[Array]], keys: Mapping[str, list[Array]]) -> dict[str, Array]:
    """Columns in the order of the texts."""
    if not column:
        raise InputError("no text has a token that something was read before. Give longer texts, or a smaller context.")
    order = np.lexsort((np.concatenate(keys["position"]), np.concatenate(keys["text"])))
    return {name: np.concatenate(parts)[order] for name, parts in column.items()}


def _same_vocabulary(nets: Sequence[nn.Module]) -> bool:
    """Whether tokens of one number are the same token, as far as tokenizers say so."""
    vocabularies = []
    for net in nets:
        inside: Any = unwrapped(net)
        words: Any = getattr(getattr(inside, "tokenize", None), "tokenizer", None)
        vocabularies.append(words.get_vocab() if hasattr(words, "get_vocab") else None)
    return None in vocabularies or vocabularies[0] == vocabularies[1]


def decoder_of(net: nn.Module) -> Any:
    """From tokens to words, None where no tokenizer is known."""
    inside: Any = unwrapped(net)
    return getattr(getattr(getattr(inside, "tokenize", None), "tokenizer", None), "decode", None)


def _start_token(net: nn.Module) -> int:
    from likewise.networks.inputs.subnetworks import start_token

    config: Any = unwrapped(net).config
    start = getattr(config, "decoder_start_token_id", None)
    return int(start_token(config) if start is None else start)
