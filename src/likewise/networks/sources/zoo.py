"""`zoo:NAME`: the architectures written here."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import ClassVar

from likewise.data import Domain
from likewise.networks.sources.base import Loaded, NetworkInfo, Request, Source, source
from likewise.networks.zoo.registry import ZOO


@source("zoo")
class Zoo(Source):
    """Networks of the zoo, untrained."""

    comes_trained: ClassVar[bool] = False

    def build(self, request: Request) -> Loaded:
        entry = ZOO.get(request.name)
        return Loaded(entry.make(**request.options), renames=entry.renames)

    def accepts(self, name: str) -> Collection[str]:
        return ZOO.get(name).options

    def names(self) -> Iterator[NetworkInfo]:
        return (NetworkInfo(f"zoo:{entry.name}", entry.domain, entry.summary) for entry in ZOO)

    def domain(self, name: str) -> Domain | None:
        return ZOO.get(name).domain

    def header_options(self, name: str) -> Collection[str]:
        entry = ZOO.get(name)
        return set(entry.options) - set(entry.typed_options)
