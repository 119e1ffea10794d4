"""Tables as text that fit a terminal: long names shortened, then numbered, then columns in blocks.

Only what is shown is shortened. Files and frames keep every name in full.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

WIDTH = 80
_LONG = 20  # signs from which on a name is shortened
_NAME = re.compile(r"(\S*/)?(?P<base>\S+?)(?P<options>(,\w+=[^\s,#]*)*)(?P<number>#\d+)?")


def short_names(names: Sequence[str]) -> list[str]:
    """Names without the folders and options that do not tell them apart, where one of them is long.

    >>> short_names(["vit_tiny_patch16_224,pretrained=false", "resnet18,pretrained=false"])
    ['vit_tiny_patch16_224', 'resnet18']
    >>> short_names(["vit_tiny_patch16_224,depth=2,seed=0", "vit_tiny_patch16_224,depth=2,seed=1"])
    ['vit_tiny_patch16_224,seed=0', 'vit_tiny_patch16_224,seed=1']
    """
    if all(len(name) <= _LONG for name in names):
        return list(names)
    words = [any(letter.isspace() for letter in name) for name in names]  # a sentence stays as it is
    parts = [None if several else _NAME.fullmatch(name) for name, several in zip(names, words, strict=True)]
    bases = [m["base"] + (m["number"] or "") if m else name for m, name in zip(parts, names, strict=True)]
    options = [m["options"].split(",")[1:] if m else [] for m in parts]
    found = []
    for base, own in zip(bases, options, strict=True):
        kin = [set(other) for name, other in zip(bases, options, strict=True) if name == base]
        found.append(",".join([base, *(option for option in own if option not in set.intersection(*kin))]))
    return found if len(set(found)) == len(set(names)) else list(names)


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "→": r"$\rightarrow$",
    "†": r"\dag{}",
    "…": r"\dots{}",
    "∞": r"$\infty$",
    "·": r"$\cdot$",
} | {sign: f"\\{sign}" for sign in "&%$#_{}"}


def escaped_latex(text: str) -> str:
    """A text that LaTeX shows as it is.

    >>> print(escaped_latex("50% of a_b ~ {x}"))
    50\\% of a\\_b \\textasciitilde{} \\{x\\}
    """
    return "".join(_LATEX.get(sign, sign) for sign in text)


def as_latex(frame: pd.DataFrame, caption: Sequence[str]) -> str:
    """A frame of text as a table of LaTeX, names down the side and across; sentences become the caption."""
    head = ["", *map(str, frame.columns)]
    body = [[str(name), *map(str, row)] for name, row in zip(frame.index, frame.to_numpy().tolist(), strict=True)]
    lines = [" & ".join(map(escaped_latex, row)) + r" \\" for row in (head, *body)]
    words = escaped_latex(" ".join(line if line.endswith(".") else f"{line}." for line in caption))
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


def fitted(frame: pd.DataFrame, width: int = WIDTH, most: int | None = None) -> str:
    """A frame as text no wider than `width`: names of columns become numbers where they take too much room.

    The numbers stand beside the same names down the side, or in lines below; columns that are still too many come in
    blocks. `most` rows and columns are shown.
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
    shown = frame.set_axis(sides[0], axis=0).set_axis(sides[1], axis=1)
    text = shown.to_string(max_rows=most, max_cols=most, line_width=width)
    return "\n".join(line.rstrip().removesuffix("\\").rstrip() for line in text.splitlines())
