"""From tokens `(n, t, d)` and maps `(n, c, h, w)` to rows: always by a named choice, never silently."""

from __future__ import annotations

from typing import Literal, get_args

from torch import Tensor

from likewise.errors import InputError, did_you_mean

Reduction = Literal["mean", "cls", "last", "flatten", "spatial"]


def reduced(values: Tensor, how: str, label: str = "the input") -> Tensor:
    """`(n, t, d)` or `(n, c, h, w)` as a matrix.

    `mean` averages over tokens or positions; `cls` and `last` take the first and the last token;
    `flatten` keeps everything in one long row; `spatial` makes every token or position a row.

    >>> import torch
    >>> reduced(torch.zeros(2, 5, 3), "mean").shape, reduced(torch.zeros(2, 3, 4, 4), "spatial").shape
    (torch.Size([2, 3]), torch.Size([32, 3]))
    """
    if how not in get_args(Reduction):
        raise InputError(
            f"no reduction named {how!r}.{did_you_mean(how, get_args(Reduction))} "
            f"There are {', '.join(get_args(Reduction))}."
        )
    if values.ndim not in (3, 4):
        raise InputError(f"{label} has {values.ndim} axes; only 3 or 4 can be reduced by {how!r}.")
    if how == "flatten":
        return values.flatten(1)
    tokens = values if values.ndim == 3 else values.flatten(2).transpose(1, 2)
    if how == "mean":
        return tokens.mean(dim=1)
    if how == "spatial":
        return tokens.reshape(-1, tokens.shape[-1])
    if values.ndim == 4:
        raise InputError(
            f"{label} holds maps, which have no {how!r} token. "
            "Choose reduce='mean', 'flatten' or 'spatial'."
        )
    return tokens[:, 0 if how == "cls" else -1]
