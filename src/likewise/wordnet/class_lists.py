"""The classes of well-known datasets: their names and the synset each picture shows.

A class is rarely the first sense of its name: 27 of CIFAR-100's 100 are not (its seals are no wax, its
rays no light). So senses were chosen by hand: the one depicted, a physical thing where there is one,
siblings on the same side (all fruit as food), ImageNet's own synset where it has the class. All lists
are in `classes.tsv`, in the order of the labels; where a name is missing there, it is ImageNet's.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from likewise.errors import UnknownNameError, did_you_mean


@dataclass(frozen=True)
class ClassList:
    """The classes of a dataset in the order of its labels.

    Attributes:
        names: One name per class.
        wnids: One WordNet 3.0 id per class.
    """

    names: tuple[str, ...]
    wnids: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)


def classes(dataset: str) -> ClassList:
    """The names and WordNet 3.0 ids of a dataset's classes.

    Args:
        dataset: The name of a list, such as "cifar10"; `lists` gives all.

    Raises:
        UnknownNameError: There is no list of that name.

    Example:
        >>> cifar10 = classes("cifar10")
        >>> cifar10.names[5], cifar10.wnids[5]
        ('dog', 'n02084071')
    """
    by_name = _lists()
    class_list = by_name.get(dataset.lower().replace("_", "-"))
    if class_list is None:
        raise UnknownNameError(
            f"no class list named {dataset!r}. Known are {', '.join(by_name)}.{did_you_mean(dataset, by_name)}"
        )
    return class_list


def lists() -> list[str]:
    """The datasets whose classes are known.

    Example:
        >>> lists()
        ['cifar10', 'cifar100', 'coco80', 'fashion-mnist', 'imagenet1k', 'mini-imagenet', 'tiny-imagenet', 'voc20']
    """
    return list(_lists())


@cache
def _lists() -> dict[str, ClassList]:
    with (files("likewise.wordnet") / "classes.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    imagenet = {row["wnid"]: row["name"] for row in rows if row["list"] == "imagenet1k"}
    pairs: dict[str, list[tuple[str, str]]] = {}
    for row in rows:
        name = row["name"] or imagenet[row["wnid"]]
        pairs.setdefault(row["list"], []).append((name, row["wnid"]))
    return {key: ClassList(*zip(*columns, strict=True)) for key, columns in pairs.items()}
