"""`likewise benchmark folder`: evaluate measures on your own representations, in a folder with a manifest."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from likewise.cli._print import echo


def folder(
    path: Annotated[Path, Argument(help="Folder with manifest.json and the files it names.")],
    grounding: Annotated[list[str] | None, Option(help="Some groundings only; may be repeated.")] = None,
    measures: Annotated[list[str] | None, Option(help="all, resi, names, or module:function; repeatable.")] = None,
    out: Annotated[Path | None, Option(help="Table of the results, as CSV.")] = None,
) -> None:
    """Evaluate measures on your own representations. Nothing is trained."""
    from likewise._base.files import write_whole
    from likewise._base.names import csv_text
    from likewise.benchmark import from_folder
    from likewise.cli._words import measures_of

    rows = from_folder(path, measures_of(measures, "resi"), groundings=grounding or None)
    if out is not None:
        write_whole(out, csv_text(rows, index=False).encode())
    rows = rows[rows["variant"] == "published"]
    columns = ["grounding", "metric", "ties", "measure", "value", "chance", "p", "coverage"]
    echo(rows[columns].round(3).astype(object).where(rows[columns].notna(), "").to_string(index=False))
