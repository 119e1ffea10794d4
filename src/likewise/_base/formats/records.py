"""Records in JSON: a file may hold anything, so what is read has the types that are expected of it, or is refused.

Both functions raise a ValueError that says what is wrong; call them within `reading`, which names the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from likewise.errors import brief

_BRACKETS = 2**22  # lists and mappings in one record: each takes far more memory than its sign
_DEEPEST = 50


def parse(content: str | bytes) -> dict[str, Any]:
    """The mapping that a JSON text holds."""
    try:
        text = content.decode("utf-8") if isinstance(content, bytes) else content
        if text.count("[") + text.count("{") > _BRACKETS:
            raise ValueError("it holds too much")
        record = json.loads(text)
        if "\\u" in text:
            json.dumps(record, ensure_ascii=False).encode()  # half of a letter could not be written again
    except (ValueError, RecursionError) as error:
        raise ValueError("it is no JSON") from error
    if not isinstance(record, dict):
        raise ValueError(f"it holds {brief(record)}")
    if _is_deeper(record, _DEEPEST):
        raise ValueError("it is no JSON")
    return record


def check(record: Mapping[str, Any], kinds: Mapping[str, Any], *, optional: bool = False) -> None:
    """Refuse a record in which something is missing, unless that is `optional`, or of another type.

    >>> check({"names": ["a", "b"], "seed": 3}, {"names": list[str], "seed": int | None})
    >>> check({"names": ["a", 2]}, {"names": list[str]})
    Traceback (most recent call last):
    ValueError: its 'names' is ['a', 2]
    """
    for name, kind in kinds.items():
        if name not in record and not optional:
            raise ValueError(f"it has no {name!r}")
        if name in record and not conforms(record[name], kind):
            raise ValueError(f"its {name!r} is {brief(record[name])}")


def conforms(value: Any, kind: Any) -> bool:
    """Whether a value of JSON has a type, as in `dict[str, list[float]]`; whole numbers are numbers, truth is none."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if origin in (Union, UnionType):
        return any(conforms(value, one) for one in arguments)
    if origin is tuple:  # of so many entries
        fits = isinstance(value, (list, tuple)) and len(value) == len(arguments)
        return fits and all(map(conforms, value, arguments))
    if origin is list:
        return isinstance(value, (list, tuple)) and all(conforms(item, arguments[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(conforms(item, arguments[1]) for item in value.values())
    if kind is float:
        return type(value) is float or (type(value) is int and abs(value) < 2**63)
    if kind is int:
        return type(value) is int and abs(value) < 2**63
    return isinstance(value, NoneType if kind is None else kind)


def _is_deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, (dict, list)):
        return False
    return not levels or any(
        _is_deeper(item, levels - 1) for item in (value.values() if isinstance(value, dict) else value)
    )
