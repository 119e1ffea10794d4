"""ImageNet and its parts, from folders named by WordNet id.

Labels follow the order of the ids, as torchvision's and timm's networks expect; Tiny ImageNet's
follow its own list `wnids.txt`. Names are those of `likewise.wordnet`.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from likewise._base.files import reading
from likewise.data.address import data_source
from likewise.data.held_out_split import ALL
from likewise.data.inputs import Data
from likewise.data.sources.folders import class_groups, from_groups, images_in, split_folders
from likewise.data.sources.locations import existing_folder, find, missing
from likewise.errors import InputError
from likewise.wordnet import classes as class_list

_DAMAGED = "{path} is damaged: {{reason}}. Fetch it again."
# Ravi and Larochelle's split; the list has their classes in this order.
_RAVI = {"train": slice(64), "val": slice(64, 80), "test": slice(80, 100), "all": slice(100)}


@data_source(name="imagenet1k", domain="image", splits=("val", "train", ALL), needs_path=True)
def imagenet1k(split: str, root: str) -> Data:
    """ILSVRC 2012, 1,000 classes: PATH/val/n01440764/… and PATH/train/…."""
    folders = split_folders(existing_folder(root, "imagenet1k"), split)
    return _by_wnid(f"imagenet1k:{root}:{split}", folders, 1000, 224)


@data_source(name="imagenet100", domain="image", splits=("val", "train", ALL))
def imagenet100(split: str, root: str | None = None) -> Data:
    """100 classes of ImageNet: PATH/val/n…, or the parts val.X and train.X1 to train.X4."""
    folder = root or find("imagenet100")
    if folder is None:
        raise missing("imagenet100", "the folder imagenet100, with train.X1 to train.X4 and val.X, or train and val,")
    top = existing_folder(str(folder), "imagenet100")
    parts = sorted(sub for sub in top.glob(f"{'*' if split == ALL else split}.X*") if sub.is_dir())
    return _by_wnid(f"imagenet100:{top}:{split}", parts or split_folders(top, split), 100, 224)


@data_source(name="mini-imagenet", domain="image", splits=("test", "val", "train", ALL), needs_path=True)
def mini_imagenet(split: str, root: str, classes: str = "ravi_larochelle") -> Data:
    """100 classes of ImageNet at 84 × 84, the splits being of classes, not of images."""
    top = existing_folder(root, "mini-imagenet")
    name = f"mini-imagenet:{root}:{split}"
    folders = split_folders(top, ALL) if split == ALL else [top / split] if (top / split).is_dir() else [top]
    if folders != [top]:
        return _by_wnid(name, folders, None, 84)
    if classes == "ravi_larochelle":
        wnids: set[str] | None = set(class_list("mini-imagenet").wnids[_RAVI[split]])
    else:
        wnids = _split_ids(f"class_lists/mini_imagenet_{classes}.tsv", split)
    return _by_wnid(name, [top], None, 84, wnids)


def _split_ids(file: str, split: str) -> set[str] | None:
    """The ids of another split of Mini-ImageNet; none are needed to take all folders."""
    path = find(file)
    if path is None and split == "all":
        return None
    if path is None:
        raise missing("the class list of mini-imagenet", file)
    with reading(path, _DAMAGED.format(path=path)):
        with path.open(encoding="utf-8", newline="") as opened:
            rows = list(csv.DictReader(opened, delimiter="\t"))
        return {row["wnid"] for row in rows if split in (row["split"], "all")}


@data_source(name="tiny-imagenet", domain="image", splits=("val", "train", ALL), needs_path=True)
def tiny_imagenet(split: str, root: str) -> Data:
    """200 classes of ImageNet at 64 × 64, unpacked as published: train/, val/, wnids.txt."""
    top = existing_folder(root, "tiny-imagenet")
    wnids = _lines(top / "wnids.txt")
    for wnid in wnids:
        _check_name(wnid, top / "wnids.txt")
    with reading(top / "words.txt", _DAMAGED.format(path=top / "words.txt")):
        words = dict(line.split("\t", 1) for line in _lines(top / "words.txt"))
    names = _names(wnids, {wnid: synonyms.split(",")[0] for wnid, synonyms in words.items()})
    by_class: dict[str, list[Path]] = {wnid: [] for wnid in wnids}
    if split != "val":
        by_class = {wnid: images_in(top / "train" / wnid) for wnid in wnids}
    if split != "train":
        held_out = _by_annotation(top / "val" / "val_annotations.txt", wnids)
        by_class = {wnid: by_class[wnid] + held_out[wnid] for wnid in wnids}
    groups = [(top / ("train" if split == "train" else "val"), paths) for paths in by_class.values()]
    return from_groups(f"tiny-imagenet:{root}:{split}", groups, names, wnids=wnids, size=64)


def _by_annotation(path: Path, wnids: Sequence[str]) -> dict[str, list[Path]]:
    """The images of every class by a table of files and ids; all are in the folder `images` beside it."""
    by_class: dict[str, list[Path]] = {wnid: [] for wnid in wnids}
    with reading(path, _DAMAGED.format(path=path)):
        for line in _lines(path):
            file, wnid = line.split("\t")[:2]
            _check_name(file, path)
            by_class[wnid].append(path.parent / "images" / file)
    return by_class


def _check_name(name: str, listed_in: Path) -> None:
    """Refuse a name that leads out of the folder it is looked for in."""
    if name in ("", ".", "..") or set(name) & set("/\\\0"):
        raise InputError(f"{listed_in} names {name!r}, which is no file beside it. Fetch it again.")


def _lines(path: Path) -> list[str]:
    if not path.exists():
        raise missing("tiny-imagenet", f"the unpacked archive, with {path.name},")
    with reading(path, _DAMAGED.format(path=path)):
        return path.read_text(encoding="utf-8").splitlines()


def _by_wnid(name: str, folders: list[Path], count: int | None, size: int, only: set[str] | None = None) -> Data:
    groups = class_groups(folders)
    if only is not None:
        groups = {wnid: group for wnid, group in groups.items() if wnid in only}
    if len(groups) != (count or len(only or groups)) or not groups:
        raise InputError(
            f"{name} has {len(groups)} class folders, not {count or len(only or [1])}. Each "
            "class is a folder named by its WordNet id, such as n01440764."
        )
    wnids = list(groups)
    return from_groups(name, list(groups.values()), _names(wnids), wnids=wnids, size=size)


def _names(wnids: Sequence[str], others: Mapping[str, str] | None = None) -> list[str]:
    """ImageNet's name for every id, or one of the others, or the id itself."""
    imagenet = class_list("imagenet1k")
    names = {**(others or {}), **dict(zip(imagenet.wnids, imagenet.names, strict=True))}
    return [names.get(wnid, wnid) for wnid in wnids]
