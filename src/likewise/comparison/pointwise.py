"""Which inputs two networks place alike, and which not: a score per input instead of one for all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from likewise.comparison.arguments import Call
from likewise.errors import InputError
from likewise.measures.families.gram import pnka_points
from likewise.measures.pair import Pair
from likewise.measures.representation import Representation
from likewise.measures.workspace import Workspace, parse_memory

MEASURE = "pnka"


def pointwise(
    views: Any,
    other: Any = None,
    measure: Any = None,
    *,
    data: Any = None,
    layers: str | Mapping[str, str] | None = None,
    memory: str | int | None = None,
    **options: Any,
) -> np.ndarray:
    """How alike two networks place each input: the cosine between its rows in their centred Gram matrices (PNKA).

    1: it keeps its place among the other inputs; 0: its places are unrelated. The mean is the measure `pnka`.

    Args:
        views: An array `(n, d)`, a view, a module or an address; or a list or mapping of two.
        other: The second of two.
        measure: "pnka", the one measure that has a score per input. For others see `likewise.influence`.
        data: What networks are shown, such as "cifar10:test[:1000]".
        layers: The layer to look at in each of them; see `Show`.
        memory: The most to hold at a time, such as "4GB".
        **options: How networks are shown (see `Show`).

    Returns:
        One score per input, (n,).

    Raises:
        InputError: There are not two networks, or the measure is another.

    Example:
        >>> import numpy as np, likewise
        >>> x = np.random.default_rng(0).normal(size=(50, 8))
        >>> y = x.copy()
        >>> y[7] *= -1
        >>> int(likewise.pointwise(x, y).argmin())
        7
    """
    call = Call.read(
        pointwise, views, other, MEASURE if measure is None else measure, options, data=data, layers=layers
    )
    bound = call.one_measure(0)
    if bound.name != MEASURE:
        raise InputError(
            f"{bound.key} has no score per input; {MEASURE} has. Use likewise.influence for other measures."
        )
    if len(call.things) != 2:
        raise InputError(f"pointwise compares two networks, and was given {len(call.things)}. Call it once per pair.")
    workspace = Workspace(None if memory is None else parse_memory(memory))
    a, b = (Representation(view, workspace) for view in call.activations([bound]))
    return pnka_points(Pair(a, b)).cpu().numpy()
