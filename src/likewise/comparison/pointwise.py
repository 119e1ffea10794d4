"""Which inputs two networks place alike, and which not: a score per input instead of one for all."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.measures.families.gram import pnka_points
from likewise.measures.pair import pair_of


def pointwise(x: Any, y: Any) -> np.ndarray:
    """PNKA of every input, (n,): the cosine between its rows in the centred Gram matrices of both networks.

    1: it keeps its place among the other inputs; 0: its places are unrelated. The mean is the measure `pnka`.

    >>> import numpy as np, likewise
    >>> x = np.random.default_rng(0).normal(size=(50, 8))
    >>> y = x.copy()
    >>> y[7] *= -1
    >>> int(likewise.pointwise(x, y).argmin())
    7
    """
    return pnka_points(pair_of(x, y)).cpu().numpy()
