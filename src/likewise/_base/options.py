"""Options in addresses and commands, `name=value,name=value`: numbers, truth values and words."""

from __future__ import annotations

import ast
import re
from typing import Any

from likewise.errors import InputError

_FRACTION = re.compile(r"(\d+\.?\d*)/(\d*[1-9]\d*)")


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


def parse_options(text: str, label: str) -> dict[str, Any]:
    """The options in a text, fractions as numbers; `label` says in an error what they are options of.

    >>> parse_options("attack=pgd,eps=8/255", "adversarial")
    {'attack': 'pgd', 'eps': 0.03137254901960784}
    """
    found: dict[str, Any] = {}
    for word in text.split(","):
        name, equals, value = (part.strip() for part in word.partition("="))
        if not (name and equals and value):
            raise InputError(f"{label} is {text!r}, in which {word!r} is no option. Write name=value,name=value.")
        if name in found:
            raise InputError(f"{label} is {text!r}, which gives {name} twice. Give it once.")
        fraction = _FRACTION.fullmatch(value)
        found[name] = float(fraction[1]) / float(fraction[2]) if fraction else parse_value(value)
    return found
