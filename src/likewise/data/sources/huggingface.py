"""Datasets of Hugging Face: objects of the library `datasets`, folders that `save_to_disk` wrote, and names of the hub.

A stream is sampled and a large dataset may be: `n` rows drawn by `seed`. Folders come from anybody: nothing in them is
fetched, run or read from elsewhere.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from pathlib import Path, PurePath
from typing import Any

from likewise._base.files import is_file, is_folder, reading
from likewise._base.folders import file_of
from likewise._base.optional import require
from likewise.data.address import data_source
from likewise.data.captions import Captioned
from likewise.data.image_files import ImageFiles
from likewise.data.inputs import Data
from likewise.data.sources.columns import TEXTS, Table, check_column, from_table, read_labels
from likewise.errors import InputError, LikewiseError, MissingDataError, quoted_list

_BUFFER = 1000  # rows of a stream that are drawn from, at least
_DICT, _STATE = "dataset_dict.json", "state.json"


@data_source(
    name="datasets",
    domain="text",
    splits=(),
    needs_path=True,
    aliases=("dataset",),
    libraries=("datasets",),
    marks=(_DICT, _STATE),
)
def datasets(
    split: str,
    root: Any,
    text: str | None = None,
    pair: str | None = None,
    label: str | bool | None = None,
    image: str | bool | None = None,
    config: str | None = None,
    streaming: bool = False,
    n: int | None = None,
    seed: int = 0,
) -> Data:
    """A dataset of Hugging Face by name or folder: config=, streaming=true, n=ROWS, text=COLUMN, …

    Where a column holds images they are what is shown, with the texts of a column `text`, `sentence` or `caption`
    (or the one named) as captioned images; `image=False` takes the texts alone.
    """
    library = require("datasets", extra="language", to="read a dataset of Hugging Face")
    is_address = isinstance(root, str)
    source = _open(library, root, split, config, streaming) if is_address else root
    if isinstance(source, (library.DatasetDict, library.IterableDatasetDict)):
        source, split = _split(source, split, f"datasets:{root}" if is_address else "the dataset")
    name = ":".join(filter(None, ("datasets", root, split))) if is_address else "dataset"
    name += f",n={n},seed={seed}" if is_address and n is not None else ""
    rows = _sampled(library, _rows(library, source), n, seed, name, is_address)
    table = _table(library, rows, name, is_address)
    pictures = _image_columns(library, rows)
    if image is False or (image is None and not pictures):
        return from_table(table, text, pair, label)
    files = _images(library, rows, _image_column(table, pictures, image), name, is_folder(str(root)))
    caption = text or next((column for column in table.texts if column.lower() in TEXTS), None)
    if caption is not None:
        data = from_table(table, caption, pair, label)
        return Captioned(name, "image", files, data.labels, data.classes, texts=data.inputs)
    return Data(name, "image", files, *read_labels(table, label))


def _open(library: Any, root: str, split: str, config: str | None, streaming: bool) -> Any:
    """A folder of this disk, else a name: from the cache of the library, or downloaded."""
    folder = Path(root).expanduser()
    if is_folder(folder):
        if not any((folder / mark).is_file() for mark in (_DICT, _STATE)):
            raise InputError(
                f"{folder} was not written by save_to_disk. Give the path of a table in it, as in 'table:PATH.csv', or "
                "of a folder of images."
            )
        _check_names(folder)
        with _guarded(f"{folder} is no whole dataset: {{reason}}. Save it again with save_to_disk."):
            return library.load_from_disk(str(folder))
    # before version 4 a dataset could bring code, and the library asked whether to run it
    old = "trust_remote_code" in signature(library.load_dataset).parameters
    options = {"streaming": streaming, **({"trust_remote_code": False} if old else {})}
    try:
        with _guarded(f"datasets:{root} cannot be read: {{reason}}.", leave=OSError):
            return library.load_dataset(root, config, split=split or None, **options)
    except OSError as error:
        raise MissingDataError(
            f"datasets:{root} is no folder, and could not be downloaded ({str(error).splitlines()[0].rstrip('.')}). "
            "Check its name, or save it where there is a connection, with save_to_disk, and give the folder."
        ) from error


@contextmanager
def _guarded(sentence: str, leave: type[Exception] = LikewiseError) -> Iterator[None]:
    """Whatever a library raises as `sentence`, but for our own errors and those that are left to the caller."""
    try:
        yield
    except (LikewiseError, leave):
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:300].rstrip(".") or type(error).__name__
        raise InputError(sentence.replace("{reason}", reason)) from error


def _check_names(folder: Path) -> None:
    """Refuse a folder whose lists name files elsewhere, or that holds what is no file: a pipe would wait for ever."""
    for path in folder.rglob("*"):
        if not path.is_dir():
            file_of(folder, path.relative_to(folder).as_posix())
    for file in [folder / _DICT, folder / _STATE, *folder.glob(f"*/{_STATE}")]:
        if not file.is_file():
            continue
        with reading(file, f"{file} is damaged: {{reason}}. Save the dataset again with save_to_disk."):
            listed = json.loads(file.read_text(encoding="utf-8"))
            names = listed["splits"] if file.name == _DICT else [file["filename"] for file in listed["_data_files"]]
            odd = [name for name in names if PurePath(name).name != name or "\\" in name]
        if odd:
            raise InputError(f"{file} names {odd[0]!r}, which is no file beside it. Save the dataset again.")


def _split(splits: Any, split: str, name: str) -> tuple[Any, str]:
    """The split that is asked for, the only one, or the test split."""
    selected = split or (next(iter(splits)) if len(splits) == 1 else "test")
    if selected in splits:
        return splits[selected], selected
    start = f"{name} has no split {split!r}" if split else f"{name} has {len(splits)} splits"
    first = next(iter(splits), "train")
    remedy = f"'{name}:{first}'" if name.startswith("datasets:") else f"data[{first!r}]"
    raise InputError(f"{start} ({quoted_list(list(splits))}). Name one: {remedy}.")


def _rows(library: Any, dataset: Any) -> Any:
    """The rows of a dataset or a stream; of a column, those of the dataset it is from."""
    name = getattr(dataset, "column_name", None)
    if name is None:
        return dataset
    if hasattr(dataset.source, "select_columns"):
        return dataset.source.select_columns([name])
    return library.Dataset.from_dict({name: list(dataset)})  # of a column within a column


def _sampled(library: Any, rows: Any, n: int | None, seed: int, name: str, is_address: bool) -> Any:
    """All rows, or `n` of them drawn by the seed; of a stream the number has to be said."""
    typed = f"'{name},streaming=true,n=1000'" if is_address else "likewise.dataset(data, n=1000)"
    if not isinstance(rows, (library.Dataset, library.IterableDataset)):
        raise InputError(f"{name} is a {type(rows).__name__}, not a dataset. Pass a Dataset, a stream or a column.")
    if isinstance(rows, library.Dataset) and rows.format["type"] == "custom":
        raise InputError(
            f"{name} has a transform of its own. Pass data.with_format(None) for its columns, or batches of what the "
            "transform gives: torch.utils.data.DataLoader(data, batch_size=32)."
        )
    if n is None and isinstance(rows, library.Dataset):
        return rows
    if n is None or type(n) is not int or n < 2:
        what = "is a stream, which may have no end" if n is None else f"cannot give n={n} rows"
        raise InputError(f"{name} {what}. Say how many rows to draw: {typed}.")
    if isinstance(rows, library.Dataset):
        shuffled, taken = rows.shuffle(seed=seed), min(n, len(rows))
        rows = shuffled.select(range(taken))
    else:
        with _guarded(f"{name} cannot be read: {{reason}}."):
            for column in _image_columns(library, rows):
                rows = rows.cast_column(column, library.Image(decode=False))  # as they are stored
            drawn = list(rows.shuffle(seed=seed, buffer_size=max(n, _BUFFER)).take(n))
            rows, taken = library.Dataset.from_list(drawn, features=rows.features), len(drawn)
    if taken < n:
        raise InputError(f"{name} has {taken} rows, fewer than n={n}. Ask for at most {taken}.")
    return rows


def _image_columns(library: Any, rows: Any) -> list[str]:
    return [column for column, kind in (rows.features or {}).items() if isinstance(kind, library.Image)]


def _image_column(table: Table, pictures: list[str], asked: str | bool | None) -> str:
    if isinstance(asked, str) and check_column(table, asked) in pictures:
        return asked
    if len(pictures) == 1 and not isinstance(asked, str):
        return pictures[0]
    if not pictures:
        raise InputError(f"{table.name} holds no images. Leave image out.")
    raise InputError(
        f"{table.name} holds images in {quoted_list(pictures)}. Name one: {table.remedy('image', pictures[0])}."
    )


def _images(library: Any, rows: Any, column: str, name: str, is_saved: bool) -> ImageFiles:
    """The images of a column, as files that lie in a dataset: the library would fetch what they name."""
    stored = rows.with_format(None).select_columns([column]).cast_column(column, library.Image(decode=False))
    return ImageFiles([StoredImage(stored, column, row, name, is_saved) for row in range(len(stored))])


@dataclass(frozen=True, eq=False)
class StoredImage(os.PathLike[str]):
    """One image in a row of a dataset, read like a file."""

    rows: Any
    column: str
    row: int
    dataset: str
    is_saved: bool

    @property
    def name(self) -> str:
        """What it is called in a sentence."""
        return str(self)

    def __str__(self) -> str:
        return f"row {self.row} of column {self.column!r} of {self.dataset}"

    def __fspath__(self) -> str:
        return str(self)

    def read_bytes(self) -> bytes:
        """The bytes of the image, from the row or from the file on this disk that it names."""
        stored = self.rows[self.row][self.column] or {}
        if stored.get("bytes") is not None:
            return bytes(stored["bytes"])
        path = Path(stored.get("path") or "")
        if self.is_saved or not is_file(path):
            raise InputError(f"{self} holds no image. Embed it before saving, or leave the row out.")
        return path.read_bytes()


def _table(library: Any, rows: Any, name: str, is_address: bool) -> Table:
    """The columns of a dataset by what its features say."""
    rows = rows.with_format(None)
    texts = [
        column for column, kind in rows.features.items() if getattr(kind, "dtype", "") in ("string", "large_string")
    ]
    labels = {column: kind for column, kind in rows.features.items() if isinstance(kind, library.ClassLabel)}

    def read(columns: Any) -> Any:
        selected = rows.select_columns(list(columns))
        with _guarded(f"{name} is damaged: {{reason}}. Save it again with save_to_disk."):
            if is_address:
                selected.data.validate(full=True)  # bytes of a stranger's file
            return selected[:]

    classes = {column: tuple(kind.names) for column, kind in labels.items() if kind.names}
    return Table(name, rows.column_names, texts, read, classes, is_address)
