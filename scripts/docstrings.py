"""How docstrings become pages of the API: examples and tables of arguments are shown as they are written.

An extension of griffe, which mkdocstrings reads docstrings by; mkdocs.yml names this file.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

ALIGNED = re.compile(r"^\w[\w, ]*?\s{2,}\S|^\s{6,}\S")


class Fences(griffe.Extension):
    """Puts fences around doctests and around lines that are aligned by spaces."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Called for every module, class and function."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """A docstring as Markdown.

    >>> print(fenced("What.\\n\\n>>> 1 + 1\\n2"))
    What.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    """
    parts = []
    for part in re.split(r"\n\s*\n", text):
        lines = part.splitlines()
        if part.lstrip().startswith(">>>"):
            parts.append(f"```pycon\n{part}\n```")
        elif sum(bool(ALIGNED.match(line)) for line in lines) > len(lines) / 2:
            parts.append(f"```text\n{part}\n```")
        else:
            parts.append(part)
    return "\n\n".join(parts)
