"""Options in addresses, `,name=value`: numbers, truth values and words."""

from __future__ import annotations

import ast
from typing import Any


def parse_value(text: str) -> Any:
    """What a value in an address means; what is no number, truth value or quoted text is a word.

    >>> parse_value("224"), parse_value("0.5"), parse_value("false"), parse_value("bicubic")
    (224, 0.5, False, 'bicubic')
    """
    lowered = {"true": True, "false": False, "none": None}
    if text.lower() in lowered:
        return lowered[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):  # the last: ((((((…
        return text
