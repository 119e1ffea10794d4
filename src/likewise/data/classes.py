"""What classes are called, where a list of names is known.

ImageNet's names are read from `class_lists/` among the data folders, or from torchvision; the ids
are the names of the image folders and need no list.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from likewise._compat import prepare_torchvision
from likewise.data.places import find

CIFAR10 = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
FASHION = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
_CIFAR100 = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus
butterfly camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab
crocodile cup dinosaur dolphin elephant flatfish forest fox girl hamster house kangaroo
keyboard lamp lawn_mower leopard lion lizard lobster man maple_tree motorcycle mountain mouse
mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree plain plate poppy
porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper
snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone television
tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""
CIFAR100 = tuple(_CIFAR100.split())
# WordNet 3.0 ids of the nouns CIFAR-10 was collected with.
CIFAR10_WNIDS = (
    "n02691156",
    "n02958343",
    "n01503061",
    "n02121620",
    "n02430045",
    "n02084071",
    "n01639765",
    "n02374451",
    "n04194289",
    "n04490091",
)


def listed(name: str) -> list[dict[str, str]]:
    """The rows of a class list, empty where there is none."""
    path = find(f"class_lists/{name}.tsv")
    if path is None:
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@cache
def _torchvision_names() -> tuple[str, ...]:
    if find_spec("torchvision") is None:
        return ()
    prepare_torchvision()
    weights = import_module("torchvision.models").ResNet18_Weights.IMAGENET1K_V1
    return tuple(weights.meta["categories"])


def imagenet_names(wnids: Sequence[str]) -> tuple[str, ...]:
    """A name for every id: from the lists, from torchvision for all 1,000, else the id itself."""
    known = {row["wnid"]: row["name"] for row in listed("imagenet1k")}
    if not known and len(wnids) == 1000:
        known = dict(zip(sorted(wnids), _torchvision_names(), strict=False))
    return tuple(known.get(wnid, wnid) for wnid in wnids)
