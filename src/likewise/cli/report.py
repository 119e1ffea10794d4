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
    push: Annotated[Path | None, Option(help="Folder for the page and a card, ready for a hub to serve.")] = None,
    figures: Annotated[Path | None, Option(help="Folder for every picture as PDF and SVG.")] = None,
) -> None:
    """Write a report of any results, as one HTML file."""
    from likewise.report import figures as draw
    from likewise.report import hub_page, read_runs
    from likewise.report import report as write

    results = read_runs(*runs)
    echo(str(write(results, out=out, title=title)))
    if push is not None:
        hub_page(results, out=push, title=title)
        echo(
            f"{push} holds a static page and its card. Nothing was uploaded: push that folder with your hub's own tool."
        )
    if figures is not None:
        echo(f"{len(draw(results, out=figures))} files in {figures}")
