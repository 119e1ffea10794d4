"""`likewise families`: which networks belong together, by any matrix of similarities."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Any

from typer import Argument, Option, echo


def families(
    matrix: Annotated[Path, Argument(help="A saved matrix, the folder of a run, or a square CSV.")],
    k: Annotated[int | None, Option("--k", help="How many families; by default what separates best.")] = None,
    components: Annotated[Path | None, Option(help="CSV of components, one row per network: adds keywords.")] = None,
    distance: Annotated[bool, Option("--distance", help="A larger number in a CSV is less alike.")] = False,
    plot: Annotated[Path | None, Option(help="Picture of the matrix sorted by family, and of a map.")] = None,
    seed: Annotated[int, Option(help="Draws the starts of k-means and of the map.")] = 0,
    as_json: Annotated[bool, Option("--json", help="For programs.")] = False,
) -> None:
    """Find families of alike networks in a matrix. Names the components they share."""
    from likewise.analysis import clusters, keywords, plot_families, read_matrix, read_table

    similarities = read_matrix(matrix, larger_is="less alike" if distance else "more alike")
    table = None if components is None else read_table(components)
    grouped = clusters(similarities, "auto" if k is None else k, seed=seed)
    words = None if table is None else keywords(grouped, table)
    if plot is not None:
        plot_families(grouped, plot, seed=seed)
    rows: list[dict[str, Any]] = []
    for label, group in enumerate(grouped.groups()):
        row = {"family": label, "members": group, **grouped.spread(label)}
        rows.append(row if words is None else row | {"keywords": words[label]})
    about: dict[str, Any] = {"measure": similarities.measure, "larger_is": similarities.larger_is}
    about |= {"networks": len(similarities), "k": grouped.k}
    if as_json:
        echo(json.dumps({**about, "stability": grouped.stability, "families": rows}))
        return
    echo(
        f"{grouped.k} families of {len(similarities)} networks by {similarities.measure} (larger is "
        f"{similarities.larger_is}); other starts agree to {grouped.stability:.2f} (1: always the same families)"
    )
    for row in rows:
        _print(row)
    if plot is not None:
        echo(f"\nwritten to {plot}")


def _print(row: dict[str, Any]) -> None:
    within = "" if row["within"] is None else f" {row['within']:.3g} within,"
    count = f"{len(row['members'])} network{'s' * (len(row['members']) > 1)}"
    echo(f"\nfamily {row['family']}: {count},{within} {row['to_others']:.3g} to others")
    lines = [", ".join(row["members"]), *(["keywords: " + ", ".join(row["keywords"])] if "keywords" in row else [])]
    for line in lines:
        echo(textwrap.indent(textwrap.fill(line, get_terminal_size().columns - 2, break_on_hyphens=False), "  "))
