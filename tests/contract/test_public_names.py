"""The names that `likewise` and its rooms give out: what `dir` lists, what headers promise, what calls are typed as."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

import likewise

ROOMS = ["analysis", "attacks", "benchmark", "classes", "data", "errors", "language", "measures"]
ROOMS += ["networks", "report", "testing", "transfer", "views", "wordnet", "zeroshot"]
PUBLIC = ["likewise", *(f"likewise.{room}" for room in ROOMS)]
HIDING = {f"likewise.benchmark.{name}" for name in ("gains", "plan", "ranks", "run", "sweep")}  # only fewer


@pytest.mark.parametrize("name", PUBLIC)
def test_a_room_lists_exactly_its_public_names(name: str) -> None:
    """Rooms of a registry list its entries too, by names that Python takes."""
    room = importlib.import_module(name)
    entries = (
        {entry.replace("-", "_") for entry in room.names()} if room in (likewise.attacks, likewise.measures) else ()
    )
    assert dir(room) == sorted({*room.__all__, *entries})
    assert [entry for entry in dir(room) if not hasattr(room, entry)] == []
    with pytest.raises(AttributeError):
        room.no_such_name  # noqa: B018


@pytest.mark.parametrize("name", PUBLIC)
def test_no_function_has_the_name_of_a_module_beside_it(name: str) -> None:
    room = importlib.import_module(name)
    modules = {module.name for module in pkgutil.iter_modules(getattr(room, "__path__", ()))}
    hiding = {entry for entry in modules & set(dir(room)) if not isinstance(getattr(room, entry), ModuleType)}
    assert {f"{name}.{entry}" for entry in hiding} - HIDING == set()


@pytest.mark.parametrize("name", PUBLIC)
def test_what_a_header_promises_exists(name: str) -> None:
    """Names in backticks are of the room or of the package, paths are files of the room."""
    room = importlib.import_module(name)
    header = re.sub(r"\bimports\s+`.*", "", room.__doc__ or "", flags=re.S)
    names = [re.match(r"[\w./]*", text.lstrip("@"))[0] for text in re.findall(r"`([^` ]+)`", header)]
    folder = Path(room.__file__).parent
    missing = [
        text
        for text in names
        if not ((folder / text).exists() if "/" in text or text.endswith(".py") else _public(room, text))
    ]
    assert missing == []


def _public(room: ModuleType, text: str) -> bool:
    """Whether a name is one of the room or of the package, or a dotted path from the package."""
    value: object = likewise if text.startswith("likewise.") else room
    for part in text.removeprefix("likewise.").split("."):
        if part not in dir(value) and part not in dir(likewise):
            return False
        value = getattr(value, part, None) or getattr(likewise, part)
    return True


def test_the_calls_a_type_checker_is_shown_run() -> None:
    """`typed_calls.py` is read by mypy; here its calls give what it says."""
    x, y = np.random.default_rng(0).normal(size=(2, 40, 6))
    space = {"np": np, "likewise": likewise, "compare": likewise.compare, "x": x, "y": y, "t": torch.from_numpy(x)}
    lines = Path(__file__).with_name("typed_calls.py").read_text().splitlines()
    calls = [node for line in lines if line.strip().startswith("assert_type(") for node in ast.parse(line.strip()).body]
    assert len(calls) > 10
    for node in calls:
        call, kind = node.value.args
        expected = kind.value.id if isinstance(kind, ast.Subscript) else kind.id
        assert type(eval(ast.unparse(call), space)).__name__ == expected, ast.unparse(call)
