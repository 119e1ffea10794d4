"""How often attacks without gradients fool a network, by norm, threshold and length of the search, as one table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from likewise._base.arrays import Array
from likewise.data import Data
from likewise.errors import InputError, quoted_list
from likewise.transfer.classifiers import labelled
from likewise.transfer.success_rates import Running, success, wilson

if TYPE_CHECKING:
    import pandas as pd

SIZES = {"pixel": "pixels", "threshold": "threshold"}  # attacks, and the option that says how much they change
BATCH = 10  # images between two moments at which results are kept


def robustness(
    network: Any,
    data: Any,
    *,
    attacks: Sequence[str] = ("pixel", "threshold"),
    thresholds: Sequence[int] = (1, 3, 5, 10),
    generations: Sequence[int] = (1, 100),
    search: str = "cma-es",
    population: int = 400,
    nested: bool = False,
    **running: Unpack[Running],
) -> pd.DataFrame:
    """Black-box attacks of several sizes and lengths on the same images, one row each.

    `fooled` counts images that are misclassified after the attack, as Raw Zero-Shot does: those that were before are
    among them (`wrong_before`). `rate` with its 95 % interval is the share of correctly classified images that the
    attack changes. `store`, `seed`, `device`, `batch_size` and `progress` are those of `success`: with a folder as
    `store` every `batch_size` images, 10 if not said, are kept: rerun with it to resume.

    `nested`: an example also counts for all larger thresholds and longer searches of the same attack, which allow it,
    and its image is not attacked again. That saves time, and counts never fall with the threshold. They may be a
    little larger than without, where every attack stands alone and may miss what a smaller one found.
    """
    import pandas as pd

    odd = [name for name in attacks if name not in SIZES]
    if odd or not attacks:
        given = f"{odd[0]!r} is no attack with thresholds" if odd else "no attack is named"
        raise InputError(f"{given}. Choose {quoted_list(list(SIZES))}.")
    for name, values in (("thresholds", thresholds), ("generations", generations)):
        if not values:
            raise InputError(f"{name} is empty. Give at least one number.")
    running = Running(batch_size=BATCH) | running
    shown = labelled(data, "know what an attack leads away from")
    rows = []
    for name in attacks:
        found: dict[tuple[int, int], Array] = {}
        wrong = np.zeros(len(shown), dtype=bool)
        for size, count in product(sorted(set(thresholds)), sorted(set(generations))):
            done = [fooled for (less, fewer), fooled in found.items() if less <= size and fewer <= count]
            fooled = np.logical_or.reduce(done) if nested and done else np.zeros(len(shown), dtype=bool)
            options = {SIZES[name]: size, "generations": count, "search": search, "population": population}
            before, after = _mistakes(network, shown, np.flatnonzero(~fooled), name, running, options)
            wrong |= before
            found[size, count] = fooled | after
        pairs = product(thresholds, generations)
        rows += [{"attack": name} | _row(*pair, found[pair], wrong) for pair in pairs]
    return pd.DataFrame(rows)


def _mistakes(
    network: Any, data: Data, rows: Array, attack: str, running: Running, options: dict[str, Any]
) -> tuple[Array, Array]:
    """Which inputs are misclassified before and after an attack on some of them; the others count as right."""
    before, after = np.zeros((2, len(data)), dtype=bool)
    if len(rows):
        part = data if len(rows) == len(data) else data[rows.tolist()]
        found = success(network, part, attack, pictures=0, **running, **options)
        before[rows], after[rows] = found.before != found.labels, found.after != found.labels
    return before, after


def _row(size: int, count: int, fooled: Array, wrong: Array) -> dict[str, Any]:
    right = int((~wrong).sum())
    rate = float((fooled & ~wrong).sum() / right)
    low, high = wilson(rate, right)
    counts = {"images": len(wrong), "fooled": int(fooled.sum()), "wrong_before": int(wrong.sum())}
    return {"threshold": size, "generations": count} | counts | {"rate": rate, "low": low, "high": high}
