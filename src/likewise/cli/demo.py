"""`likewise demo`: ten small networks, compared by every view, and a report of what was found."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    folder: Annotated[Path, typer.Argument(help="Where everything is kept; rerun with it to resume.")] = Path("demo"),
) -> None:
    """Train ten small networks on digits, and write a report of them."""
    from likewise.report import demo as run

    page = run(folder, say=lambda line: typer.echo(line, err=True))
    typer.echo("\nWhat was found:")
    for number, finding in enumerate(page.findings[:10], 1):
        typer.echo(f"{number:2}. {finding.text} ({finding.evidence.rstrip('.')})")
    typer.echo(f"\n{folder / 'report.html'}")
