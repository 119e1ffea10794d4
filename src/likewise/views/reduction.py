"""From tokens `(n, t, d)` and maps `(n, c, ...)` to rows: by a named choice, never silently."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from likewise.errors import InputError, did_you_mean

Reduction = Literal["mean", "cls", "last", "flatten", "spatial", "pool7", "pool7-spatial"]


def reduced(
    values: Tensor,
    how: str,
    label: str = "the input",
    mask: Tensor | None = None,
    *,
    maps: bool | None = None,
) -> Tensor:
    """`(n, t, d)` or `(n, c, h, w)` as a matrix.

    `mean` averages over tokens or positions; `cls` and `last` take the first and the last token;
    `flatten` keeps everything in one long row; `spatial` makes every token or position a row.
    `pool7` averages maps larger than 7 × 7 down to 7 × 7 and flattens them, `pool7-spatial` makes
    those positions rows. A `mask` `(n, t)` says which tokens are real: padding is never averaged,
    taken or kept as a row. Values of three axes are tokens, those of more are maps; `maps` says
    that three axes are `(n, c, l)`, as a convolution over a series gives them.

    >>> tokens, maps = torch.zeros(2, 5, 3), torch.zeros(2, 3, 4, 4)
    >>> reduced(tokens, "mean").shape, reduced(maps, "spatial").shape
    (torch.Size([2, 3]), torch.Size([32, 3]))
    >>> reduced(torch.zeros(2, 3, 28, 28), "pool7").shape
    torch.Size([2, 147])
    """
    check_reduction(how)
    if values.ndim < 3:
        raise InputError(f"{label} has {values.ndim} axes; only 3 or more can be reduced by {how!r}.")
    are_maps = values.ndim > 3 if maps is None else maps
    if how.startswith("pool7"):
        return _pooled(values, how, label, are_maps)
    if how == "flatten":
        if mask is not None and not mask.all():
            raise InputError(
                f"{label} holds padding, which 'flatten' would keep. Choose reduce='mean', 'cls' or 'last'."
            )
        return values.flatten(1)
    return _of_maps(values, how, label) if are_maps else _of_tokens(values, how, mask)


def check_reduction(how: str) -> None:
    """Refuse a reduction that does not exist."""
    if how not in get_args(Reduction):
        raise InputError(
            f"no reduction named {how!r}.{did_you_mean(how, get_args(Reduction))} "
            f"There are {', '.join(get_args(Reduction))}."
        )


def _of_tokens(tokens: Tensor, how: str, mask: Tensor | None) -> Tensor:
    if how == "spatial":
        return tokens.reshape(-1, tokens.shape[-1]) if mask is None else tokens[mask.bool()]
    if mask is None:
        return tokens.mean(dim=1) if how == "mean" else tokens[:, 0 if how == "cls" else -1]
    real = mask.to(tokens.dtype)
    if how == "mean":
        total = real.sum(dim=1, keepdim=True).clamp(min=1)
        return torch.einsum("ntd,nt->nd", tokens, real) / total
    # argmax finds the first 1, so padding may lie on either side
    first = real.argmax(dim=1)
    final = real.shape[1] - 1 - real.flip(1).argmax(dim=1)
    return tokens[torch.arange(len(tokens), device=tokens.device), first if how == "cls" else final]


def _of_maps(maps: Tensor, how: str, label: str) -> Tensor:
    if how == "mean":
        return maps.flatten(2).mean(dim=2)
    if how == "spatial":
        return maps.movedim(1, -1).reshape(-1, maps.shape[1])
    raise InputError(f"{label} holds maps, which have no {how!r} token. Choose reduce='mean', 'flatten' or 'spatial'.")


def _pooled(maps: Tensor, how: str, label: str, are_maps: bool) -> Tensor:
    if not are_maps:
        raise InputError(
            f"{label} holds tokens, which have no 7 × 7 positions. Choose reduce='mean', 'cls', 'last' or 'flatten'."
        )
    if maps.ndim != 4:
        raise InputError(
            f"{label} has shape {tuple(maps.shape)}, which has no 7 × 7 positions. "
            "Choose reduce='mean', 'flatten' or 'spatial'."
        )
    if max(maps.shape[2:]) > 7:
        maps = adaptive_avg_pool2d(maps, 7)
    return maps.flatten(1) if how == "pool7" else _of_maps(maps, "spatial", label)
