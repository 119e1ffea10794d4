"""Masked language models: which tokens are hidden from them, the same ones for all networks of one tokenizer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from likewise.errors import InputError
from likewise.language.texts import IDS, Row, Tokens
from likewise.networks.inputs.normalisation import unwrapped

SHARE = 0.15  # of the tokens of a text


def hide(net: nn.Module, tokens: Tokens, seed: int) -> list[tuple[Row, Tensor]]:
    """Every text with tokens replaced by the mask, and their positions: 15 % of a text, and at least one."""
    inside: Any = unwrapped(net)
    tokenizer = getattr(getattr(inside, "tokenize", None), "tokenizer", None)
    mask = getattr(tokenizer, "mask_token_id", None)
    if mask is None:
        raise InputError(
            f"{type(inside).__name__} answers at hidden tokens, and no tokenizer says which token hides one. Give it "
            "its own: likewise.network(net, tokenizer=tokenizer)."
        )
    special = torch.tensor(sorted(getattr(tokenizer, "all_special_ids", ())))
    shown = []
    for number, row in enumerate(tokens.rows):
        words = (~torch.isin(row[IDS], special)).nonzero()[:, 0]
        if not len(words):
            raise InputError(f"text {number} has no token that could be hidden. Leave such texts out.")
        draw = torch.Generator().manual_seed(seed + number)
        count = max(1, round(SHARE * len(words)))
        positions = words[torch.randperm(len(words), generator=draw)[:count]].sort().values
        ids = row[IDS].clone()
        ids[positions] = mask
        shown.append((row | {IDS: ids}, positions))
    return shown
