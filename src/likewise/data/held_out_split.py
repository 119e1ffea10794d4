"""A split of images by a seed: a share of every class is held out.

For folders that have no split, or one of classes (Mini-ImageNet): `imagefolder:PATH:train,by=images`. What is drawn of
a class depends on its name, its number of images and the seed alone.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, fields, replace

from likewise.data.inputs import Data
from likewise.errors import InputError

ALL, TRAIN = "all", "train"


@dataclass(frozen=True)
class HeldOutSplit:
    """How many images of every class are held out."""

    by: str | None = None  # what the split is of, which is `images`
    held_out: float = 1 / 6  # a number of images per class, or a share; by default a sixth (100 of Mini-ImageNet's 600)
    seed: int = 0  # what they are drawn by

    def __post_init__(self) -> None:
        if self.by is None:
            raise InputError("held_out and seed are for a split of our own. Add by=images.")
        if self.by != "images":
            raise InputError(f"by is {self.by!r}. Give by=images, or leave it out.")
        share = type(self.held_out) is float and 0 < self.held_out < 1
        if not share and not (type(self.held_out) is int and self.held_out > 0):
            raise InputError(
                f"held_out is {self.held_out!r}. Give a number of images per class, as in held_out=100, or a share, as "
                "in held_out=0.2."
            )
        if type(self.seed) is not int:
            raise InputError(f"seed is {self.seed!r}. Give a whole number.")

    def select(self, data: Data, split: str) -> Data:
        """`train`, or what is held out of it for any other split, of data that holds all images."""
        labels = data.need_labels("divide it").tolist()
        rows: dict[int, list[int]] = {}
        for row, label in enumerate(labels):
            rows.setdefault(label, []).append(row)
        kept = [row for label, of_class in rows.items() for row in self._kept(data.classes[label], of_class, split)]
        options = [f"{name}={getattr(self, name)}" for name in SPLIT_OPTIONS if getattr(self, name) != _DEFAULTS[name]]
        name = data.name.removesuffix(f":{ALL}") + ",".join([f":{split}", *options])
        return data if split == ALL else replace(data[sorted(kept)], name=name)

    def _kept(self, name: str, rows: list[int], split: str) -> list[int]:
        held = self.held_out if type(self.held_out) is int else max(1, round(len(rows) * self.held_out))
        if held >= len(rows):
            raise InputError(
                f"{name!r} has {len(rows)} images, so {held} of them cannot be held out. Give a smaller held_out, or "
                "more images."
            )
        drawn = list(rows)
        random.Random(f"{self.seed} {name}").shuffle(drawn)
        return drawn[int(held) :] if split == TRAIN else drawn[: int(held)]


SPLIT_OPTIONS = tuple(field.name for field in fields(HeldOutSplit))
_DEFAULTS = {field.name: field.default for field in fields(HeldOutSplit)}
