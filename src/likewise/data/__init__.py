"""Data: from an address to inputs, labels and what the classes are called.

`likewise.data("cifar10:test[:1000]")` loads; the room itself is called, since the room and the act
have one name. `likewise.data.load` is the same function under a name of its own.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from likewise.data import folders as folders
from likewise.data import graph_sources as graph_sources
from likewise.data import imagenet as imagenet
from likewise.data import small_images as small_images
from likewise.data import text as text
from likewise.data.dataset import Data
from likewise.data.graphs import GraphData
from likewise.data.images import ImageFiles, Images
from likewise.data.registry import SOURCES, dataset, held_out, load

__all__ = [
    "SOURCES",
    "Data",
    "GraphData",
    "ImageFiles",
    "Images",
    "dataset",
    "held_out",
    "load",
    "names",
]


def names(pattern: str = "*") -> list[str]:
    """The datasets an address may start with."""
    return SOURCES.names(pattern)


class _CallableRoom(ModuleType):
    def __call__(self, address: str, **options: Any) -> Data:
        return load(address, **options)


sys.modules[__name__].__class__ = _CallableRoom
