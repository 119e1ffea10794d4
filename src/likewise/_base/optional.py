"""Optional dependencies: asked for where they are used, with the remedy where they are missing."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from likewise.errors import MissingDependencyError


@dataclass(frozen=True)
class Library:
    """A library that something needs, and the extra that brings it: declared as a fact, loaded where it is used."""

    module: str
    extra: str
    to: str

    @property
    def installed(self) -> bool:
        """Whether it could be imported, without importing it."""
        return find_spec(self.module) is not None

    @property
    def remedy(self) -> str:
        """What it is needed for and how to install it, as a sentence."""
        return f"to {self.to}, {self.module} is needed: pip install 'likewise[{self.extra}]'."

    def load(self) -> ModuleType:
        """Import it, or say which extra brings it and what it was needed for."""
        try:
            return import_module(self.module)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.split(".")[0] != self.module.split(".")[0]:
                raise
            raise MissingDependencyError(self.remedy) from error


def require(module: str, *, extra: str, to: str) -> ModuleType:
    """Import `module`, or say which extra brings it and what it was needed for."""
    return Library(module, extra, to).load()
