"""`likewise report`: results of any runs as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from likewise.cli._print import echo


def report(
    runs: Annotated[list[Path], Argument(help="Folders that commands wrote by --out, or saved matrices.")],
    out: Annotated[Path, Option("--out", "-o", help="The file to write.")] = Path("report.html"),
    title: Annotated[str | None, Option(help="The heading.")] = None,
) -> None:
    """Write a report of any results, as one HTML file."""
    from likewise.report import report as write

    echo(str(write(*runs, out=out, title=title)))
