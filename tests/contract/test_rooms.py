"""The rooms of the house: one ordered list; a room imports only itself and rooms before it, so rooms make no cycle.

Every import counts, in every form that Python knows (see `imports.py`): at module level, inside functions and under
`TYPE_CHECKING`.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

import likewise
from tests.contract.imports import SOURCE, cycles, graph, path_of, read

ORDER = (
    "errors",
    "_base",
    "work",
    "wordnet",
    "data",
    "networks",
    "views",
    "matrices",
    "measures",
    "comparison",
    "language",
    "attacks",
    "classes",
    "transfer",
    "zeroshot",
    "analysis",
    "benchmark",
    "difference",
    "report",
    "cli",
)
METHODS = (FunctionType, classmethod, staticmethod, property)
ROOMS = [room for room in ORDER if (SOURCE / room).is_dir()]
OUTSIDE = {"__init__.py", "__main__.py", "errors.py", "testing.py", "py.typed"}


def arrows() -> dict[tuple[str, str], list[str]]:
    """(importing room, imported room) -> the imports."""
    drawn: dict[tuple[str, str], list[str]] = {}
    for module, others in graph(typing=True).items():
        for other in sorted(others):
            rooms = (module.split(".")[1] if "." in module else "", other.split(".")[1])
            if rooms[0] in ROOMS and rooms[0] != rooms[1]:
                drawn.setdefault(rooms, []).append(f"{module} imports {other}")
    return drawn


def test_every_module_belongs_to_a_room() -> None:
    entries = {path.name for path in SOURCE.iterdir() if path.name != "__pycache__"}
    assert entries - OUTSIDE - set(ORDER) == set()
    assert all((SOURCE / room / "__init__.py").exists() for room in ROOMS)


def test_a_room_has_at_most_twelve_files_at_its_top() -> None:
    """The command line has one per command."""
    counts = {room: len(list((SOURCE / room).glob("*.py"))) - 1 for room in ROOMS if room != "cli"}
    assert {room: count for room, count in counts.items() if count > 12} == {}


def test_a_room_imports_only_rooms_before_it() -> None:
    to_the_right = {
        (room, other): imports
        for (room, other), imports in arrows().items()
        if other not in ORDER or ORDER.index(other) > ORDER.index(room)
    }
    assert to_the_right == {}


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports inside functions count; those that only type checkers read do not."""
    assert list(cycles(graph(typing=False))) == []


def test_what_is_imported_is_written_where_it_is_imported() -> None:
    """Files that import what they are given, by name: plug-ins, libraries, modules of the user's. May only shrink."""
    files = {module for module in graph(typing=True) if read(path_of(module), module).unreadable}
    assert files == {
        "likewise._base.lazy",
        "likewise._base.optional",
        "likewise._base.registry",
        "likewise.cli._words",
    }


@pytest.mark.parametrize(
    ("line", "module"),
    [
        ("import likewise.views", "likewise.views"),
        ("import likewise.views.cache as files", "likewise.views.cache"),
        ("from likewise.views.cache import read_view", "likewise.views.cache"),
        ("from likewise.views import cache as files", "likewise.views.cache"),
        ("from likewise import compare, __version__", "likewise.comparison.compare"),
        ("from likewise import views as looks", "likewise.views"),
        ("import likewise\nlikewise.layers('zoo:mlp')", "likewise.views.layers"),
        ("import likewise as lw\nlw.networks.zoo.ZOO", "likewise.networks.zoo"),
        ("import likewise as lw\nlw.views.extract.extract", "likewise.views.extract"),
        ("def f():\n    from likewise import networks", "likewise.networks"),
        ("class A:\n    def f(self):\n        import likewise.data", "likewise.data"),
        ("from ..views import Activations", "likewise.views"),
        ("from .facts import Info", "likewise.measures.facts"),
        ("from . import facts", "likewise.measures.facts"),
        ("from .. import compare", "likewise.comparison.compare"),
        (
            "from importlib import import_module\nimport_module('likewise.classes.pictures')",
            "likewise.classes.pictures",
        ),
        ("from importlib import import_module as load\nload(name='likewise.views')", "likewise.views"),
        ("import importlib\nimportlib.import_module('likewise.views')", "likewise.views"),
        ("import importlib as il\nil.import_module(f'likewise.views.{sys}')", "likewise.views"),
        ("from importlib import import_module\nimport_module('likewise.views.' + sys.argv[0])", "likewise.views"),
        (
            "from importlib import import_module\nimport_module('.facts', 'likewise.measures')",
            "likewise.measures.facts",
        ),
        ("__import__('likewise.views')", "likewise.views"),
        ("import builtins\nbuiltins.__import__('likewise.views')", "likewise.views"),
        ("if TYPE_CHECKING:\n    from likewise.classes import Inspector", "likewise.classes"),
        ("try:\n    import likewise.attacks\nexcept ImportError:\n    pass", "likewise.attacks"),
    ],
)
def test_every_form_of_import_is_seen(tmp_path: Path, line: str, module: str) -> None:
    path = tmp_path / "planted.py"
    path.write_text(f"import sys\nfrom typing import Any\n{line}\n")
    assert read(path, "likewise.measures.planted").modules == {module}
    unseen = read(path, "likewise.measures.planted", typing=False).modules
    assert unseen == (set() if "TYPE_CHECKING" in line else {module})


def test_an_import_of_what_is_known_only_as_it_runs_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "planted.py"
    path.write_text("import importlib, sys\nimportlib.import_module(sys.argv[1])\n")
    assert read(path, "likewise.measures.planted").unreadable == ["importlib.import_module(sys.argv[1])"]


def test_a_circle_is_seen() -> None:
    edges = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert sorted(cycles(edges)) == [["a", "b", "c"], ["d", "e"]]
    assert list(cycles({"a": {"b", "c"}, "b": {"c"}, "c": set()})) == []


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_what_belongs_there_and_exactly_what_it_imports(room: str) -> None:
    header = importlib.import_module(f"likewise.{room}").__doc__ or ""
    assert len(re.findall(r"[.:](?=\s|$)", header)) >= 2, header
    imported = [name for name in ROOMS if (room, name) in arrows()]
    assert rooms_named(header) == imported, f"write: imports {quoted(imported)}"


def rooms_named(header: str) -> list[str] | None:
    """The rooms after the word imports, "no other room" being none."""
    if re.search(r"\bimports\s+no\s+other\s+room\b", header):
        return []
    names = re.search(r"\bimports\s+(`\w+`(?:(?:,\s+|\s+and\s+)`\w+`)*)(?!\s+to\s)", header)
    return names and [name for name in re.findall(r"`(\w+)`", names[1]) if name != "errors"]


def quoted(names: list[str]) -> str:
    *first, last = [f"`{name}`" for name in names] or ["no other room"]
    return f"{', '.join(first)} and {last}" if first else last


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("The room imports `_base`, `data` and `views`.", ["_base", "data", "views"]),
        ("The room\nimports\n`_base`.", ["_base"]),
        ("The room imports no other room.", []),
        ("The room imports `_base` to `views`.", None),
        ("The room is small.", None),
    ],
)
def test_a_header_is_read_word_for_word(header: str, names: list[str] | None) -> None:
    assert rooms_named(header) == names


def test_every_public_name_has_a_docstring() -> None:
    """Functions and classes without an underscore, where they are defined, and their public methods."""
    missing = []
    for name in ["likewise", *(found.name for found in pkgutil.walk_packages(likewise.__path__, "likewise."))]:
        module = importlib.import_module(name)
        missing += [f"{name}.{path}" for path, thing in public(module) if not inspect.getdoc(thing)]
    assert missing == []


def public(module: ModuleType) -> Iterator[tuple[str, object]]:
    """What a module defines that has no underscore before its name."""
    for key, value in vars(module).items():
        if key.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(value) or inspect.isclass(value):
            yield key, value
        if inspect.isclass(value):
            for inner, member in vars(value).items():
                if inner.startswith("_") or getattr(member, "__module__", module.__name__) != module.__name__:
                    continue  # what a library adds to a class when it is first used
                if isinstance(member, (FunctionType, classmethod, staticmethod, property)):
                    yield f"{key}.{inner}", member


def test_a_command_is_a_thin_file() -> None:
    long = [path.name for path in (SOURCE / "cli").glob("[!_]*.py") if len(path.read_text().splitlines()) >= 100]
    assert long == []


def walked(walk: str) -> set[str]:
    """The files of a walk of `scripts/walk.py`, in a process of its own."""
    done = subprocess.run(
        [sys.executable, SOURCE.parents[1] / "scripts" / "walk.py", walk], capture_output=True, text=True
    )
    assert "comparison/compare.py" in done.stdout, done.stderr
    return set(done.stdout.split())


def test_two_arrays_walk_through_the_files_that_contributors_read_about() -> None:
    """None of data, networks or WordNet."""
    files = walked("two_arrays")
    assert {name for name in files if name.split("/")[0] in ("data", "networks", "wordnet")} == set()
    page = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text()
    steps, _, detours = page.partition("## How a number is made")[2].partition("\n## ")[0].partition("scripts/walk.py`")
    assert set(re.findall(r"`(\w+/[\w/]+\.py)`", steps)) <= files
    assert [name for name in re.findall(r"`(\w+/[\w/]+\.py)`", detours) if not (SOURCE / name).exists()] == []


@pytest.mark.parametrize("walk", ["two_arrays", "two_addresses"])
def test_the_number_of_files_of_a_walk_is_about_what_contributors_read(walk: str) -> None:
    number = re.search(rf"`{walk}` \| (\d+) \|", (SOURCE.parents[1] / "CONTRIBUTING.md").read_text())
    assert number is not None
    assert len(walked(walk)) == pytest.approx(int(number[1]), abs=6)
