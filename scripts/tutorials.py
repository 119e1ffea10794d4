"""Run the tutorials, or other pages by name, and put what their code prints and draws beside it.

    python scripts/tutorials.py [NAME ...]

Blocks of one page run in order, in an empty folder, as `tests/contract/test_docs.py` runs them; what a block prints is
written into the block of text behind it, unless that agrees already, dots standing for what differs from run to run.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import sys
import tempfile
import warnings
from doctest import ELLIPSIS, OutputChecker
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent.parent / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n?```text\n(.*?)^```\n)?", re.S | re.M)


def refreshed(page: Path) -> str:
    """The page with what its code prints; its pictures are written beside it."""
    text = page.read_text(encoding="utf-8")
    space: dict[str, Any] = {"__name__": "a page"}

    def again(found: re.Match[str]) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(found[1], page.name, "exec"), space)
        output, code = printed.getvalue(), f"```python\n{found[1]}```\n"
        if found[2] and OutputChecker().check_output(found[2], output, ELLIPSIS):
            return found[0]
        return f"{code}\n```text\n{output}```\n" if output else code

    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(folder)
        try:
            made = BLOCK.sub(again, text)
            for name in re.findall(r"!\[[^]]*\]\(([\w-]+\.png)\)", text):
                if Path(name).is_file():
                    shutil.copy(name, page.parent / name)
        finally:
            os.chdir(before)
    return made


def main() -> None:
    """Refresh the pages that are named, or all tutorials."""
    from likewise._base.optional import prepare_torchvision

    prepare_torchvision()
    for page in sorted(DOCS.rglob("*.md")):
        if page.stem in sys.argv[1:] or (not sys.argv[1:] and page.parent.name == "tutorials"):
            page.write_text(refreshed(page), encoding="utf-8")


if __name__ == "__main__":
    main()
