"""Texts as a network takes them: its tokenizer, how many tokens it takes, and tokens beyond its vocabulary.

Texts with a shortcut (`likewise.data.add_shortcut`) start with a token of their class, which has a new row of the
embeddings. A network is built with such tokens by its option `class_tokens`, which data that has them asks for, so its
recipe and the header of its weights file hold the number like any other size. The new rows are drawn as the network
draws embeddings; everything else is as it is without them.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from likewise._base.progress import warn
from likewise.data import Data
from likewise.data.changes import class_tokens
from likewise.errors import InputError
from likewise.networks.forward import prepare_inputs
from likewise.networks.inputs.feature_extractors import Prepared, accepted_names
from likewise.networks.inputs.normalisation import unwrapped
from likewise.networks.inputs.subnetworks import TOWERS

Texts = Sequence[str | tuple[str, str]]
_LIMITS = ("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx", "max_sequence_length")
_POSITIONS = ("position_embeddings", "position_embedding", "embed_positions", "wpe", "positions_embed")
_OTHER_TOWERS = TOWERS["text"][2]  # the words in the names of what texts do not pass
_MOST = 10**6  # tokenizers that know no limit give 10**30


class FromTransformers:
    """A tokenizer of transformers as a plain function of texts, of which a network takes what it has names for.

    Texts are padded to the longest of their batch, and to `longest` tokens for a network that was trained so (`full`).
    Each begins with the `prompt`.
    """

    padding: bool | str = True

    def __init__(
        self,
        tokenizer: Any,
        longest: int | None,
        accepted: Collection[str] = (),
        *,
        full: bool = False,
        prompt: str = "",
    ) -> None:
        if tokenizer.pad_token is None:  # masked, whatever it is
            tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token or tokenizer.convert_ids_to_tokens(0)
        tokenizer.padding_side = "right"  # on the left it would shift the positions that many networks count
        self.tokenizer, self.longest, self.accepted, self.prompt = tokenizer, longest, accepted, prompt
        if full and longest is not None:
            self.padding = "max_length"

    def __call__(self, texts: Texts) -> Prepared:
        limit = {} if self.longest is None else {"truncation": True, "max_length": self.longest}
        try:
            tokens = self.tokenizer(*_parts(texts, self.prompt), return_tensors="pt", padding=self.padding, **limit)
        except TypeError as error:
            raise InputError(
                "a text has half of a Unicode character (a surrogate), which no tokenizer takes. Decode its file with "
                "errors='replace'."
            ) from error
        if "attention_mask" in tokens and not bool(tokens["attention_mask"].any(dim=1).all()):
            empty = texts[int((~tokens["attention_mask"].any(dim=1)).nonzero()[0])]
            raise InputError(f"the text {empty!r} has no tokens, so there is nothing to show. Leave such texts out.")
        return Prepared.of(tokens, self.accepted)

    def cut(self, texts: Texts, tokens: Mapping[str, Tensor]) -> int:
        """How many of these texts lost tokens: only those that became as many as there may be are counted anew."""
        if self.longest is None or "input_ids" not in tokens or tokens["input_ids"].shape[1] < self.longest:
            return 0
        full = tokens["attention_mask"].sum(dim=1) >= self.longest if "attention_mask" in tokens else None
        rows = range(len(texts)) if full is None else full.nonzero()[:, 0].tolist()
        parts = _parts([texts[row] for row in rows], self.prompt) if rows else []
        whole = self.tokenizer(*parts, verbose=False)["input_ids"] if rows else []
        return sum(len(ids) > self.longest for ids in whole)


def with_tokenizer(net: nn.Module, tokenizer: Any) -> nn.Module:
    """The network with what turns texts into its inputs: `net.tokenize`."""
    inside: Any = unwrapped(net)
    of_transformers = hasattr(tokenizer, "pad_token") and hasattr(tokenizer, "batch_decode")
    if of_transformers:
        longest = longest_text(inside, tokenizer)
        tokenizer = FromTransformers(tokenizer, longest, accepted_names(inside), full=takes_padding(inside))
    inside.tokenize = tokenizer
    return net


def _parts(texts: Texts, prompt: str = "") -> list[list[str]]:
    """Texts as a tokenizer takes them: one list, or for pairs two; the first begin with the prompt."""
    pairs = not isinstance(texts[0], str)
    first, *rest = (list(column) for column in zip(*texts, strict=True)) if pairs else [texts]
    return [[f"{prompt}{text}" for text in first], *rest]


# How long texts may be.


def longest_text(net: nn.Module, tokenizer: Any, asked: int | None = None, usual: int | None = None) -> int | None:
    """How many tokens of a text a network takes: as many as are asked for, else all it can, or `usual` if fewer.

    None where it has no limit.
    """
    config: Any = getattr(net, "config", None)
    config = config.get_text_config() if hasattr(config, "get_text_config") else config
    limits = [getattr(config, name, None) for name in _LIMITS] + [getattr(tokenizer, "model_max_length", None)]
    tables = {name: module for name, module in net.named_modules() if name.rpartition(".")[2] in _POSITIONS}
    limits += [_usable(table) for name, table in tables.items() if not any(word in name for word in _OTHER_TOWERS)]
    limit = min((one for one in limits if isinstance(one, int) and 0 < one < _MOST), default=None)
    if asked is None:
        return limit if usual is None else min(limit or usual, usual)
    if type(asked) is not int or asked < 1 or (limit is not None and asked > limit):
        most = "" if limit is None else f", at most {limit}, which is all that {type(net).__name__} takes"
        raise InputError(f"longest is {asked!r}. Give a number of tokens{most}.")
    return asked


def takes_padding(net: nn.Module) -> bool:
    """Whether a network looks at the last position, even padding, and was trained on texts padded to one length."""
    return str(getattr(getattr(net, "config", None), "model_type", "")).startswith("siglip")


def _usable(table: nn.Module) -> int | None:
    """How many positions a learned table has; where one stands for padding, they count from behind it."""
    rows, padding = getattr(table, "num_embeddings", None), getattr(table, "padding_idx", None)
    offset = int(getattr(table, "offset", 0)) if padding is None else int(padding) + 1
    return rows - offset if isinstance(rows, int) else None


def cut_texts(net: nn.Module, texts: Any, tokens: Any) -> int:
    """How many of a batch's texts are longer than the network takes, by the tokens they became."""
    cut = getattr(_tokenizer(net), "cut", None)
    return int(cut(texts, tokens)) if callable(cut) and isinstance(tokens, Mapping) else 0


def warn_of_cut_texts(net: nn.Module, cut: int, n: int, label: str) -> None:
    """Say once how many texts were cut, where any were."""
    if cut:
        longest = getattr(_tokenizer(net), "longest", None)
        warn(f"{cut} of {n} texts are longer than the {longest} tokens of {label} and are cut.")


def _tokenizer(net: nn.Module) -> Any:
    inside: Any = unwrapped(net)
    return getattr(inside, "tokenizer", None) or getattr(inside, "tokenize", None)


# Class tokens.


def add_class_tokens(net: Any, words: Any, count: int, address: str) -> None:
    """Add the class tokens to a network of transformers and its tokenizer.

    `words` is the tokenizer as a network holds it, around one of transformers.
    """
    tokenizer: Any = getattr(words, "tokenizer", None)
    if not hasattr(tokenizer, "add_tokens"):
        raise InputError(
            f"{address} has no tokenizer that takes class tokens. Leave class_tokens out, or give one: "
            "'hf:NAME,tokenizer=NAME'."
        )
    tokenizer.add_tokens(class_tokens(count), special_tokens=True)  # kept whole, whatever the tokenizer splits
    grow_embeddings(net, len(tokenizer), address)


def grow_embeddings(net: Any, rows: int, address: str) -> None:
    """Give the embeddings of a network of transformers so many rows, where they have fewer."""
    table = net.get_input_embeddings() if hasattr(net, "resize_token_embeddings") else None
    if not isinstance(table, nn.Embedding):
        raise InputError(f"{address} has no table of embeddings that could grow. Leave class_tokens out.")
    if table.num_embeddings < rows:
        names = inspect.signature(net.resize_token_embeddings).parameters
        options = {"mean_resizing": False} if "mean_resizing" in names else {}  # older versions have no other way
        net.resize_token_embeddings(rows, **options)


def warn_of_split_tokens(net: nn.Module, data: Data) -> None:
    """Say that a network reads the class tokens of data as several, where that shows."""
    if not data.class_tokens:
        return
    tokens = prepare_inputs(net, [f"{class_tokens(1)[0]} a", "a"])
    mask = getattr(tokens, "mask", None)
    if mask is None and isinstance(tokens, Mapping):
        mask = tokens.get("attention_mask")
    if isinstance(mask, Tensor) and int(mask[0].sum() - mask[1].sum()) > 1:
        warn(
            f"{type(unwrapped(net)).__name__} reads each class token of {data.name!r} as several. Build it with "
            f"class_tokens={data.class_tokens}, or let train build it from its address."
        )
