"""Names as they are shown: those of networks without what does not tell them apart, and no sign that hides or acts.

Names come from files of others. A terminal obeys control characters in them, a bidirectional override shows text in
another order, a zero-width space makes two names look the same, and a spreadsheet computes a cell that begins with an
equals sign. `visible` writes out what could not be seen, `csv_text` quotes what would be computed. Names in results
stay as they are.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

# blank though they count as printable: fillers, the empty Braille pattern, variation selectors
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(inf|nan)", re.IGNORECASE)
_LONG = 20  # characters from which on a name is shortened
_NAME = re.compile(r"(\S*/)?(?P<base>\S+?)(?P<options>(,\w+=[^\s,#]*)*)(?P<number>#\d+)?")


def visible(text: str, *, lines: bool = False) -> str:
    """A text in which all that a reader would not see is written out: control signs, overrides, zero widths.

    Args:
        text: A name, or a text with names in it.
        lines: Whether the text is of several lines, whose ends stay; in a name they are written out too.

    Example:
        >>> print(visible("red \x1b[31m, reversed \u202e, split \u200b"))
        red \\x1b[31m, reversed \\u202e, split \\u200b
    """
    if lines:
        return "\n".join(map(visible, text.split("\n")))
    if text.isprintable() and not _BLANK.search(text):
        return text
    signs = (sign if sign.isprintable() and not _BLANK.match(sign) else _written_out(sign) for sign in text)
    return "".join(signs)


def visible_all(content: Any) -> Any:
    """What JSON holds, with every text in it as `visible` shows it: for pages, which hold it to show it."""
    if isinstance(content, str):
        return visible(content)
    if isinstance(content, dict):
        return {visible_all(key): visible_all(value) for key, value in content.items()}
    return [visible_all(entry) for entry in content] if isinstance(content, (list, tuple)) else content


def _written_out(sign: str) -> str:
    return sign.encode("unicode_escape").decode()


def quote_formula(text: str) -> str:
    """A cell that a spreadsheet shows: a quote before what it would compute, and before a quote that could be ours.

    Example:
        >>> quote_formula("=1+1"), quote_formula("'=1+1"), quote_formula("-0.5"), quote_formula("cka")
        ("'=1+1", "''=1+1", '-0.5', 'cka')
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def unquote_formula(text: str) -> str:
    """The cell without the quote that `quote_formula` put before it.

    Example:
        >>> unquote_formula("'=1+1"), unquote_formula("''=1+1"), unquote_formula("'tis")
        ('=1+1', "'=1+1", "'tis")
    """
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def csv_text(frame: pd.DataFrame, **options: Any) -> str:
    """A frame as CSV whose cells a spreadsheet shows and does not compute; options are those of `to_csv`."""
    safe = _mapped(frame, quote_formula)
    if "\r" in (text := str(safe.to_csv(**options))):  # pandas would not quote it, and read it as the end of a line
        text = str(safe.to_csv(**options, quoting=csv.QUOTE_NONNUMERIC))
    return text


def unquoted(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame that was read from what `csv_text` gave, with the names as they were."""
    return _mapped(frame, unquote_formula)


def visible_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame with every text in it as `visible` shows it."""
    return _mapped(frame, visible)


def _mapped(frame: pd.DataFrame, change: Callable[[str], str]) -> pd.DataFrame:
    """A frame with its texts changed: names along both sides, and cells."""

    def of(cell: Any) -> Any:
        return change(cell) if isinstance(cell, str) else cell

    out = frame.rename(index=of, columns=of).rename_axis(
        index=list(map(of, frame.index.names)), columns=list(map(of, frame.columns.names))
    )
    words = [i for i, kind in enumerate(out.dtypes) if kind.kind == "O"]
    for i in words:
        if any(of(cell) is not cell for cell in out.iloc[:, i]):
            out.isetitem(i, list(map(of, out.iloc[:, i])))
    return out


def short_names(names: Sequence[str]) -> list[str]:
    """Names to show: without the folders and options that do not tell them apart, where one of them is long.

    Example:
        >>> short_names(["vit_tiny_patch16_224,pretrained=false", "resnet18,pretrained=false"])
        ['vit_tiny_patch16_224', 'resnet18']
        >>> short_names(["vit_tiny_patch16_224,depth=2,seed=0", "vit_tiny_patch16_224,depth=2,seed=1"])
        ['vit_tiny_patch16_224,seed=0', 'vit_tiny_patch16_224,seed=1']
    """
    names = [visible(name) for name in names]
    if all(len(name) <= _LONG for name in names):
        return list(names)
    words = [any(letter.isspace() for letter in name) for name in names]  # a sentence stays as it is
    matches = [None if several else _NAME.fullmatch(name) for name, several in zip(names, words, strict=True)]
    bases = [m["base"] + (m["number"] or "") if m else name for m, name in zip(matches, names, strict=True)]
    options = [m["options"].split(",")[1:] if m else [] for m in matches]
    short = []
    for base, values in zip(bases, options, strict=True):
        same_base = [set(other) for name, other in zip(bases, options, strict=True) if name == base]
        short.append(",".join([base, *(value for value in values if value not in set.intersection(*same_base))]))
    return short if len(set(short)) == len(set(names)) else list(names)
