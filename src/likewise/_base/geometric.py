"""PyTorch Geometric, asked for by the graph networks and the graph data alike."""

from __future__ import annotations

import warnings
from types import ModuleType

from likewise._base.compat import prepare_torchvision
from likewise._base.optional import require


def geometric(to: str) -> ModuleType:
    """`torch_geometric`, or a sentence that says what it was needed for.

    Its import scripts a few classes, which newer torch calls deprecated; nobody who loads a graph
    can do anything about that, so the warning stops here.
    """
    prepare_torchvision()  # it imports transformers, which imports torchvision
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return require("torch_geometric", extra="graph", to=to)
