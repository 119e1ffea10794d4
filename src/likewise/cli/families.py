"""`likewise families`: which networks belong together, by any matrix of similarities."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Any, cast

from typer import Argument, Option

from likewise._base.names import visible
from likewise.cli._options import seed_option
from likewise.cli._print import echo, refuse_unused


def families(
    matrix: Annotated[Path, Argument(help="A saved matrix, the folder of a run, or a square CSV.")],
    k: Annotated[int | None, Option("--k", help="How many; by default one, or what separates best.", min=1)] = None,
    method: Annotated[str, Option(help="average linkage, or spectral: the paper's, for many networks.")] = "average",
    components: Annotated[Path | None, Option(help="CSV of components, one row per network: adds keywords.")] = None,
    distance: Annotated[bool, Option("--distance", help="A larger number in a CSV is less alike.")] = False,
    plot: Annotated[Path | None, Option(help="Picture of the matrix sorted by family, and of a map.")] = None,
    seed: Annotated[int, seed_option("Draws the null, what is left out, and the map.")] = 0,
    as_json: Annotated[bool, Option("--json", help="For programs.")] = False,
) -> None:
    """Find families of alike networks in a matrix. Names the components they share."""
    from likewise._base.files import picture_path
    from likewise.analysis import clusters, keywords, plot_families, read_matrix, read_table
    from likewise.analysis.files import CSV

    if matrix.suffix.lower() not in CSV:
        refuse_unused({"--distance": distance}, "on a saved matrix, which knows what a larger number means")
    similarities = read_matrix(matrix, larger_is="less alike" if distance else "more alike")
    table = None if components is None else read_table(components)
    grouped = clusters(similarities, "auto" if k is None else k, method=cast("Any", method), seed=seed)
    words = None if table is None else keywords(grouped, table)
    if plot is not None:
        plot_families(grouped, plot, seed=seed)
    rows: list[dict[str, Any]] = []
    for label, group in enumerate(grouped.groups()):
        row = {"family": label, "title": grouped.title(label), "members": group, **grouped.spread(label)}
        rows.append(row if words is None else row | {"keywords": words[label]})
    about: dict[str, Any] = {"measure": similarities.measure, "larger_is": similarities.larger_is}
    about |= {"networks": len(similarities), "k": grouped.k}
    sure = {name: getattr(grouped, name) for name in ("p", "stability", "input_stability")}
    about |= {name: None if share != share else share for name, share in sure.items()}
    if as_json:
        echo(json.dumps({**about, "families": rows}))
        return
    echo(textwrap.fill(visible(grouped.verdict), get_terminal_size().columns))
    for row in rows:
        _print(row)
    if plot is not None:
        echo(f"\nwritten to {picture_path(plot)}")


def _print(row: dict[str, Any]) -> None:
    scores = {"within": row["within"], "to others": row["to_others"]}
    words = [f"{len(row['members'])} network{'s' * (len(row['members']) > 1)}"]
    words += [f"{score:.3g} {name}" for name, score in scores.items() if score is not None]
    echo(f"\n{row['title']}: {', '.join(words)}")
    lines = [", ".join(row["members"]), *(["keywords: " + ", ".join(row["keywords"])] if "keywords" in row else [])]
    for line in map(visible, lines):
        echo(textwrap.indent(textwrap.fill(line, get_terminal_size().columns - 2, break_on_hyphens=False), "  "))
