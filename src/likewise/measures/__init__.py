"""Measures: how alike two views are. Each is a short function with its facts declared beside it.

`likewise.measures.cka(x, y)` works on bare arrays; `get("jaccard", k=5)` binds options; `names()` lists. The formulas
are in `families/`, loaded when a name is looked up. The room imports `_base`, `wordnet`, `views` and `matrices`.
"""

from __future__ import annotations

from typing import Any

from likewise.errors import UnknownNameError
from likewise.measures.facts import Info
from likewise.measures.function import Measure
from likewise.measures.pair import Pair
from likewise.measures.planning import Cost, cost
from likewise.measures.registry import MEASURES, RESI, get, measure, names, register, unregister
from likewise.measures.representation import Representation

__all__ = [
    "RESI",
    "Cost",
    "Info",
    "Measure",
    "Pair",
    "Representation",
    "cost",
    "get",
    "measure",
    "names",
    "register",
    "unregister",
]


def __getattr__(name: str) -> Any:
    try:
        return MEASURES.get(name)
    except UnknownNameError as error:
        raise AttributeError(str(error)) from None


def __dir__() -> list[str]:
    return sorted([*__all__, *(entry.replace("-", "_") for entry in MEASURES.names())])
