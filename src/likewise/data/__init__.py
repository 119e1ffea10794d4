"""Data: from an address to inputs, labels and what the classes are called.

`likewise.dataset("cifar10:test[:1000]")` loads. Named datasets are declared by `@data_source`, one file per kind in
`sources/`; where files are looked for and what is downloaded is in `sources/locations.py`. The room imports `_base` and
`wordnet`.
"""

from __future__ import annotations

from likewise._base.lazy import lazy
from likewise.data.address import DATASETS, DataAddress, DataSource, as_data, data_source, dataset, held_out
from likewise.data.captions import Captioned
from likewise.data.changes import add_shortcut, randomise_labels
from likewise.data.graphs import GraphBatch, GraphData, nodes_of
from likewise.data.image_files import ImageFiles
from likewise.data.images import Images
from likewise.data.inputs import Data, Domain
from likewise.data.word_changes import augment_text

__all__ = [
    "DATASETS",
    "Captioned",
    "Data",
    "DataAddress",
    "DataSource",
    "Domain",
    "GraphBatch",
    "GraphData",
    "ImageFiles",
    "Images",
    "add_shortcut",
    "as_data",
    "augment_text",
    "data_source",
    "dataset",
    "held_out",
    "names",
    "nodes_of",
    "randomise_labels",
]
lazy(__name__)


def names(pattern: str = "*") -> list[str]:
    """The datasets an address may start with.

    Args:
        pattern: Which of them, as in `cifar*`.

    Example:
        >>> names("cifar*")
        ['cifar10', 'cifar100']
    """
    return DATASETS.names(pattern)
