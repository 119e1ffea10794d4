"""From an address to data: `cifar10:test[:1000]`, `imagefolder:PATH:train`, `cora`.

An address is `name[:PATH][:split][[slice]]`. A dataset is a function of the split and the path,
named by the decorator `dataset`; where files are looked for is said in `likewise.data.locations`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise._base.files import is_folder
from likewise._base.registry import Registry, module_of
from likewise.data.dataset import Data, Domain
from likewise.errors import InputError, did_you_mean

Loader = Callable[..., Data]
_ADDRESS = re.compile(r"(?P<name>[^:\[\]]+)(:(?P<rest>.*?))?(\[(?P<slice>[^\[\]]*)\])?$")


@dataclass(frozen=True)
class Source:
    """One dataset: how it is loaded, its splits (the first is meant where none is named)."""

    name: str
    domain: Domain
    load: Loader
    splits: tuple[str, ...]
    summary: str
    needs_path: bool = False


SOURCES: Registry[Source] = Registry(
    "data",
    group="likewise.data",
    modules=tuple(f"likewise.data.{file}" for file in ("folders", "graph_sources", "imagenet", "small_images", "text")),
)


def dataset(
    name: str, *, domain: Domain, splits: tuple[str, ...], needs_path: bool = False
) -> Callable[[Loader], Loader]:
    """Name a loader `f(split, root, **options) -> Data`; its first line is its summary."""

    def register(load: Loader) -> Loader:
        summary = (load.__doc__ or "").strip().split("\n")[0]
        SOURCES.add(name, Source(name, domain, load, splits, summary, needs_path), module=module_of(load))
        return load

    return register


@dataclass(frozen=True)
class Address:
    """The parts of a data address."""

    source: Source
    path: str | None
    split: str | None
    part: slice | None


def parse(address: str) -> Address:
    """Take an address apart, or say what is wrong with it.

    >>> found = parse("cifar10:test[:1000]")
    >>> found.source.name, found.split, found.part
    ('cifar10', 'test', slice(None, 1000, None))
    """
    match = _ADDRESS.fullmatch(address)
    if match is None:
        raise InputError(
            f"{address!r} is not a data address. Write name, name:split, name:PATH or "
            "name:split[start:stop], as in 'cifar10:test[:1000]'."
        )
    source = SOURCES.get(match["name"])
    rest, part = match["rest"], match["slice"]
    whole = address.partition(":")[2]
    if part is not None and source.needs_path and is_folder(Path(whole).expanduser()):
        rest, part = whole, None  # a folder may be called 'photos [2024]'
    path, split = _path_and_split(rest, source, address)
    if source.needs_path and path is None:
        raise InputError(f"{address!r} names no folder. Write {source.name}:PATH, where PATH holds the images.")
    return Address(source, path, split, _slice(part, address))


def load(address: str, *, split: str | None = None, **options: Any) -> Data:
    """The data an address names.

    `split` is used where the address names none. Options go to the dataset, as `size` to folders.

    >>> load("digits:test[:100]")
    Data('digits:test[:100]', n=100, classes=10)
    """
    found = parse(address)
    source = found.source
    if split is not None and split not in source.splits:
        raise _no_split(source, split, address)
    chosen = found.split or split or source.splits[0]
    try:
        data = source.load(chosen, found.path, **options)
    except TypeError as error:
        unknown = re.search(r"unexpected keyword argument '(\w+)'", str(error))
        if unknown is None or unknown[1] not in options:
            raise
        raise InputError(f"{source.name} has no option {unknown[1]!r}. Leave it out.") from error
    return data if found.part is None else data[found.part]


def held_out(address: str) -> str | None:
    """The address of the split to validate on, where this one names no split of its own.

    >>> held_out("digits"), held_out("digits:train[:100]")
    ('digits:test', None)
    """
    found = parse(address)
    splits = [name for name in ("val", "dev", "test") if name in found.source.splits]
    if found.split or found.part or not splits or "train" not in found.source.splits:
        return None
    return f"{address}:{splits[0]}"


def _path_and_split(rest: str | None, source: Source, address: str) -> tuple[str | None, str | None]:
    if not rest:
        return None, None
    head, _, last = rest.rpartition(":")
    if last in source.splits:
        return head or None, last
    looks_like_path = source.needs_path or any(mark in rest for mark in "/\\.~")
    if looks_like_path:
        return rest, None
    raise _no_split(source, last, address)


def _no_split(source: Source, split: str, address: str) -> InputError:
    return InputError(
        f"{source.name} has no split {split!r}, asked for by {address!r}."
        f"{did_you_mean(split, source.splits)} It has {', '.join(source.splits)}."
    )


def _slice(text: str | None, address: str) -> slice | None:
    if text is None:
        return None
    parts = text.split(":")
    if not 2 <= len(parts) <= 3 or not all(re.fullmatch(r"-?\d*", part) for part in parts):
        raise InputError(f"[{text}] of {address!r} is not a slice. Write [start:stop] or [start:stop:step].")
    return slice(*(int(part) if part else None for part in parts))
