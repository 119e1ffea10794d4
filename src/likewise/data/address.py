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
from likewise.data.held_out_split import ALL, SPLIT_OPTIONS, HeldOutSplit
from likewise.data.inputs import Data, Domain
from likewise.data.objects import from_memory, is_numeric
from likewise.errors import InputError, MissingDataError, UnknownNameError, brief, did_you_mean

Loader = Callable[..., Data]
_OPTIONS = re.compile(r"(?P<head>.*?)(?P<options>(,[A-Za-z_]\w*=[^,:\[\]]*)+)(?P<slice>\[[^\[\]]*\])?")
_ADDRESS = re.compile(r"(?P<name>[^:\[\]]+)(:(?P<rest>.*?))?(\[(?P<slice>[^\[\]]*)\])?$")


@dataclass(frozen=True)
class DataSource:
    """One named dataset.

    Attributes:
        name: What an address starts with.
        domain: What kind of inputs it holds.
        load: Loads it: `f(split, root, **options) -> Data`.
        splits: The names of its splits; the first is the default.
        summary: One line about it.
        needs_path: Whether an address names a file or folder.
        libraries: Whose objects it reads; it receives them in place of the path.
        endings: Those of files that it reads where a path stands alone.
        marks: Files that mark a folder that it reads where a path stands alone.
        built_in: Whether it ships with this package, so that nothing else is read or fetched for it.
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
    built_in: bool = False

    def sort_options(self, options: Mapping[str, Any]) -> tuple[dict[str, Any], Framing | None, HeldOutSplit | None]:
        """Sort options by whom they are for.

        Args:
            options: Values by name.

        Returns:
            Those of the loader, the size that images are asked for at, and the images that are held out.

        Raises:
            InputError: There is no such option.
        """
        parameters = inspect.signature(self.load).parameters
        loader_names = list(parameters)[2:]  # after the split and the path
        open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
        split_names = SPLIT_OPTIONS if self.domain == "image" and ALL in self.splits else ()
        size = {name: value for name, value in options.items() if name in FRAMING and name not in loader_names}
        split = {name: value for name, value in options.items() if name in split_names and name not in loader_names}
        rest = {name: value for name, value in options.items() if name not in size and name not in split}
        names = [*(FRAMING if self.domain == "image" else ()), *split_names, *loader_names]
        for name in rest:
            if name not in loader_names and not open_ended:
                takes = f" It takes {', '.join(names)}." if names else " Leave it out."
                raise InputError(f"{self.name} has no option {name!r}.{did_you_mean(name, names)}{takes}")
        return rest, Framing(**size) if size else None, HeldOutSplit(**split) if split else None


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
    built_in: bool = False,
) -> Callable[[Loader], Loader]:
    """Declare a loader `f(split, root, **options) -> Data`; the first line of its docstring is the summary.

    Args:
        name: What an address starts with.
        domain: What kind of inputs it loads.
        splits: The names of its splits; the first is the default.
        needs_path: Whether an address must name a file or folder.
        aliases: Other names.
        libraries: Whose objects it reads, in place of a path.
        endings: Those of files that it reads where a path stands alone.
        marks: Files that mark a folder that it reads where a path stands alone.
        built_in: Whether it ships with this package.
    """

    def declare(load: Loader) -> Loader:
        summary = (load.__doc__ or "").strip().split("\n")[0]
        source = DataSource(name, domain, load, splits, summary, needs_path, libraries, endings, marks, built_in)
        DATASETS.add(name, source, aliases, module=module_of(load))
        return load

    return declare


@dataclass(frozen=True)
class DataAddress:
    """The parts of a data address.

    Attributes:
        source: The source it names.
        path: The file or folder, or an object in its place.
        split: The split, None where none is named.
        rows: The slice, None where there is none.
        options: Values by name.
    """

    source: DataSource
    path: Any
    split: str | None
    rows: slice | None
    options: dict[str, Any] = field(default_factory=dict)


def parse(address: str) -> DataAddress:
    """Take an address apart, or say what is wrong with it.

    >>> parts = parse("cifar10:test[:1000],size=224")
    >>> parts.source.name, parts.split, parts.rows, parts.options
    ('cifar10', 'test', slice(None, 1000, None), {'size': 224})
    """
    head, options = _split_options(address)
    match = _ADDRESS.fullmatch(head)
    if (match is None or match["name"] not in DATASETS) and (path := _leading_path(head)) is not None:
        return parse(f"{source_of(path).name}:{address}")
    if match is None:
        raise InputError(
            f"{address!r} is not a data address. Write name, name:split, name:PATH or "
            "name:split[start:stop], as in 'cifar10:test[:1000]'."
        )
    if match["name"] not in DATASETS:
        like = did_you_mean(match["name"], DATASETS.names()) or " `likewise data` lists the names."
        raise UnknownNameError(f"no data, file or folder is named {match['name']!r}.{like}")
    source = DATASETS.get(match["name"])
    rest, rows = match["rest"], match["slice"]
    whole = head.partition(":")[2]
    whole_path = Path(whole).expanduser()
    if rows is not None and whole and (is_folder(whole_path) or is_file(whole_path)):
        rest, rows = whole, None  # a folder may be called 'photos [2024]'
    root, split = _path_and_split(rest, source, address)
    if source.needs_path and root is None:
        what = "folder" if source.domain == "image" else "file"
        holds = "images" if source.domain == "image" else "texts"
        raise InputError(f"{address!r} names no {what}. Write {source.name}:PATH, where PATH holds the {holds}.")
    values = {name: parse_value(value) for name, _, value in (option.partition("=") for option in options)}
    return DataAddress(source, root, split, _slice(rows, address), values)


def _split_options(address: str) -> tuple[str, list[str]]:
    """An address without its options, and these; a slice may stand before or after them."""
    match = _OPTIONS.fullmatch(address)
    if match is None:
        return address, []
    head, options = match["head"], match["options"].split(",")[1:]
    for count in range(len(options), 0, -1):  # a folder may be called 'photos,year=2024'
        named = ",".join([head, *options[:count]])
        paths = [Path(text).expanduser() for text in (named, named.partition(":")[2]) if text]
        if any(is_folder(path) or is_file(path) for path in paths):
            return named + (match["slice"] or ""), options[count:]
    return head + (match["slice"] or ""), options


def dataset(address: Any, *, split: str | None = None, **options: Any) -> Data:
    """The data that an address names, or that an object of another library holds.

    Images are shown to every network by its own transform, and at their own size to one that has none; `size`, `crop`
    and `interpolation` take precedence over both. With `by="images"`, `held_out` images of every class (or a share of
    them), drawn by `seed`, are the splits `val` and `test`, and all others are `train`.

    Args:
        address: `name[:PATH][:split][[slice]][,option=value…]`; a path, which is understood by what it is; or a data
            frame or a column of texts of pandas, or a dataset of Hugging Face.
        split: Used where the address names none.
        **options: Those above and those of the data source; they may also stand in the address.

    Raises:
        InputError: The address is none, or an option is wrong.
        MissingDataError: The files are not there and could not be downloaded.

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
    split = parts.split or (split if split in source.splits or not source.splits else None)
    split = split or next(iter(source.splits), "")
    options, framing, held_out_split = source.sort_options(parts.options | options)
    data = source.load(split if held_out_split is None else ALL, parts.path, **options)
    data = data if held_out_split is None else held_out_split.select(data, split)
    data = data if parts.rows is None else data[parts.rows]
    return data.framed(framing) if framing else data


def as_data(data: Any) -> Any:
    """Data of whatever a verb receives as `data`.

    Args:
        data: An address, a path, objects of other libraries, numbers, or anything else.

    Returns:
        Data for all but numbers, which become a tensor, and what is not known, which stays as it is.

    Example:
        >>> as_data("digits:test[:100]")
        Data('digits:test[:100]', n=100, classes=10)
        >>> as_data(["a text", "another"])
        Data('texts', n=2)
    """
    if isinstance(data, (Data, Tensor)):
        return _not_empty(data)
    if isinstance(data, (str, Path)):
        return _not_empty(dataset(data))
    read = from_memory(data)
    if read is not data or source_of_object(data) is None:
        return read
    return as_tensor(data, "the data") if is_numeric(data) else dataset(data)


def _not_empty(data: Data | Tensor) -> Data | Tensor:
    if isinstance(data, Data) and not len(data):
        raise InputError(f"{data.name!r} holds no inputs. Give a part of the data that has some.")
    return data


def source_of(path: Path) -> DataSource:
    """The source of a file or folder, by its ending or by what is in it."""
    ending = "".join(path.suffixes).lower()
    if is_folder(path):
        marked = (source for source in DATASETS if any((path / mark).is_file() for mark in source.marks))
        return next(marked, None) or DATASETS.get("imagefolder")
    source = next((source for source in DATASETS if ending.endswith(source.endings or ("?",))), None)
    if source is None:
        endings = [ending for source in DATASETS for ending in source.endings]
        raise InputError(f"{path} is no data that is known by its ending. Those are {', '.join(endings)}, and folders.")
    return source


def source_of_object(data: Any) -> DataSource | None:
    """The source that reads objects of this library, None where there is none."""
    libraries = {kind.__module__.partition(".")[0] for kind in type(data).__mro__}
    return next((source for source in DATASETS if libraries.intersection(source.libraries)), None)


def _of_object(data: Any) -> DataAddress:
    if isinstance(data, Path):
        return parse(f"{source_of(data.expanduser()).name}:{data}")
    source = source_of_object(data)
    if source is None:
        raise InputError(
            f"dataset needs an address, a path, a data frame or a dataset of Hugging Face, and was given "
            f"{brief(data)}. Pass it to compare or extract as it is, or make likewise.data.Data of it."
        )
    return DataAddress(source, data, None, None)


def _leading_path(address: str) -> Path | None:
    """The file or folder that an address begins with, where it names one instead of a source."""
    bare = re.sub(r"\[[^\[\]]*\]$", "", address)
    paths = (Path(text).expanduser() for text in (address, bare, bare.rpartition(":")[0]) if text)
    path = next((path for path in paths if is_folder(path) or is_file(path)), None)
    if path is None and any(mark in bare for mark in "/\\.") and ":" not in bare:
        raise MissingDataError(f"there is no file or folder {bare}. Check the path.")
    return path


def is_built_in(address: str) -> bool:
    """Whether an address names data of this package as it is: no path, no options, nothing to fetch.

    >>> is_built_in("digits:train[:100]"), is_built_in("cifar10"), is_built_in("imagefolder:photos")
    (True, False, False)
    """
    name = re.match(r"[\w-]*", address)
    if name is None or name[0] not in DATASETS or not DATASETS.get(name[0]).built_in:
        return False
    parts = parse(address)
    return parts.source.built_in and parts.path is None and not parts.options


def held_out(address: str) -> str | None:
    """The address of the split to validate on, where this one names no split of its own.

    Args:
        address: That of the data to train on.

    Returns:
        The address of its split `val`, `dev` or `test`, None where it names a split or has no other.

    Example:
        >>> held_out("digits"), held_out("digits:train[:100]")
        ('digits:test', None)
    """
    parts = parse(address)
    splits = [name for name in ("val", "dev", "test") if name in parts.source.splits]
    if isinstance(parts.path, str) and is_folder(parts.path):  # one without parts would be validated on itself
        there = {entry.name.partition(".")[0] for entry in Path(parts.path).iterdir()}
        splits = [name for name in splits if name in there or (name == "val" and there & {"valid", "validation"})]
    if parts.split or parts.rows or not splits or "train" not in parts.source.splits:
        return None
    head, options = _split_options(address)
    return ",".join([f"{head}:{splits[0]}", *options])


def _path_and_split(rest: str | None, source: DataSource, address: str) -> tuple[str | None, str | None]:
    if not rest:
        return None, None
    head, _, last = rest.rpartition(":")
    if last in source.splits or (not source.splits and head and re.fullmatch(r"[\w.-]+", last)):
        return head or None, last
    looks_like_path = source.needs_path or any(mark in rest for mark in "/\\.~") or is_folder(Path(rest))
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
    bounds = text.split(":")
    if not 2 <= len(bounds) <= 3 or not all(re.fullmatch(r"-?\d*", bound) for bound in bounds):
        raise InputError(f"[{text}] of {address!r} is not a slice. Write [start:stop] or [start:stop:step].")
    return slice(*(int(bound) if bound else None for bound in bounds))
