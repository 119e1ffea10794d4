"""Tables of a study as a page: each part is kept when it is made, and the page is made of all parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from likewise._base.files import write_whole

if TYPE_CHECKING:
    import pandas as pd

    from likewise.analysis.matrix_agreement import Agreement


class Page:
    """A page of numbered parts; one that is made again replaces the one before."""

    def __init__(self, path: Path, kept: Path, title: str) -> None:
        self.path, self.kept, self.title = path, kept, title

    def put(self, key: str, text: str) -> None:
        """Keep one part, and write the page."""
        parts = self.parts() | {key: text}
        self.kept.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self.kept, json.dumps(parts, indent=1).encode())
        body = "\n\n".join(parts[name].strip() for name in sorted(parts))
        write_whole(self.path, f"# {self.title}\n\n{body}\n".encode())

    def parts(self) -> dict[str, str]:
        """What was made so far."""
        parts: dict[str, str] = json.loads(self.kept.read_text()) if self.kept.is_file() else {}
        return parts


def markdown(table: pd.DataFrame, digits: int = 2) -> str:
    """A table as Markdown, numbers rounded."""
    rows = [[_shown(value, digits) for value in row] for row in table.itertuples(index=False)]
    lines = [list(table.columns), ["---"] * len(table.columns), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def correlation(agreement: Agreement, sign: int = 1) -> str:
    """A correlation with its interval; `sign` -1 turns it round."""
    low, high = sorted((sign * agreement.low, sign * agreement.high))
    return f"{sign * agreement.correlation:.2f} [{low:.2f}, {high:.2f}]"


def _shown(value: object, digits: int) -> str:
    if isinstance(value, float):
        return "–" if value != value else f"{value:.{digits}f}"
    return str(value)
