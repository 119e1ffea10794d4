"""What a package shows and when it is imported: `lazy(__name__)` at the end of its `__init__`.

A package names what it gives out as imports and in `__all__`, as every package does. Imports that should wait until a
name is first used stand under `if TYPE_CHECKING:`, where type checkers and editors read them; they are read from there
at run time too, so that there is no second list.
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy(package: str) -> None:
    """Give a package its `__getattr__` and `__dir__`: heavy names on first use, and public names alone listed.

    They are set here rather than assigned in the package, so that type checkers still refuse a name it does not have.
    """
    module = sys.modules[package]

    def get(name: str) -> Any:
        if name not in homes(package):
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=module)
        home = import_module(homes(package)[name])
        value = home if home.__name__ == f"{package}.{name}" else getattr(home, name)
        setattr(module, name, value)
        return value

    vars(module).update(__getattr__=get, __dir__=lambda: sorted(module.__all__))


@cache
def homes(package: str) -> dict[str, str]:
    """The modules that names under `if TYPE_CHECKING:` are imported from; a module's own path for a module."""
    file = Path(str(sys.modules[package].__file__))
    blocks = (node for node in ast.parse(file.read_text("utf-8")).body if isinstance(node, ast.If))
    return {
        alias.name: f"{package}.{alias.name}" if statement.module == package else str(statement.module)
        for block in blocks
        if ast.unparse(block.test) == "TYPE_CHECKING"
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
