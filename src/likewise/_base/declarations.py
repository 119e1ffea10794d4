"""Read names, facts and summaries from our modules without importing torch, which takes seconds.

`likewise measures`, `networks` and `data` print what is declared beside the code. While they read, placeholders stand
for the libraries that compute: names can be imported from them, subclassed and used as decorators, and nothing of
them runs. Afterwards every module imported with a placeholder is removed, so that a later import is real. The real
libraries are used where torch is loaded already, where plug-ins are installed, and where a placeholder does not do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from likewise._base.registry import DECLARING
from likewise.errors import LikewiseError

LIBRARIES = ("numpy", "torch", "scipy", "safetensors", "threadpoolctl")
T = TypeVar("T")


def read_declarations(task: Callable[[], T], *, without: tuple[str, ...] = ()) -> T:
    """The result of a task that only reads declarations and gives plain values.

    `without` names rooms of which it reads only modules that declare entries: placeholders stand for all others.
    """
    if "torch" in sys.modules or any(group.startswith("likewise.") for group in entry_points().groups):
        return task()
    try:
        with placeholders(*without):
            return task()
    except LikewiseError:
        raise
    except Exception:  # a declaration that needs the library: if it fails again, it says why
        return task()


class Placeholder(type):
    """Any name of a library: a class to inherit from, a decorator, a constant."""

    def __getattr__(cls, name: str) -> Any:
        return _placeholder(name)

    def __call__(cls, *given: Any, **options: Any) -> Any:
        decorates = len(given) == 1 and not options and callable(given[0])
        return given[0] if decorates else cls

    def __getitem__(cls, key: Any) -> Any:
        return cls

    def __or__(cls, other: Any) -> Any:
        return cls

    __ror__ = __or__


def _placeholder(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return Placeholder(name, (), {})


class _Finder(MetaPathFinder, Loader):
    """Finds an empty module for every library and every module named, with any name in it.

    Modules that a registry names are left to be found as they are, also those below an empty one.
    """

    def __init__(self, modules: tuple[str, ...]) -> None:
        self.prefixes = tuple(f"{name}." for name in (*LIBRARIES, *modules))

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name in DECLARING or not f"{name}.".startswith(self.prefixes):
            return None
        spec = ModuleSpec(name, self, is_package=True)
        spec.submodule_search_locations = [str(Path(folder, name.rpartition(".")[2])) for folder in path or ()]
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = ModuleType(spec.name)
        vars(module)["__getattr__"] = _placeholder
        return module

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to run."""


@contextmanager
def placeholders(*modules: str) -> Iterator[None]:
    """Import placeholders for libraries and modules inside; afterwards remove them and what was imported with them."""
    before, finder = set(sys.modules), _Finder(modules)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in set(sys.modules) - before:
            if name.partition(".")[0] in ("likewise", *LIBRARIES):
                parent, _, child = name.rpartition(".")
                del sys.modules[name]
                if parent in sys.modules:
                    vars(sys.modules[parent]).pop(child, None)
