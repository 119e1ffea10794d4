"""From an address to data: `cifar10:test[:1000]`, `imagefolder:PATH:train`, `cora`.

An address is `name[:PATH][:split][[slice]]`. A data source is a function of the split and the path, named
by the decorator `data_source`; where files are looked for is in `likewise.data.locations`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise._base.files import is_folder
from likewise._base.registry import Registry, module_of
from likewise.data.inputs import Data, Domain
from likewise.errors import InputError, did_you_mean

Loader = Callable[..., Data]
_ADDRESS = re.compile(r"(?P<name>[^:\[\]]+)(:(?P<rest>.*?))?(\[(?P<slice>[^\[\]]*)\])?$")


@dataclass(frozen=True)
class DataSource:
    """One named dataset: how it is loaded, and its splits (the first is the default)."""

    name: str
    domain: Domain
    load: Loader
    splits: tuple[str, ...]
    summary: str
    needs_path: bool = False


DATASETS: Registry[DataSource] = Registry("data", group="likewise.data", modules=("likewise.data.sources.*",))


def data_source(
    *, name: str, domain: Domain, splits: tuple[str, ...], needs_path: bool = False
) -> Callable[[Loader], Loader]:
    """Declare a loader `f(split, root, **options) -> Data`; the first line of its docstring is the summary."""

    def declare(load: Loader) -> Loader:
        summary = (load.__doc__ or "").strip().split("\n")[0]
        source = DataSource(name, domain, load, splits, summary, needs_path)
        DATASETS.add(name, source, module=module_of(load))
        return load

    return declare


@dataclass(frozen=True)
class DataAddress:
    """The parts of a data address."""

    source: DataSource
    path: str | None
    split: str | None
    part: slice | None


def parse(address: str) -> DataAddress:
    """Take an address apart, or say what is wrong with it.

    >>> parts = parse("cifar10:test[:1000]")
    >>> parts.source.name, parts.split, parts.part
    ('cifar10', 'test', slice(None, 1000, None))
    """
    match = _ADDRESS.fullmatch(address)
    if match is None:
        raise InputError(
            f"{address!r} is not a data address. Write name, name:split, name:PATH or "
            "name:split[start:stop], as in 'cifar10:test[:1000]'."
        )
    source = DATASETS.get(match["name"])
    rest, part = match["rest"], match["slice"]
    whole = address.partition(":")[2]
    if part is not None and source.needs_path and is_folder(Path(whole).expanduser()):
        rest, part = whole, None  # a folder may be called 'photos [2024]'
    path, split = _path_and_split(rest, source, address)
    if source.needs_path and path is None:
        raise InputError(f"{address!r} names no folder. Write {source.name}:PATH, where PATH holds the images.")
    return DataAddress(source, path, split, _slice(part, address))


def dataset(address: str, *, split: str | None = None, **options: Any) -> Data:
    """The data an address names, `name[:PATH][:split][[slice]]`.

    `split` is used where the address names none. Options go to the data source, as `size` to folders.

    >>> dataset("digits:test[:100]")
    Data('digits:test[:100]', n=100, classes=10)
    """
    parts = parse(address)
    source = parts.source
    if split is not None and split not in source.splits:
        raise _no_split(source, split, address)
    try:
        data = source.load(parts.split or split or source.splits[0], parts.path, **options)
    except TypeError as error:
        unknown = re.search(r"unexpected keyword argument '(\w+)'", str(error))
        if unknown is None or unknown[1] not in options:
            raise
        raise InputError(f"{source.name} has no option {unknown[1]!r}. Leave it out.") from error
    return data if parts.part is None else data[parts.part]


def held_out(address: str) -> str | None:
    """The address of the split to validate on, where this one names no split of its own.

    >>> held_out("digits"), held_out("digits:train[:100]")
    ('digits:test', None)
    """
    parts = parse(address)
    splits = [name for name in ("val", "dev", "test") if name in parts.source.splits]
    if parts.split or parts.part or not splits or "train" not in parts.source.splits:
        return None
    return f"{address}:{splits[0]}"


def _path_and_split(rest: str | None, source: DataSource, address: str) -> tuple[str | None, str | None]:
    if not rest:
        return None, None
    head, _, last = rest.rpartition(":")
    if last in source.splits:
        return head or None, last
    looks_like_path = source.needs_path or any(mark in rest for mark in "/\\.~")
    if looks_like_path:
        return rest, None
    raise _no_split(source, last, address)


def _no_split(source: DataSource, split: str, address: str) -> InputError:
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
