"""What Raw Zero-Shot found of several networks, as text of 80 columns; frames and files hold every column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.matrices.tables import WIDTH, fit_width

if TYPE_CHECKING:
    import pandas as pd

COUNTS = ("L0", "Linf", "attacks", "attacks of", "rate")  # columns of `architectures`, where networks were attacked


def summary(table: pd.DataFrame, orders: pd.DataFrame | None = None, *, width: int = WIDTH) -> str:
    """Metrics with their deviations over classes, accuracies, attacks and rank correlations, one block each.

    Args:
        table: That of `means` or `architectures`.
        orders: That of `rank_correlations`.
        width: The widest line.
    """
    import pandas as pd

    columns: dict[str, list[str]] = {}
    over_seeds: dict[str, list[str]] = {}
    for name in ("DBI", "AM"):
        columns[name] = [f"{mean:.3g} ± {std:.2g}" for mean, std in zip(table[name], table[f"{name} ±"], strict=True)]
        columns[f"{name} in [0, 1]"] = [f"{mean:.3f}" for mean in table[f"{name} normalised"]]
        over_seeds[f"{name} ± over seeds"] = [f"{std:.2g}" for std in table[f"{name} over seeds"]]
    if table["accuracy"].notna().any():
        columns["accuracy"] = [f"{share:.3f}" for share in table["accuracy"]]
    blocks = [
        fit_width(pd.DataFrame(columns, index=table.index), width),
        "± is over classes; in [0, 1]: of soft labels that sum to 1, by the largest value",
    ]
    if table["DBI over seeds"].notna().any():
        blocks.append("\n" + fit_width(pd.DataFrame(over_seeds, index=table.index), width))
    counts = [name for name in COUNTS if name in table]
    if counts:
        blocks.append("\n" + fit_width(table[counts].map("{:.4g}".format), width))
        blocks.append("attacks: images that are wrong afterwards; rate: of those that were right before")
    if orders is not None:
        blocks.append("\n" + fit_width(orders.set_index("of").round(2).astype(str), width))
    return "\n".join(blocks)
