"""Short vectors that stand for the rows of a layer: what debiased CKA and relative changes need of them.

Similarity: the U-centred matrix K of inner products of all inputs, whose diagonal is zero, is read by random signs r, s
as rᵀ K s. Over many such pairs the cosine of two networks' numbers estimates debiased CKA, since the expectation of
their product is the inner product of the two matrices. Values: a count sketch, every entry with a random sign added to
a random one of 1,024 bins, whose squared length estimates that of the entries; it is linear, so the sketch of a
difference is the difference of sketches. Signs and bins depend on the probe and the width alone, never on the network.
"""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from torch import Tensor

from likewise._base.arrays import Array

SIGNS, BINS = 8192, 1024  # numbers of a similarity sketch, and of a value sketch
WEIGHT_BINS = 256  # of a tensor of weights
FEWEST = 4  # inputs that debiased CKA needs
_PIECE, _ENTRIES = 1024, 2**20  # signs, and entries, at a time


def _draw(*facts: object) -> torch.Generator:
    """Random numbers that depend on these facts alone."""
    seed = hashlib.blake2b("\0".join(map(str, facts)).encode(), digest_size=7).digest()
    return torch.Generator().manual_seed(int.from_bytes(seed, "big"))


def centred_products(rows: Tensor) -> Tensor:
    """The U-centred matrix of inner products, (n, n), in double precision."""
    n = len(rows)
    rows = rows.double() - rows.double().mean(dim=0)
    products = rows @ rows.T
    products.fill_diagonal_(0)
    sums = products.sum(dim=0) / (n - 2)
    products -= sums[:, None] + sums[None] - sums.sum() / (n - 1)
    return products.fill_diagonal_(0)


def similarity_sketch(rows: Tensor, probe: str, *, signs: int = SIGNS) -> Array:
    """The similarities of all inputs as so many numbers of one byte, on the CPU.

    >>> draw = torch.Generator().manual_seed(0)
    >>> x = torch.randn(100, 20, generator=draw)
    >>> one, turned = (similarity_sketch(rows, "probe") for rows in (x, x.flip(1) * 3 + 1))
    >>> round(similarity(one, turned), 3)
    1.0
    """
    products = centred_products(rows.cpu()).float()
    draw, numbers = _draw("similarity", probe), []
    for start in range(0, signs, _PIECE):
        count = min(_PIECE, signs - start)
        left, right = (2.0 * torch.randint(0, 2, (count, len(rows)), generator=draw) - 1 for _ in range(2))
        numbers.append(((left @ products) * right).sum(dim=1))
    values = torch.cat(numbers)
    peak = float(values.abs().max())
    return (values / (peak or 1.0) * 127).round().to(torch.int8).numpy()


def similarity(one: Array, other: Array) -> float:
    """Debiased CKA by two sketches; NaN where all inputs are the same to one of the networks."""
    x, y = one.astype(np.float64), other.astype(np.float64)
    scale = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / scale if scale else float("nan")


def value_sketch(rows: Tensor, probe: str, *, bins: int = BINS) -> Array:
    """The entries of rows, added up with random signs in bins."""
    entries, width = rows.detach().flatten(), rows.shape[1]
    sketch = np.zeros(bins)
    for piece, start in enumerate(range(0, len(entries), _ENTRIES)):
        some = entries[start : start + _ENTRIES].cpu().double().numpy()
        # a bin and a sign at once
        drawn = torch.randint(0, 2 * bins, (len(some),), generator=_draw("values", probe, width, piece)).numpy()
        sketch += np.bincount(drawn >> 1, some * (1.0 - 2.0 * (drawn & 1)), bins)
    return sketch.astype(np.float32)


def length(sketch: Array) -> float:
    """About the square root of the sum of squares of the entries behind a value sketch."""
    return float(np.linalg.norm(sketch.astype(np.float64)))


def relative_change(one: Array, other: Array, norm: float) -> float:
    """About |X - Y| / |X|, `norm` being |X| itself."""
    if np.array_equal(one, other):
        return 0.0
    return length(one.astype(np.float64) - other.astype(np.float64)) / norm if norm else float("inf")
