"""A folder that a hub serves as it is: the page as `index.html`, and a card that says what it is.

The card is a `README.md` whose head is read by Hugging Face Spaces (`sdk: static`) and shown by every forge. Nothing is
uploaded: that is one command of the hub's own tool.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from likewise import __version__
from likewise._base.files import write_whole
from likewise._base.folders import claim
from likewise._base.names import visible
from likewise.matrices.tables import escape_markdown
from likewise.report.page import Contents, contents, render
from likewise.report.runs import Runs, read_runs
from likewise.report.summary import NetworkRow


def hub_page(
    *runs: str | os.PathLike[str] | Runs, out: str | os.PathLike[str], title: str | None = None
) -> tuple[Path, Path]:
    """Write a report as a folder for static hosting.

    Args:
        *runs: What `report` takes.
        out: A new or an empty folder, or one that likewise wrote.
        title: The heading; by default it names or counts the networks.

    Returns:
        The paths of the page and of its card.

    Raises:
        InputError: A path holds no results, or there is nothing to compare.
        StoreError: A file is damaged, or the folder holds files of others.

    Example:
        >>> import tempfile, likewise
        >>> from likewise.report import hub_page
        >>> alike = likewise.SimilarityMatrix(["a", "b", "c"], [[1, 0.9, 0.2], [0.9, 1, 0.3], [0.2, 0.3, 1]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page, card = hub_page(alike.save(f"{folder}/alike"), out=f"{folder}/page")
        ...     text = card.read_text(encoding="utf-8")
        >>> page.name, card.name, "sdk: static" in text
        ('index.html', 'README.md', True)
    """
    given = [run for run in runs if isinstance(run, Runs)]
    results = given[0] if given else read_runs(*(run for run in runs if not isinstance(run, Runs)))
    page, folder = contents(results), Path(out)
    claim(folder)
    files = (folder / "index.html", folder / "README.md")
    write_whole(files[0], render(page, title).encode())
    write_whole(files[1], _card(page, title or page.title, results.commands).encode())
    return files


def _card(page: Contents, title: str, commands: list[str]) -> str:
    """What the page is, in Markdown, with the head that a hub reads."""
    head = [
        "---",
        f"title: {json.dumps(visible(title), ensure_ascii=False)}",
        "sdk: static",
        "app_file: index.html",
        "pinned: false",
        "---",
    ]
    parts = ["\n".join(head), f"# {escape_markdown(title)}"]
    told = [f"- **{question}:** {escape_markdown(one.text)}" for question, one in page.summary.sentences.items()]
    parts += [
        "\n".join(lines)
        for lines in (
            [f"- **Unfinished:** {escape_markdown(text)}" for text in page.summary.missing],
            told,
            _table(page.summary.rows),
            _fenced([visible(line) for command in commands for line in command.splitlines()]),
        )
        if lines
    ]
    parts.append(f"Written by likewise {__version__}. The page, `index.html`, holds everything it shows.")
    return "\n\n".join(parts) + "\n"


def _fenced(lines: list[str]) -> list[str]:
    """Lines as a block of code that none of them ends."""
    if not lines:
        return []
    longest = max(map(len, re.findall("`+", "\n".join(lines))), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, *lines, fence]


def _table(rows: tuple[NetworkRow, ...]) -> list[str]:
    """The networks with their accuracy and the nearest one."""
    if not rows:
        return []
    lines = ["| network | accuracy | nearest |", "| --- | --- | --- |"]
    for row in rows:
        accuracy = f"{100 * row.accuracy:.1f} %" if row.accuracy == row.accuracy else "not known"
        nearest = f"{escape_markdown(row.nearest)} {row.score:.3g}" if row.nearest else "–"
        lines.append(f"| {escape_markdown(row.name)} | {accuracy} | {nearest} |")
    return lines
