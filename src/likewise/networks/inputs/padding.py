"""Texts of one batch in chunks of similar length, so that short ones are not padded to the longest of all.

A network computes padding as it computes words. So texts are ordered by their tokens, longest first, and a chunk holds
as many as its budget of tokens takes, padded to the longest of the chunk.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from likewise.data.inputs import take
from likewise.networks.inputs.normalisation import unwrapped

_BUDGET = {"cpu": 2**11}  # tokens of a chunk with their padding: more are no faster on a CPU
_ELSEWHERE = 2**14


def by_length(net: nn.Module, inputs: Any) -> list[tuple[Tensor, Any]]:
    """The rows of each chunk and its inputs; none where one chunk does, or where padding may change what it gives."""
    mask = _mask(net, inputs)
    if mask is None:
        return []
    ends = (mask.cpu() != 0).long() * torch.arange(1, mask.shape[1] + 1)
    lengths, order = ends.amax(dim=1).clamp(min=1).sort(descending=True, stable=True)
    budget = _BUDGET.get(mask.device.type, _ELSEWHERE)
    if int(lengths[-1]) == mask.shape[1] or mask.numel() <= budget:  # nothing to trim, or nothing to gain
        return []
    chunks, start = [], 0
    while start < len(order):
        width = int(lengths[start])
        rows = order[start : start + max(1, budget // width)]
        chunks.append((rows, _trimmed(take(inputs, rows.tolist()), mask.shape[1], width)))
        start += len(rows)
    return chunks


def _mask(net: nn.Module, inputs: Any) -> Tensor | None:
    """Which tokens are not padding, where the network is told so and was not trained on texts of one length."""
    inside: Any = unwrapped(net)
    tokenizer = getattr(inside, "tokenizer", None) or getattr(inside, "tokenize", None)
    if getattr(tokenizer, "padding", True) == "max_length" or not isinstance(inputs, dict):
        return None
    ids, mask = inputs.get("input_ids"), inputs.get("attention_mask")
    if not isinstance(ids, Tensor) or not isinstance(mask, Tensor) or ids.ndim != 2 or ids.shape != mask.shape:
        return None
    return mask if all(isinstance(value, Tensor) and len(value) == len(mask) for value in inputs.values()) else None


def _trimmed(inputs: Any, full: int, width: int) -> Any:
    """Inputs without the columns that are padding for all of them."""
    for name, value in inputs.items():
        if value.ndim == 2 and value.shape[1] == full:
            inputs[name] = value[:, :width]
    mask = getattr(inputs, "mask", None)
    if isinstance(mask, Tensor) and mask.shape[1] == full:
        inputs.mask = mask[:, :width]
    return inputs
