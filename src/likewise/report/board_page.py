"""The board of measures as one HTML file: sorted and filtered in the browser, with no request to anywhere."""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path

from likewise import __version__
from likewise._base.files import write_whole
from likewise._base.folders import check_replaceable, read_at
from likewise._base.names import visible_all
from likewise.benchmark.board.standings import ALL, Board, question_title, to_plain
from likewise.report.page import as_json

_TITLE = b"<title>Board of measures</title>"


def write_board(board: Board, path: str | os.PathLike[str]) -> Path:
    """Write the page of a board.

    Args:
        board: The rows.
        path: The file.

    Returns:
        The path of the file.
    """
    check_page(Path(path))
    write_whole(Path(path), render_board(board).encode())
    return Path(path)


def check_page(path: Path) -> None:
    """Refuse to replace a file that is no page of a board."""
    check_replaceable(path, _TITLE, "page of a board")


def render_board(board: Board) -> str:
    """The page as text."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    script = _read("board.js")
    digest = base64.b64encode(hashlib.sha256(f"\n{script}\n".encode()).digest()).decode()
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    places = {cell.place[:4] for row in board.rows for cell in row.cells}
    shown = {
        "questions": [(name, "all questions" if name == ALL else question_title(name)) for name in board.questions],
        "domains": [(name, "all domains" if name == ALL else name) for name in board.domains],
        "places": sorted({f"{data} with {network}" for _, data, network, _ in places}),
        "views": board.rows[0].views,
    }
    return environment.from_string(_read("board.html")).render(
        **visible_all(shown),
        measures=len(board.rows),
        submitted=sum(bool(row.submitter) for row in board.rows),
        version=__version__,
        hash=Markup(f"'sha256-{digest}'"),
        style=Markup(_read("board.css")),
        script=Markup(script),
        data=Markup(as_json(visible_all(to_plain(board)))),
    )


def _read(name: str) -> str:
    return read_at(Path(__file__).parent / "page_files" / name).decode()
