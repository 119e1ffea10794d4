"""What lists and `--help` say of measures, networks, data and settings, without torch, whose import takes seconds.

Names, facts and summaries are declared beside the code. `facts.json` is a copy of them that is part of the package,
written by `scripts/facts.py`; a test holds it to the code. The code itself is read where it is loaded already, and
where plug-ins are installed, which add their own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, fields
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

if TYPE_CHECKING:
    from likewise.measures import Measure

FILE = Path(__file__).with_name("facts.json")
Row = dict[str, Any]


def rows(table: str) -> list[Row]:
    """The rows of a table: one per measure, network of the zoo, dataset or setting of a training."""
    if must_read_code(plug_ins=table != "settings"):
        return TABLES[table]()
    file: dict[str, list[Row]] = json.loads(FILE.read_text("utf-8"))
    return file[table]


def must_read_code(*, plug_ins: bool = True) -> bool:
    """Whether the code is loaded already, or plug-ins may add to it."""
    return "torch" in sys.modules or (
        plug_ins and any(group.startswith("likewise.") for group in entry_points().groups)
    )


def measure_row(measure: Measure) -> Row:
    """What lists say of one measure."""
    from likewise.measures.registry import RESI

    return {
        "name": measure.name,
        "family": measure.info.family,
        "abbreviation": next((alias for alias in measure.info.aliases if alias in RESI), ""),
        "facts": measure.facts(),
        "recipe": measure.explain(),
    }


def _measures() -> list[Row]:
    from likewise.measures.registry import MEASURES

    return [measure_row(measure) for measure in MEASURES]


def _networks() -> list[Row]:
    from likewise.networks.address import list_networks

    return [asdict(network) for network in list_networks()]


def _data() -> list[Row]:
    from likewise.data.address import DATASETS

    names = ("name", "domain", "splits", "summary", "needs_path")
    return [{name: getattr(source, name) for name in names} for source in DATASETS]


def _settings() -> list[Row]:
    """One row per field of `Settings`; the type is that of an option of `likewise train`."""
    from likewise.networks.training.settings import Settings

    types = get_type_hints(Settings)
    return [
        {
            "name": field.name,
            "type": type_name(field.metadata.get("option", types[field.name])),
            "default": list(field.default) if isinstance(field.default, tuple) else field.default,
            "help": field.metadata["help"],
        }
        for field in fields(Settings)
    ]


def type_name(kind: Any) -> str:
    """A type as it is written in code."""
    return kind.__name__ if type(kind) is type else str(kind)


TABLES: dict[str, Callable[[], list[Row]]] = {
    "measures": _measures,
    "networks": _networks,
    "data": _data,
    "settings": _settings,
}
