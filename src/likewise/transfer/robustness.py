"""How often attacks without gradients fool a network, by norm, threshold and length of the search, as one table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from likewise.errors import InputError, quoted_list
from likewise.transfer.success import Running, success

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
    **running: Unpack[Running],
) -> pd.DataFrame:
    """Black-box attacks of several sizes and lengths on the same images, one row each.

    `fooled` counts images that are misclassified after the attack, as Raw Zero-Shot does: those that were before are
    among them (`wrong_before`). `rate` with its 95 % interval is the share of correctly classified images that the
    attack changes. `store`, `seed`, `device`, `batch_size` and `progress` are those of `success`: with a folder as
    `store` every `batch_size` images, 10 if not said, are kept: rerun with it to resume.
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
    rows = []
    for name in attacks:
        for size in thresholds:
            for count in generations:
                options: dict[str, Any] = {
                    SIZES[name]: size,
                    "generations": count,
                    "search": search,
                    "population": population,
                }
                found = success(network, data, name, pictures=0, **running, **options)
                rows.append(
                    {
                        "attack": name,
                        "threshold": size,
                        "generations": count,
                        "images": len(found.labels),
                        "fooled": int((found.after != found.labels).sum()),
                        "wrong_before": int((found.before != found.labels).sum()),
                        "rate": found.rate,
                        "low": found.low,
                        "high": found.high,
                    }
                )
    return pd.DataFrame(rows)
