"""`likewise demo`: ten small networks, compared by every view, and a report of what was found."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from likewise.cli._options import engine_options
from likewise.cli._print import echo


@engine_options
def demo(
    folder: Annotated[Path, Argument(help="A new or an empty folder; rerun with it to resume.")] = Path("demo"),
    device: Annotated[str | None, Option(help="Such as cuda:0; else networks are trained on the CPU.")] = None,
    **where: Any,
) -> None:
    """Train ten small networks on digits, and write a report of them."""
    from likewise.report import demo as run

    page = run(folder, say=lambda line: echo(line, err=True), device=device, **where)
    echo("\nWhat was found:")
    for question, finding in page.summary.sentences.items():
        echo(f"  {question}: {finding.text}")
    echo(f"\n{folder / 'report.html'}")
