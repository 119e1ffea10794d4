"""From an address or an object to data: `cifar10:test[:1000]`, `imagefolder:PATH:train,size=64`, `cora`, `reviews.csv`.

An address is `name[:PATH][:split][[slice]][,option=value…]`. All images take `size`, `crop` and `interpolation`; the
other options are those of the data source. A data source is a function of the split and the path, named
by the decorator `data_source`; where files are looked for is in `likewise.data.sources.locations`. A path alone is
understood by what it is: sources declare the endings of their files and what marks their folders.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from likewise._base.arrays import as_tensor
from likewise._base.files import is_file, is_folder
from likewise._base.registry import Registry, module_of, parse_value
from likewise.data.framing import FRAMING, Framing
from likewise.data.held_out_split import ALL, DIVISION, Division
from likewise.data.inputs import Data, Domain
from likewise.data.objects import from_memory, is_numeric
from likewise.errors import InputError, MissingDataError, UnknownNameError, brief, did_you_mean

Loader = Callable[..., Data]
_OPTIONS = re.compile(r"(?P<head>.*?)(?P<options>(,[A-Za-z_]\w*=[^,:\[\]]*)+)(?P<slice>\[[^\[\]]*\])?")
_ADDRESS = re.compile(r"(?P<name>[^:\[\]]+)(:(?P<rest>.*?))?(\[(?P<slice>[^\[\]]*)\])?$")


@dataclass(frozen=True)
class DataSource:
    """One named dataset: how it is loaded, and its splits.

    A path alone is for the source that declares its ending or, of a folder, a file in it (`marks`); objects of a
    library are for the source that declares it (`libraries`), and are handed to it in place of the path.

    Attributes:
        name: What addresses call it.
        domain: The kind of its inputs.
        load: The function that loads a split, `f(split, root, **options) -> Data`.
        splits: Names of its splits, the default first.
        summary: One sentence for lists.
        needs_path: Whether an address has to name a file or folder.
        libraries: Libraries whose objects it reads.
        endings: Endings of its files.
        marks: Files that mark its folders.
    """

    name: str
    domain: Domain
    load: Loader
    splits: tuple[str, ...]
    summary: str
    needs_path: bool = False
    libraries: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()

    def sort_options(self, options: Mapping[str, Any]) -> tuple[dict[str, Any], Framing | None, Division | None]:
        """Options of the loader, the size that images are asked for at, and how they are divided; no others.

        Args:
            options: Options of an address or a call.
        """
        known = inspect.signature(self.load).parameters
        own = list(known)[2:]  # after the split and the path
        open_ended = any(each.kind is each.VAR_KEYWORD for each in known.values())
        divisible = DIVISION if self.domain == "image" and ALL in self.splits else ()
        size = {name: value for name, value in options.items() if name in FRAMING and name not in own}
        by = {name: value for name, value in options.items() if name in divisible and name not in own}
        rest = {name: value for name, value in options.items() if name not in size and name not in by}
        names = [*(FRAMING if self.domain == "image" else ()), *divisible, *own]
        for name in rest:
            if name not in own and not open_ended:
                takes = f" It takes {', '.join(names)}." if names else " Leave it out."
                raise InputError(f"{self.name} has no option {name!r}.{did_you_mean(name, names)}{takes}")
        return rest, Framing(**size) if size else None, Division(**by) if by else None


DATASETS: Registry[DataSource] = Registry("data", group="likewise.data", modules=("likewise.data.sources.*",))


def data_source(
    *,
    name: str,
    domain: Domain,
    splits: tuple[str, ...],
    needs_path: bool = False,
    aliases: tuple[str, ...] = (),
    libraries: tuple[str, ...] = (),
    endings: tuple[str, ...] = (),
    marks: tuple[str, ...] = (),
) -> Callable[[Loader], Loader]:
    """Declare a loader `f(split, root, **options) -> Data`; the first line of its docstring is the summary.

    Args:
        name: What addresses call it.
        domain: The kind of its inputs.
        splits: Names of its splits, the default first.
        needs_path: Whether an address has to name a file or folder.
        aliases: Other names.
        libraries: Libraries whose objects it reads.
        endings: Endings of its files.
        marks: Files that mark its folders.

    Returns:
        A decorator; the loader stays as it is.
    """

    def declare(load: Loader) -> Loader:
        summary = (load.__doc__ or "").strip().split("\n")[0]
        source = DataSource(name, domain, load, splits, summary, needs_path, libraries, endings, marks)
        DATASETS.add(name, source, aliases, module=module_of(load))
        return load

    return declare


@dataclass(frozen=True)
class DataAddress:
    """The parts of a data address.

    Attributes:
        source: The source that is named.
        path: A file, a folder or an object, None for data that is found by name.
        split: The split, None for the default.
        part: Which inputs of it.
        options: Options of the source and of the size of images.
    """

    source: DataSource
    path: Any
    split: str | None
    part: slice | None
    options: dict[str, Any] = field(default_factory=dict)


def parse(address: str) -> DataAddress:
    """Take an address apart, or say what is wrong with it.

    >>> parts = parse("cifar10:test[:1000],size=224")
    >>> parts.source.name, parts.split, parts.part, parts.options
    ('cifar10', 'test', slice(None, 1000, None), {'size': 224})
    """
    head, options = _split_options(address)
    match = _ADDRESS.fullmatch(head)
    if (match is None or match["name"] not in DATASETS) and (place := _place(head)) is not None:
        return parse(f"{source_of(place).name}:{address}")
    if match is None:
        raise InputError(
            f"{address!r} is not a data address. Write name, name:split, name:PATH or "
            "name:split[start:stop], as in 'cifar10:test[:1000]'."
        )
    if match["name"] not in DATASETS:
        like = did_you_mean(match["name"], DATASETS.names()) or " `likewise data` lists the names."
        raise UnknownNameError(f"no data, file or folder is named {match['name']!r}.{like}")
    source = DATASETS.get(match["name"])
    rest, part = match["rest"], match["slice"]
    whole = head.partition(":")[2]
    whole_path = Path(whole).expanduser()
    if part is not None and source.needs_path and (is_folder(whole_path) or is_file(whole_path)):
        rest, part = whole, None  # a folder may be called 'photos [2024]'
    path, split = _path_and_split(rest, source, address)
    if source.needs_path and path is None:
        what = "folder" if source.domain == "image" else "file"
        holds = "images" if source.domain == "image" else "texts"
        raise InputError(f"{address!r} names no {what}. Write {source.name}:PATH, where PATH holds the {holds}.")
    given = (option.partition("=") for option in options)
    return DataAddress(source, path, split, _slice(part, address), {name: parse_value(v) for name, _, v in given})


def _split_options(address: str) -> tuple[str, list[str]]:
    """An address without its options, and these; a slice may stand before or after them."""
    match = _OPTIONS.fullmatch(address)
    if match is None:
        return address, []
    head, options = match["head"], match["options"].split(",")[1:]
    for count in range(len(options), 0, -1):  # a folder may be called 'photos,year=2024'
        named = ",".join([head, *options[:count]])
        places = [Path(text).expanduser() for text in (named, named.partition(":")[2]) if text]
        if any(is_folder(place) or is_file(place) for place in places):
            return named + (match["slice"] or ""), options[count:]
    return head + (match["slice"] or ""), options


def dataset(address: Any, *, split: str | None = None, **options: Any) -> Data:
    """The data that an address names, or that an object of another library holds.

    An address is `name[:PATH][:split][[slice]][,option=value…]`, a path alone is understood by what it is, and an
    object is a data frame or a column of texts of pandas, or a dataset of Hugging Face. Options may be given here or in
    the address. Images are shown to every network by its own
    transform, and at their own size to one that has none; `size`, `crop` and `interpolation` go before both. With
    `by="images"`, `held_out` images of every class (or a share of them), drawn by `seed`, are the splits `val` and
    `test`, and all others are `train`. Other options go to the data source.

    Args:
        address: An address such as "cifar10:test[:1000]", a path or an object.
        split: The split, where the address names none.
        **options: Options of the data source, and how images are brought to size or divided.

    Returns:
        The data.

    Raises:
        UnknownNameError: There is no data of that name.
        InputError: The address cannot be read, or the data has no such split or option.
        MissingDataError: The files are not there and cannot be fetched.

    Example:
        >>> dataset("digits:test[:100]")
        Data('digits:test[:100]', n=100, classes=10)
        >>> dataset("digits:test[:100]", size=28).inputs.shape
        (100, 1, 28, 28)
    """
    parts = parse(address) if isinstance(address, str) else _of_object(address)
    source = parts.source
    if split is not None and split not in source.splits and len(source.splits) > 1:
        raise _no_split(source, split, str(address))
    wanted = parts.split or (split if split in source.splits or not source.splits else None)
    wanted = wanted or next(iter(source.splits), "")
    own, framing, division = source.sort_options(parts.options | options)
    data = source.load(wanted if division is None else ALL, parts.path, **own)
    data = data if division is None else division.part(data, wanted)
    data = data if parts.part is None else data[parts.part]
    return data.framed(framing) if framing else data


def as_data(given: Any) -> Any:
    """Data for an address, a path and objects of other libraries, numbers as a tensor; anything else as it is.

    Args:
        given: An address, a path, a list of texts or images, an array, data, or an object of another library.

    Returns:
        Data, a tensor, or the object itself.

    Example:
        >>> as_data("digits:test[:100]")
        Data('digits:test[:100]', n=100, classes=10)
        >>> as_data(["a text", "another"])
        Data('texts', n=2)
    """
    if isinstance(given, (Data, Tensor)):
        return given
    if isinstance(given, (str, Path)):
        return dataset(given)
    found = from_memory(given)
    if found is not given or source_of_object(given) is None:
        return found
    return as_tensor(given, "the data") if is_numeric(given) else dataset(given)


def source_of(path: Path) -> DataSource:
    """The source of a file or folder, by its ending or by what is in it."""
    ending = "".join(path.suffixes).lower()
    if is_folder(path):
        marked = (source for source in DATASETS if any((path / mark).is_file() for mark in source.marks))
        return next(marked, None) or DATASETS.get("imagefolder")
    found = next((source for source in DATASETS if ending.endswith(source.endings or ("?",))), None)
    if found is None:
        endings = [ending for source in DATASETS for ending in source.endings]
        raise InputError(f"{path} is no data that is known by its ending. Those are {', '.join(endings)}, and folders.")
    return found


def source_of_object(given: Any) -> DataSource | None:
    """The source that reads objects of this library, None where there is none."""
    libraries = {kind.__module__.partition(".")[0] for kind in type(given).__mro__}
    return next((source for source in DATASETS if libraries.intersection(source.libraries)), None)


def _of_object(given: Any) -> DataAddress:
    if isinstance(given, Path):
        return parse(f"{source_of(given.expanduser()).name}:{given}")
    source = source_of_object(given)
    if source is None:
        raise InputError(
            f"dataset needs an address, a path, a data frame or a dataset of Hugging Face, and was given "
            f"{brief(given)}. Pass it to compare or extract as it is, or make likewise.data.Data of it."
        )
    return DataAddress(source, given, None, None)


def _place(address: str) -> Path | None:
    """The file or folder that an address begins with, where it names one instead of a source."""
    bare = re.sub(r"\[[^\[\]]*\]$", "", address)
    places = (Path(text).expanduser() for text in (address, bare, bare.rpartition(":")[0]) if text)
    found = next((place for place in places if is_folder(place) or is_file(place)), None)
    if found is None and any(mark in bare for mark in "/\\.") and ":" not in bare:
        raise MissingDataError(f"there is no file or folder {bare}. Check the path.")
    return found


def held_out(address: str) -> str | None:
    """The address of the split to validate on, where this one names no split of its own.

    Args:
        address: An address to train on.

    Returns:
        An address, or None where there is nothing held out.

    Example:
        >>> held_out("digits"), held_out("digits:train[:100]")
        ('digits:test', None)
    """
    parts = parse(address)
    splits = [name for name in ("val", "dev", "test") if name in parts.source.splits]
    if isinstance(parts.path, str) and is_folder(parts.path):  # one without parts would be validated on itself
        there = {entry.name.partition(".")[0] for entry in Path(parts.path).iterdir()}
        splits = [name for name in splits if name in there or (name == "val" and there & {"valid", "validation"})]
    if parts.split or parts.part or not splits or "train" not in parts.source.splits:
        return None
    head, options = _split_options(address)
    return ",".join([f"{head}:{splits[0]}", *options])


def _path_and_split(rest: str | None, source: DataSource, address: str) -> tuple[str | None, str | None]:
    if not rest:
        return None, None
    head, _, last = rest.rpartition(":")
    if last in source.splits or (not source.splits and head and re.fullmatch(r"[\w.-]+", last)):
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
