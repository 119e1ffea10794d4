"""Write docs/api.md: every public name of the package and every measure, which mkdocstrings fills in from docstrings.

python scripts/api_page.py
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import likewise
from likewise.attacks import ATTACKS
from likewise.measures.registry import FAMILIES, MEASURES

PAGE = Path(__file__).parent.parent / "docs" / "api.md"


def page() -> str:
    """The whole page: the package, then its rooms, each name where it comes first."""
    rooms = [thing for name in likewise.__all__ if isinstance(thing := getattr(likewise, name), ModuleType)]
    lines = [
        "# API",
        "What `likewise` gives out, written by `scripts/api_page.py`. Everything a command does, one of these calls "
        "does too.",
    ]
    listed: set[str] = set()
    for room in (likewise, *rooms):
        paths = [path for path in paths_of(room) if path not in listed]
        listed.update(paths)
        lines += [f"## {room.__name__}", *map(entry, paths)]
    results = {path_of(kind) for room in (likewise, *rooms) for kind in results_of(room)}
    lines += ["## Results", *map(entry, sorted(results - listed))]
    lines += ["## Attacks", *(entry(path_of(attack.run)) for attack in ATTACKS)]
    for family in FAMILIES:
        measures = [measure for measure in MEASURES if measure.info.family == family]
        lines += [f"## Measures: {family}", *(entry(path_of(measure)) for measure in measures)]
    return "\n\n".join(lines) + "\n"


def paths_of(room: ModuleType) -> Iterable[str]:
    """Functions and classes that a room gives out, by the module they are written in."""
    for name in room.__all__:
        thing = inspect.unwrap(getattr(room, name))
        if inspect.isfunction(thing) or inspect.isclass(thing):
            yield path_of(thing)


def results_of(room: ModuleType) -> Iterable[type]:
    """The classes of ours that functions of a room return."""
    for function in filter(inspect.isfunction, (inspect.unwrap(getattr(room, name)) for name in room.__all__)):
        words = re.findall(r"\w+", str(function.__annotations__.get("return", "")))
        kinds = [function.__globals__.get(word) for word in words]
        yield from (kind for kind in kinds if inspect.isclass(kind) and kind.__module__.startswith("likewise"))


def path_of(thing: Any) -> str:
    """The module and name that a function or class is written under."""
    return f"{thing.__module__}.{thing.__qualname__}"


def entry(path: str) -> str:
    """What mkdocstrings replaces by the docstring."""
    return f"::: {path}"


if __name__ == "__main__":
    PAGE.write_text(page())
