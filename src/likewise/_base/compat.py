"""Libraries whose import needs help: torchvision beside a CPU build of torch, and PyTorch Geometric.

torchvision's wheels carry compiled operators for one build of torch. Beside another build they do
not load, and then its import fails on the first operator it wants to describe. Nothing here uses
those operators, so where they are missing their names are declared, and the import goes through.
timm, transformers and Lightning import torchvision themselves: whoever imports them calls
`prepare_torchvision` first.
"""

from __future__ import annotations

import sys
import warnings
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from likewise._base.optional import require

_OPERATORS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_libraries: list[Any] = []  # a torch Library undoes its definitions when it is collected


@cache
def prepare_torchvision() -> None:
    """Make `import torchvision` work where torchvision is installed at all."""
    if "torchvision" in sys.modules or find_spec("torchvision") is None:
        return
    try:
        import_module("torchvision")
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise
        _declare_operators()
        import_module("torchvision")


def _declare_operators() -> None:
    import torch

    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]
    library: Any = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]
    for operator in _OPERATORS:
        library.define(operator)
    _libraries.append(library)


def geometric(to: str) -> ModuleType:
    """`torch_geometric`, or a sentence that says what it was needed for.

    Its import scripts a few classes, which newer torch calls deprecated; nobody who loads a graph
    can do anything about that, so the warning stops here.
    """
    prepare_torchvision()  # it imports transformers, which imports torchvision
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return require("torch_geometric", extra="graph", to=to)
