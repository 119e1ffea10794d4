"""One small registry for measures, attacks, networks and data.

Names are lower-case kebab; look-up forgives case and underscores and knows aliases, so `OrthProc`,
`orth_proc` and `procrustes` may all mean one thing. Third parties add entries through the entry-point
group `likewise.<kind>s`, loaded the first time a name is looked up.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Generic, TypeVar

from likewise.errors import InputError, UnknownNameError, did_you_mean

T = TypeVar("T")


def normal(name: str) -> str:
    """The form names are compared in: `RSMDiff`, `rsmdiff`; `cka_debiased`, `cka-debiased`."""
    return name.lower().replace("_", "-")


class Registry(Generic[T]):
    """Entries of one kind by name and alias."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}
        self._aliases: dict[str, str] = {}
        self._discovered = False

    def add(self, name: str, entry: T, aliases: tuple[str, ...] = ()) -> T:
        for key in {normal(word) for word in (name, *aliases)}:
            if key in self._aliases:
                raise InputError(
                    f"the {self.kind} name {key!r} is taken by {self._aliases[key]!r}. Choose another name."
                )
        self._entries[name] = entry
        self._aliases |= {normal(word): name for word in (name, *aliases)}
        return entry

    def remove(self, name: str) -> None:
        """Forget an entry and its aliases."""
        del self._entries[name]
        self._aliases = {alias: owner for alias, owner in self._aliases.items() if owner != name}

    def get(self, name: str) -> T:
        self._discover()
        found = self._aliases.get(normal(name))
        if found is None:
            raise UnknownNameError(f"no {self.kind} named {name!r}.{did_you_mean(normal(name), self._aliases)}")
        return self._entries[found]

    def names(self, pattern: str = "*") -> list[str]:
        self._discover()
        return [name for name in self._entries if fnmatch.fnmatch(name, pattern)]

    def __contains__(self, name: str) -> bool:
        self._discover()
        return normal(name) in self._aliases

    def __iter__(self) -> Iterator[T]:
        self._discover()
        return iter(self._entries.values())

    def _discover(self) -> None:
        if self._discovered:
            return
        self._discovered = True
        for point in entry_points(group=f"likewise.{self.kind}s"):
            point.load()
