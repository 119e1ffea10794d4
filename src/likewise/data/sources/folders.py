"""Folders of images: one sub-folder per class, or images alone, which have no labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from likewise._base.files import check_name
from likewise._base.progress import warn
from likewise.data.address import data_source
from likewise.data.held_out_split import ALL
from likewise.data.image_files import ImageFiles
from likewise.data.inputs import Data
from likewise.data.sources.locations import existing_folder
from likewise.errors import InputError, MissingDataError, quoted_list

ENDINGS = {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif", ".ppm", ".pgm", ".tif", ".tiff"}
SPLITS = {"train": ("train",), "val": ("val", "valid", "validation"), "test": ("test", "val")}


@data_source(name="imagefolder", domain="image", splits=("test", "val", "train", ALL), needs_path=True)
def imagefolder(split: str, root: str) -> Data:
    """Any folder of images, one sub-folder per class or none, below train, val and test or not."""
    folders = split_folders(existing_folder(root, "imagefolder"), split)
    name = f"imagefolder:{root}:{split}"
    if not any(map(sub_folders, folders)):
        return from_groups(name, [(folder, images_in(folder)) for folder in folders], ())
    groups = class_groups(folders)
    return from_groups(name, list(groups.values()), list(groups))


def split_folders(root: Path, split: str) -> list[Path]:
    """`root/train` and its like where there are such folders, else the folder itself; for `all`, all of them."""
    names = dict.fromkeys(name for names in SPLITS.values() for name in names)
    present = [root / name for name in names if (root / name).is_dir()]
    if not present or split == ALL:
        return present or [root]
    for name in SPLITS[split]:
        if (root / name).is_dir():
            return [root / name]
    there = ", ".join(sorted(sub.name for sub in root.iterdir() if sub.is_dir()))
    raise MissingDataError(f"{root} has no folder {split!r}. It holds {there}; name one of them.")


def class_groups(folders: Sequence[Path]) -> dict[str, tuple[Path, list[Path]]]:
    """The images of every class, in all these folders, by its name; in the order of the names."""
    groups: dict[str, tuple[Path, list[Path]]] = {}
    for sub in sorted((sub for folder in folders for sub in class_folders(folder)), key=lambda sub: sub.name):
        first, paths = groups.get(sub.name, (sub, []))
        groups[sub.name] = (first, paths + images_in(sub))
    return groups


def sub_folders(folder: Path) -> list[Path]:
    """The folders in a folder, but for hidden ones, in the order of their names."""
    return sorted(sub for sub in folder.iterdir() if sub.is_dir() and not sub.name.startswith("."))


def class_folders(folder: Path) -> list[Path]:
    """The sub-folders, in the order of their names: that is the order of the labels."""
    folders = sub_folders(folder)
    if not folders:
        raise MissingDataError(f"{folder} has no sub-folders. Put the images of each class in one.")
    for sub in folders:
        check_name(sub)
    return folders


def images_in(folder: Path) -> list[Path]:
    """The images of a folder and of folders in it; hidden ones, as .ipynb_checkpoints, are left out."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in ENDINGS and not any(name.startswith(".") for name in path.relative_to(folder).parts)
    )


def from_groups(
    name: str,
    groups: Sequence[tuple[Path, list[Path]]],
    classes: Sequence[str],
    *,
    wnids: Sequence[str] | None = None,
    size: int | None = None,
) -> Data:
    """Images grouped by class as one dataset; group i has label i, and without classes there are no labels."""
    empty = [folder for folder, paths in groups if not paths]
    if len(empty) == len(groups):
        raise InputError(f"{empty[0]} holds no images. Fill it or remove it.")
    if empty:
        names = quoted_list([folder.name for folder in empty])
        warn(f"{len(empty)} of the {len(groups)} classes of {name} have no images: {names}. Their labels stay unused.")
    files = [path for _, paths in groups for path in paths]
    labels = [label for label, (_, paths) in enumerate(groups) for _ in paths] if classes else None
    return Data(name, "image", ImageFiles(files, size), labels, tuple(classes), tuple(wnids) if wnids else None)
