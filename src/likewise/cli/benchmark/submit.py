"""`likewise benchmark submit`: a measure on cached views, as one row of the board."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from likewise.cli._print import echo


def submit(
    measures: Annotated[list[str], Argument(help="my.py:measure, package.module:measure, a name, or all.")],
    views: Annotated[Path, Option(help="Cached views: likewise benchmark views.")] = Path("views.safetensors"),
    out: Annotated[Path, Option("--out", "-o", help="The row, as JSON.")] = Path("row.json"),
    submitter: Annotated[str, Option(help="Who sends it; the board marks the row.")] = "",
) -> None:
    """Evaluate a measure of your own on cached views. Nothing is trained."""
    import time

    from likewise.benchmark import CachedViews
    from likewise.benchmark import submit as evaluate
    from likewise.benchmark.board.submissions import check_rows, save_rows
    from likewise.cli._words import measures_of

    check_rows(out)
    start = time.perf_counter()
    cached, selected = CachedViews.load(views), measures_of(measures, "all")
    rows = evaluate(selected[0] if len(selected) == 1 else selected, cached, submitter=submitter)
    for row in rows[:1] if len(rows) == 1 else ():
        for cell in row.cells:
            value = "undefined" if cell.value is None else f"{cell.value:.4f}"
            note = "  (groups not valid)" if cell.valid is False else ""
            echo(f"{cell.domain:9} {cell.data} {cell.network}  {cell.grounding} {cell.metric}  {value}{note}")
    several = f"{len(rows)} rows" if len(rows) > 1 else f"the row of {rows[0].measure}"
    echo(f"{save_rows(rows, out)}: {several} on the views {cached.digest}, {time.perf_counter() - start:.0f} s")
