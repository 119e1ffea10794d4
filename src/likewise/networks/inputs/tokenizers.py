"""How long texts may be: what a network of transformers takes, and how many texts are cut to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from likewise._base.warnings import warn
from likewise.errors import InputError
from likewise.networks.inputs.normalisation import unwrapped

_LIMITS = ("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx", "max_sequence_length")
_POSITIONS = ("position_embeddings", "position_embedding", "embed_positions", "wpe", "positions_embed")
_MOST = 10**6  # tokenizers that know no limit give 10**30


def longest_text(net: nn.Module, tokenizer: Any, asked: int | None = None, usual: int = _MOST) -> int | None:
    """How many tokens of a text a network takes: as many as are asked for, else all it can, or `usual` if fewer.

    None where it has no limit.
    """
    config: Any = getattr(net, "config", None)
    config = config.get_text_config() if hasattr(config, "get_text_config") else config
    limits = [getattr(config, name, None) for name in _LIMITS] + [getattr(tokenizer, "model_max_length", None)]
    limits += [_usable(module) for name, module in net.named_modules() if name.rpartition(".")[2] in _POSITIONS]
    limit = min((one for one in limits if isinstance(one, int) and 0 < one < _MOST), default=None)
    if asked is None:
        return limit if usual == _MOST else min(limit or usual, usual)
    if type(asked) is not int or asked < 1 or (limit is not None and asked > limit):
        most = "" if limit is None else f", at most {limit}, which is all that {type(net).__name__} takes"
        raise InputError(f"longest is {asked!r}. Give a number of tokens{most}.")
    return asked


def takes_padding(net: nn.Module) -> bool:
    """Whether a network looks at the last position, be it padding, and was trained on texts padded to one length."""
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
