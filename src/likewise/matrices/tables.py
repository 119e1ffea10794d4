"""Tables as text that fit a terminal: long names shortened, then numbered, then columns in blocks.

Only what is shown is shortened. Files and frames keep every name in full.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from likewise._base.names import short_names, visible

if TYPE_CHECKING:
    import pandas as pd

WIDTH = 80
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "→": r"$\rightarrow$",
    "†": r"\dag{}",
    "…": r"\dots{}",
    "∞": r"$\infty$",
    "·": r"$\cdot$",
    "–": "--",
} | {sign: f"\\{sign}" for sign in "&%$#_{}"}


def escape_latex(text: str) -> str:
    """A text that LaTeX shows as it is.

    >>> print(escape_latex("50% of a_b ~ {x}"))
    50\\% of a\\_b \\textasciitilde{} \\{x\\}
    """
    return "".join(_LATEX.get(sign, sign) for sign in visible(text))


def escape_markdown(text: str) -> str:
    """Escape a text for Markdown: no markup, no mention, no link, no end of a cell.

    >>> escape_markdown("a|b *c* <img> @all")
    'a\\\\|b \\\\*c\\\\* &lt;img&gt; &#64;all'
    """
    plain = html.escape(" ".join(visible(text).split()), quote=False)
    return re.sub(r"([\\`*_{}\[\]|~#!])", r"\\\1", plain).replace("://", "&#58;//").replace("@", "&#64;")


def as_latex(frame: pd.DataFrame, caption: Sequence[str]) -> str:
    """A frame of text as a table of LaTeX, names down the side and across; sentences become the caption."""
    head = ["", *map(str, frame.columns)]
    body = [[str(name), *map(str, row)] for name, row in zip(frame.index, frame.to_numpy().tolist(), strict=True)]
    lines = [" & ".join(map(escape_latex, row)) + r" \\" for row in (head, *body)]
    words = escape_latex(" ".join(line if line.endswith(".") else f"{line}." for line in caption))
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            f"\\begin{{tabular}}{{l{'r' * len(frame.columns)}}}",
            r"\toprule",
            lines[0],
            r"\midrule",
            *lines[1:],
            r"\bottomrule",
            r"\end{tabular}",
            f"\\caption{{{words}}}",
            r"\end{table}",
            "",
        ]
    )


def fit_width(frame: pd.DataFrame, width: int = WIDTH, most: int | None = None) -> str:
    """A frame as text no wider than `width`: names of columns become numbers where they take too much room.

    The numbers stand beside the same names down the side, or in lines below; columns that are still too many come in
    blocks. At most `most` rows and columns are shown.
    """
    columns = short_names([str(name) for name in frame.columns])
    rows = short_names([str(name) for name in frame.index])
    plain = _text(frame, rows, columns, most)
    if max(map(len, plain.splitlines()), default=0) <= width:
        return plain
    below: list[str] = []
    cell = max((len(str(value)) for value in frame.to_numpy().ravel()), default=0)
    if max(map(len, columns)) <= max(cell, 10):  # numbers would hardly be shorter
        return _text(frame, rows, columns, most, width)
    numbers = [str(i) for i in range(1, len(columns) + 1)]
    if rows == columns and max(map(len, rows)) <= width // 2:
        long, last = max(map(len, rows)), len(numbers[-1])
        rows = [f"{name:{long}}  {number:>{last}}" for number, name in zip(numbers, rows, strict=True)]
    else:
        below = [f"{number:>{len(numbers[-1])}}  {name}" for number, name in zip(numbers, columns, strict=True)]
        rows = numbers if rows == columns else rows
    return "\n".join([_text(frame, rows, numbers, most, width), *below])


def _text(
    frame: pd.DataFrame, rows: Sequence[str], columns: Sequence[str], most: int | None, width: int | None = None
) -> str:
    import pandas as pd

    sides = pd.Index(rows, name=frame.index.name), pd.Index(columns, name=frame.columns.name)
    cells = frame.map(lambda cell: visible(cell) if isinstance(cell, str) else cell)
    named = cells.set_axis(sides[0], axis=0).set_axis(sides[1], axis=1)
    text = named.to_string(max_rows=most, max_cols=most, line_width=width)
    return "\n".join(line.rstrip().removesuffix("\\").rstrip() for line in text.splitlines())


def ends(count: int, most: int) -> list[int | None]:
    """The first and the last of many, None where some are left out."""
    if count <= most:
        return list(range(count))
    return [*range(most // 2), None, *range(count - most // 2, count)]
