"""The precision a network runs in, where another than that of its weights is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from likewise.errors import InputError, did_you_mean

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
_HALF = (torch.float16, torch.bfloat16)


def check_dtype(dtype: str) -> None:
    """Refuse a precision that networks are not run in."""
    if dtype not in DTYPES:
        hint = did_you_mean(str(dtype), DTYPES)
        raise InputError(f"no dtype named {dtype!r}.{hint} There are {', '.join(DTYPES)}.")


@contextmanager
def in_precision(net: nn.Module, dtype: str) -> Iterator[None]:
    """The network in this precision meanwhile, whatever that of its weights is.

    float32 raises weights of half precision to it. float16 and bfloat16 are torch's autocast: products run in half
    precision, normalisations and sums in float32, and the weights stay as they are.

    >>> net = nn.Linear(2, 2)
    >>> with in_precision(net, "bfloat16"):
    ...     net(torch.zeros(1, 2)).dtype
    torch.bfloat16
    """
    check_dtype(dtype)
    precision = DTYPES[dtype]
    device = next((value.device.type for value in net.parameters()), "cpu")
    values = [*net.parameters(), *net.buffers()]
    raised = [(value, value.data) for value in values if value.dtype in _HALF and value.dtype != precision]
    try:
        for value, kept in raised:
            value.data = kept.float()
        with torch.autocast(device, dtype=precision if precision in _HALF else None, enabled=precision in _HALF):
            yield
    finally:
        for value, kept in raised:
            value.data = kept
