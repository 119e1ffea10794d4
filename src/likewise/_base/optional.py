"""Optional dependencies: asked for where they are used, with the remedy where they are missing."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from likewise.errors import MissingDependencyError


def require(module: str, *, extra: str, to: str) -> ModuleType:
    """Import `module`, or say which extra brings it and what it was needed for."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != module.split(".")[0]:
            raise
        raise MissingDependencyError(f"to {to}, {module} is needed: pip install 'likewise[{extra}]'.") from error
