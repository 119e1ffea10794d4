"""The rooms of the house: one ordered list; a room imports only itself and rooms before it, so rooms make no cycle.

Every import counts: at module level, inside functions, under `TYPE_CHECKING`, and names taken from the package itself
(`from likewise import data`), which are followed to the room they live in.
"""

from __future__ import annotations

import ast
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
from likewise._base.lazy import homes

SOURCE = Path(likewise.__file__).parent
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


def imported(path: Path) -> set[str]:
    """The modules of ours that a file imports anywhere.

    Names of the package are followed to the module they live in: `from likewise import compare`, and `likewise.compare`
    after `import likewise`. `likewise.__version__` is in no room. The module paths of a registry are no imports: it
    loads them when a name is looked up, so that a later room may add to an earlier one.
    """
    modules = set()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=names):
                modules |= {alias.name for alias in names} - {"likewise"}
            case ast.ImportFrom(level=level) if level:
                raise AssertionError(f"{path} imports by dots: spell the module out")
            case ast.ImportFrom(module="likewise", names=names):
                modules |= {_home(alias.name) for alias in names}
            case ast.ImportFrom(module=str(module)):
                modules.add(module)
            case ast.Call(func=ast.Name(id="import_module"), args=[ast.Constant(value=str(module))]):
                modules.add(module)
            case ast.Attribute(value=ast.Name(id="likewise"), attr=name):
                modules.add(_home(name))
    return {module for module in modules if module.startswith("likewise.")}


def _home(name: str) -> str:
    return "" if name == "__version__" else homes("likewise").get(name, f"likewise.{name}")


def arrows() -> dict[tuple[str, str], list[str]]:
    """(importing room, imported room) -> the imports."""
    drawn: dict[tuple[str, str], list[str]] = {}
    for room in ROOMS:
        for path in sorted((SOURCE / room).rglob("*.py")):
            for module in sorted(imported(path)):
                other = module.split(".")[1]
                if other != room:
                    drawn.setdefault((room, other), []).append(f"{path.relative_to(SOURCE)} imports {module}")
    return drawn


def test_every_module_belongs_to_a_room() -> None:
    entries = {path.name for path in SOURCE.iterdir() if path.name != "__pycache__"}
    assert entries - OUTSIDE - set(ORDER) == set()
    assert all((SOURCE / room / "__init__.py").exists() for room in ROOMS)


def test_a_room_imports_only_rooms_before_it() -> None:
    to_the_right = {
        (room, other): imports
        for (room, other), imports in arrows().items()
        if other not in ORDER or ORDER.index(other) > ORDER.index(room)
    }
    assert to_the_right == {}


@pytest.mark.parametrize(
    ("line", "module"),
    [
        ("import likewise.views", "likewise.views"),
        ("from likewise.views.cache import read_view", "likewise.views.cache"),
        ("from likewise import compare, __version__", "likewise.comparison.compare"),
        ("import likewise\nlikewise.layers('zoo:mlp')", "likewise.views.layers"),
        ("def f():\n    from likewise import networks", "likewise.networks"),
        ("def f():\n    return import_module('likewise.classes.films')", "likewise.classes.films"),
        ("if TYPE_CHECKING:\n    from likewise.classes import Inspector", "likewise.classes"),
    ],
)
def test_every_form_of_import_is_seen(tmp_path: Path, line: str, module: str) -> None:
    (tmp_path / "module.py").write_text(f"import sys\nfrom typing import Any\n{line}\n")
    assert imported(tmp_path / "module.py") == {module}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_what_belongs_there_and_what_it_imports(room: str) -> None:
    header = importlib.import_module(f"likewise.{room}").__doc__ or ""
    assert len(re.findall(r"[.:](?=\s|$)", header)) >= 2, header
    said = re.search(r"\bimports\s+((?:`\w+`(?:,|\s|and|to)*)+)", header)
    assert said is not None, header
    names = re.findall(r"`(\w+)`", said[1])
    imported_rooms = {other for importer, other in arrows() if importer == room} - {"errors"}
    if re.search(r"`\s+to\s+`", said[1]):  # a stretch of the order
        first, last = (ORDER.index(name) for name in names)
        assert last < ORDER.index(room)
        assert imported_rooms - set(ORDER[first : last + 1]) == set()
    else:
        assert imported_rooms == set(names) - {"errors"}


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
                if not inner.startswith("_") and isinstance(
                    member, (FunctionType, classmethod, staticmethod, property)
                ):
                    yield f"{key}.{inner}", member


def test_a_command_is_a_thin_file() -> None:
    long = [path.name for path in (SOURCE / "cli").glob("[!_]*.py") if len(path.read_text().splitlines()) >= 100]
    assert long == []


def walked(walk: str) -> set[str]:
    """The files of a walk of `scripts/walk.py`, in a process of its own."""
    program = f"import sys; sys.path.insert(0, 'scripts'); import walk; print(*walk.files(walk.{walk}), sep='\\n')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=SOURCE.parents[1])
    assert "comparison/compare.py" in done.stdout, done.stderr
    return set(done.stdout.split())


def test_two_arrays_take_the_way_that_contributors_are_told() -> None:
    """None of data, networks or WordNet."""
    files = walked("two_arrays")
    assert {name for name in files if name.split("/")[0] in ("data", "networks", "wordnet")} == set()
    assert len(files) <= 20
    told = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text()
    told = told.partition("## How a number is made")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(\w+/[\w/]+\.py)`", told))
    assert named - {"scripts/walk.py"} <= files


def test_two_addresses_walk_through_about_as_many_files_as_contributors_are_told() -> None:
    told = re.search(r"walk through (\d+) files", (SOURCE.parents[1] / "CONTRIBUTING.md").read_text())
    assert told is not None
    assert len(walked("two_addresses")) == pytest.approx(int(told[1]), abs=3)
