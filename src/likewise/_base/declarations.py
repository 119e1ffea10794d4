"""Read what is declared in the sources without the libraries that compute.

`likewise measures`, `networks` and `data` print names, facts and summaries that stand beside the code.
Importing torch for a list of names takes seconds, so while they read, torch and scipy are stand-ins: their
names can be imported, subclassed and used as decorators, and nothing of them runs. Afterwards everything that
was imported with a stand-in is forgotten, so that a later import is real. Where torch is loaded anyway, where
plug-ins of others are installed, and where a stand-in does not do, the libraries themselves are imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any, TypeVar

from likewise.errors import LikewiseError

LIBRARIES = ("numpy", "torch", "scipy", "safetensors", "threadpoolctl")
T = TypeVar("T")


def reading(task: Callable[[], T]) -> T:
    """The result of a task that only reads declarations; plain values, nothing that computes."""
    if "torch" in sys.modules or any(group.startswith("likewise.") for group in entry_points().groups):
        return task()
    try:
        with stand_ins():
            return task()
    except LikewiseError:
        raise
    except Exception:  # a declaration that needs the library: if it fails again, it says why
        return task()


class Name(type):
    """Whatever a library calls so: a class to inherit from, a decorator, a constant."""

    def __getattr__(cls, name: str) -> Any:
        return _name(name)

    def __call__(cls, *given: Any, **options: Any) -> Any:
        decorates = len(given) == 1 and not options and callable(given[0])
        return given[0] if decorates else cls

    def __getitem__(cls, key: Any) -> Any:
        return cls

    def __or__(cls, other: Any) -> Any:
        return cls

    __ror__ = __or__


def _name(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return Name(name, (), {})


class _Module(ModuleType):
    def __getattr__(self, name: str) -> Any:
        return _name(name)


class _Finder(MetaPathFinder, Loader):
    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        ours = name.partition(".")[0] in LIBRARIES
        return ModuleSpec(name, self, is_package=True) if ours else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """A stand-in has nothing to run."""


@contextmanager
def stand_ins() -> Iterator[None]:
    """Import stand-ins inside; afterwards forget them and what was imported with them."""
    before, finder = set(sys.modules), _Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in set(sys.modules) - before:
            if name.partition(".")[0] in ("likewise", *LIBRARIES):
                _forget(name)


def _forget(name: str) -> None:
    parent, _, child = name.rpartition(".")
    del sys.modules[name]
    if parent in sys.modules:
        vars(sys.modules[parent]).pop(child, None)
