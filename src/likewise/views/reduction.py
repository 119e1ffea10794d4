"""From tokens `(n, t, d)` and maps `(n, c, ...)` to rows: by a named choice, never silently."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from likewise.errors import InputError, did_you_mean

Reduction = Literal["mean", "cls", "last", "flatten", "spatial", "pool7", "pool7-spatial"]
BY_POSITION = ("spatial", "pool7-spatial")  # one row per token or position, not per input


def reduced(
    values: Tensor, reduce: str, label: str = "the input", mask: Tensor | None = None, *, maps: bool | None = None
) -> Tensor:
    """Tokens `(n, t, d)` or maps `(n, c, ...)` as a matrix.

    `mean` averages over tokens or positions; `cls` and `last` take the first and the last token;
    `flatten` keeps everything in one long row; `spatial` makes every token or position a row.
    `pool7` averages maps larger than 7 × 7 down to 7 × 7 and flattens them, `pool7-spatial` makes
    those positions rows.

    Args:
        values: What a layer gives: of three axes tokens, of more maps.
        reduce: The reduction.
        label: What messages call the values.
        mask: `(n, t)`, which tokens are real: padding is never averaged, taken or kept as a row.
        maps: Whether values are maps; three axes are then `(n, c, l)`, as a convolution over a series gives them.

    Raises:
        InputError: There is no such reduction, or it does not fit the values.

    Example:
        >>> tokens, maps = torch.zeros(2, 5, 3), torch.zeros(2, 3, 4, 4)
        >>> reduced(tokens, "mean").shape, reduced(maps, "spatial").shape
        (torch.Size([2, 3]), torch.Size([32, 3]))
        >>> reduced(torch.zeros(2, 3, 28, 28), "pool7").shape
        torch.Size([2, 147])
    """
    check_reduction(reduce)
    if values.ndim < 3:
        raise InputError(f"{label} has {values.ndim} axes; only 3 or more can be reduced by {reduce!r}.")
    are_maps = values.ndim > 3 if maps is None else maps
    if reduce.startswith("pool7"):
        return _pooled(values, reduce, label, are_maps)
    if reduce == "flatten":
        if mask is not None and not mask.all():
            raise InputError(
                f"{label} holds padding, which 'flatten' would keep. Choose reduce='mean', 'cls' or 'last'."
            )
        return values.flatten(1)
    return _of_maps(values, reduce, label) if are_maps else _of_tokens(values, reduce, mask)


def check_reduction(reduce: str) -> None:
    """Refuse a reduction that does not exist."""
    if reduce not in get_args(Reduction):
        raise InputError(
            f"no reduction named {reduce!r}.{did_you_mean(reduce, get_args(Reduction))} "
            f"There are {', '.join(get_args(Reduction))}."
        )


def _of_tokens(tokens: Tensor, reduce: str, mask: Tensor | None) -> Tensor:
    if reduce == "spatial":
        return tokens.reshape(-1, tokens.shape[-1]) if mask is None else tokens[mask.bool()]
    if mask is None:
        return tokens.mean(dim=1) if reduce == "mean" else tokens[:, 0 if reduce == "cls" else -1]
    real = mask.to(tokens.dtype)
    if reduce == "mean":
        total = real.sum(dim=1, keepdim=True).clamp(min=1)
        return torch.einsum("ntd,nt->nd", tokens, real) / total
    # argmax finds the first 1, so padding may lie on either side
    first = real.argmax(dim=1)
    final = real.shape[1] - 1 - real.flip(1).argmax(dim=1)
    return tokens[torch.arange(len(tokens), device=tokens.device), first if reduce == "cls" else final]


def _of_maps(maps: Tensor, reduce: str, label: str) -> Tensor:
    if reduce == "mean":
        return maps.flatten(2).mean(dim=2)
    if reduce == "spatial":
        return maps.movedim(1, -1).reshape(-1, maps.shape[1])
    raise InputError(
        f"{label} holds maps, which have no {reduce!r} token. Choose reduce='mean', 'flatten' or 'spatial'."
    )


def _pooled(maps: Tensor, reduce: str, label: str, are_maps: bool) -> Tensor:
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
    return maps.flatten(1) if reduce == "pool7" else _of_maps(maps, "spatial", label)
