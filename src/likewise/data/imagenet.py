"""ImageNet and its parts, from folders named by WordNet id.

Labels follow the order of the ids, as torchvision's and timm's networks expect; Tiny ImageNet's
follow its own list `wnids.txt`.
"""

from __future__ import annotations

from pathlib import Path

from likewise.data.classes import imagenet_names, listed
from likewise.data.dataset import Data
from likewise.data.folders import class_folders, from_groups, images_in, split_folder
from likewise.data.places import given, missing
from likewise.data.registry import dataset
from likewise.errors import InputError


@dataset("imagenet1k", domain="image", splits=("val", "train"), needs_path=True)
def imagenet1k(split: str, root: str, size: int = 224) -> Data:
    """ILSVRC 2012, 1,000 classes: PATH/val/n01440764/… and PATH/train/…."""
    folder = split_folder(given(root, "imagenet1k"), split)
    return _by_wnid(f"imagenet1k:{root}:{split}", [folder], 1000, size)


@dataset("imagenet100", domain="image", splits=("val", "train"), needs_path=True)
def imagenet100(split: str, root: str, size: int = 224) -> Data:
    """100 classes of ImageNet: PATH/val/n…, or the parts val.X and train.X1 to train.X4."""
    top = given(root, "imagenet100")
    parts = sorted(sub for sub in top.glob(f"{split}.X*") if sub.is_dir())
    return _by_wnid(f"imagenet100:{root}:{split}", parts or [split_folder(top, split)], 100, size)


@dataset("mini-imagenet", domain="image", splits=("test", "val", "train", "all"), needs_path=True)
def mini_imagenet(split: str, root: str, size: int = 84, classes: str = "ravi_larochelle") -> Data:
    """100 classes of ImageNet at 84 × 84, the splits being of classes, not of images."""
    top = given(root, "mini-imagenet")
    name = f"mini-imagenet:{root}:{split}"
    if (top / split).is_dir():
        return _by_wnid(name, [top / split], None, size)
    rows = listed(f"mini_imagenet_{classes}")
    wanted = {row["wnid"] for row in rows if split in (row["split"], "all")}
    if split != "all" and not wanted:
        raise missing("the class list of mini-imagenet", f"class_lists/mini_imagenet_{classes}.tsv")
    return _by_wnid(name, [top], None, size, wanted or None)


@dataset("tiny-imagenet", domain="image", splits=("val", "train"), needs_path=True)
def tiny_imagenet(split: str, root: str, size: int = 64) -> Data:
    """200 classes of ImageNet at 64 × 64, unpacked as published: train/, val/, wnids.txt."""
    top = given(root, "tiny-imagenet")
    wnids = _lines(top / "wnids.txt")
    spoken = dict(line.split("\t", 1) for line in _lines(top / "words.txt"))
    names = [spoken.get(wnid, wnid).split(",")[0] for wnid in wnids]
    if split == "train":
        groups = [(top / "train" / wnid, images_in(top / "train" / wnid)) for wnid in wnids]
    else:
        by_class: dict[str, list[Path]] = {wnid: [] for wnid in wnids}
        for line in _lines(top / "val" / "val_annotations.txt"):
            file, wnid = line.split("\t")[:2]
            by_class[wnid].append(top / "val" / "images" / file)
        groups = [(top / "val", by_class[wnid]) for wnid in wnids]
    return from_groups(f"tiny-imagenet:{root}:{split}", groups, names, wnids=wnids, size=size)


def _lines(path: Path) -> list[str]:
    if not path.exists():
        raise missing("tiny-imagenet", f"the unpacked archive, with {path.name},")
    return path.read_text(encoding="utf-8").splitlines()


def _by_wnid(
    name: str, folders: list[Path], count: int | None, size: int, wanted: set[str] | None = None
) -> Data:
    found = sorted(
        (sub for folder in folders for sub in class_folders(folder)), key=lambda sub: sub.name
    )
    if wanted is not None:
        found = [sub for sub in found if sub.name in wanted]
    if len(found) != (count or len(wanted or found)) or not found:
        raise InputError(
            f"{name} has {len(found)} class folders, not {count or len(wanted or [1])}. Each "
            "class is a folder named by its WordNet id, such as n01440764."
        )
    wnids = [sub.name for sub in found]
    groups = [(sub, images_in(sub)) for sub in found]
    return from_groups(name, groups, imagenet_names(wnids), wnids=wnids, size=size)
