"""Tokens beyond a network's vocabulary: one per class, with one new row of its embeddings each.

Texts with a shortcut (`likewise.data.add_shortcut`) start with such a token. A network is built with them by its option
`class_tokens`, which data that has them asks for, so its recipe and the header of its weights file hold the number like
any other size. The new rows are drawn as the network draws embeddings; everything else is as it is without them.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from likewise._base.warnings import warn
from likewise.data import Data
from likewise.data.changes import class_tokens
from likewise.errors import InputError
from likewise.networks.forward import prepare_inputs
from likewise.networks.inputs.normalisation import unwrapped


def add_class_tokens(net: Any, words: Any, count: int, address: str) -> None:
    """Have a network of transformers and its tokenizer know the class tokens.

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
        known = inspect.signature(net.resize_token_embeddings).parameters
        alike = {"mean_resizing": False} if "mean_resizing" in known else {}  # older versions have no other way
        net.resize_token_embeddings(rows, **alike)


def warn_of_split_tokens(net: nn.Module, data: Data) -> None:
    """Say that a network reads the class tokens of data as several, where it can be told."""
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
