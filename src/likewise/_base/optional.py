"""Optional dependencies: asked for where they are used, with the remedy where they are missing.

Two of them need help. torchvision's wheels carry compiled operators for one build of torch. Beside another build they
do not load, and then its import fails on the first operator it wants to describe. Nothing here uses those operators,
so where they are missing their names are declared, and the import goes through. timm, transformers, Lightning and
PyTorch Geometric import torchvision themselves: whoever imports them calls `prepare_torchvision` first.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from likewise.errors import MissingDependencyError

_OPERATORS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_libraries: list[Any] = []  # a torch Library undoes its definitions when it is collected


@dataclass(frozen=True)
class Library:
    """A library that something needs, and the extra that brings it: declared as a fact, loaded where it is used."""

    module: str
    extra: str
    to: str

    @property
    def installed(self) -> bool:
        """Whether it could be imported, without importing it."""
        return find_spec(self.module) is not None

    @property
    def remedy(self) -> str:
        """What it is needed for and how to install it, as a sentence."""
        return f"to {self.to}, {self.module} is needed: pip install 'likewise[{self.extra}]'."

    def load(self) -> ModuleType:
        """Import it, or say which extra brings it and what it was needed for."""
        try:
            return import_module(self.module)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.split(".")[0] != self.module.split(".")[0]:
                raise
            raise MissingDependencyError(self.remedy) from error


def require(module: str, *, extra: str, to: str) -> ModuleType:
    """Import `module`, or say which extra brings it and what it was needed for."""
    return Library(module, extra, to).load()


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
