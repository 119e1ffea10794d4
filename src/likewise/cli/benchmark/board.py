"""`likewise benchmark board`: rows of measures as a page that sorts and filters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from likewise.cli._print import echo


def board(
    rows: Annotated[list[Path] | None, Argument(help="Rows: likewise benchmark submit.")] = None,
    out: Annotated[Path, Option("--out", "-o", help="The page to write.")] = Path("board.html"),
    ours: Annotated[bool, Option(help="Show the measures of likewise beside them.")] = True,
) -> None:
    """Write a page that ranks measures. By question and domain, with intervals."""
    from likewise.benchmark import Board
    from likewise.report.board_page import check_page, write_board

    check_page(out)
    made = Board.load(*(rows or []), ours=ours)
    echo(f"{write_board(made, out)}: {len(made.rows)} measures")
    for standing in made.standings()[:5]:
        echo(f"{standing.rank:5.1f} [{standing.low:.1f}, {standing.high:.1f}]  {standing.label}")
