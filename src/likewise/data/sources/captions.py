"""Folders of images with a text each, listed in a table beside them, as Hugging Face's `imagefolder` has them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from likewise._base.files import is_file
from likewise.data.address import data_source
from likewise.data.captions import Captioned
from likewise.data.held_out_split import ALL
from likewise.data.image_files import ImageFiles
from likewise.data.inputs import Data
from likewise.data.sources.columns import check_column, check_texts, from_table
from likewise.data.sources.folders import split_folders
from likewise.data.sources.locations import existing_folder
from likewise.data.sources.tables import read_table
from likewise.errors import InputError, MissingDataError

_LISTS = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
_FILE = "file_name"


@data_source(name="captions", domain="image", splits=("test", "val", "train", ALL), needs_path=True, marks=_LISTS)
def captions(split: str, root: str, text: str | None = None, label: str | bool | None = None) -> Data:
    """Images with texts: a folder with metadata.csv or .jsonl (columns file_name and text)."""
    lists = [_listed(folder, text, label) for folder in split_folders(existing_folder(root, "captions"), split)]
    paths = [path for files, _ in lists for path in files]
    texts = [line for _, data in lists for line in data.inputs]
    name, first = f"captions:{root}:{split}", lists[0][1]
    if len(lists) > 1:  # classes of one folder need not be those of another
        return Captioned(name, "image", ImageFiles(paths), texts=texts)
    return Captioned(name, "image", ImageFiles(paths), first.labels, first.classes, texts=texts)


def _listed(folder: Path, text: str | None, label: str | bool | None) -> tuple[list[Path], Data]:
    """The images that a list beside them names, and their texts as data."""
    file = next((folder / name for name in _LISTS if (folder / name).is_file()), None)
    if file is None:
        raise MissingDataError(
            f"{folder} has no {_LISTS[0]}. Write one with the columns {_FILE} and text, or take the images alone: "
            f"imagefolder:{folder}."
        )
    table = read_table(str(file), str(file))
    names = check_texts(table.read([check_column(table, _FILE)])[_FILE], f"column {_FILE!r} of {file}")
    rest = replace(
        table,
        name=f"captions:{folder}",
        pairs=False,
        columns=[column for column in table.columns if column != _FILE],
        texts=[column for column in table.texts if column != _FILE],
    )
    for row, name in enumerate(names):
        parts = Path(name).parts
        if not parts or Path(name).is_absolute() or ".." in parts or not is_file(folder / name):
            raise InputError(
                f"{file} names {name!r} in row {row}, which is no file in {folder}. Put it there, or leave the row out."
            )
    return [folder / name for name in names], from_table(rest, text, None, label)
