"""One door: rooms that read results open no file by themselves (see `likewise._base.folders`)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.imports import SOURCE

ROOMS = (
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
OPENING = {
    *("open", "fdopen", "read_text", "read_bytes", "open_code", "FileIO"),
    *("load_file", "safe_open", "fromfile", "loadtxt", "genfromtxt", "memmap", "open_memmap", "from_file"),
    *("read_csv", "read_table", "read_parquet", "read_json", "read_pickle", "read_feather", "read_excel"),
    *("ZipFile", "GzipFile", "TarFile"),
}
LOADING = {"json", "np", "numpy", "torch", "pickle", "safetensors", "tomllib", "marshal"}  # .load and .loads of these

# Files, and what each of them opens that no stranger wrote. May only shrink.
ALLOWED = {
    "analysis/picks/trials.py": {"json.loads"},  # of a frame of its own
    "analysis/teachers.py": {"json.loads"},
    "cli/_facts.py": {"json.loads", "read_text"},  # a file of the package
    "cli/compare.py": {"json.loads"},  # of a frame of its own
    "cli/ensemble.py": {"json.loads"},
    "cli/inspect.py": {"json.loads"},
    "cli/transfer.py": {"json.loads"},
    "cli/zeroshot.py": {"json.loads"},
    "cli/benchmark/run.py": {"json.loads"},
    "classes/pictures/film.py": {"read_text"},  # a file of the package
    "comparison/blocks.py": {"pickle.loads"},  # a measure, sent by the process that started this one
    "measures/workspace.py": {"np.load"},  # what this process wrote into a scratch folder
    "report/page.py": {"read_text"},  # a file of the package
    "transfer/cost.py": {"read_text"},
    "views/cache.py": {"open"},  # a method of this name
    "zeroshot/folds.py": {"open"},
    "zeroshot/protocol.py": {"open"},
}


def openings(source: str) -> Iterator[str]:
    """Calls by which a module opens or parses a file, but for those of the door."""
    tree = ast.parse(source)
    ours, names = set(), {}
    for node in ast.walk(tree):
        for name in node.names if isinstance(node, ast.ImportFrom) else ():
            names[name.asname or name.name] = name.name
            if (node.module or "").startswith("likewise."):
                ours.add(name.asname or name.name)
    ours |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in ("load", "loads") and node.value.id in LOADING:
                yield f"{node.value.id}.{node.attr}"
            elif node.attr in OPENING and node.value.id not in ("sealed", "folders"):
                yield node.attr
        elif isinstance(node, ast.Attribute) and node.attr in OPENING:
            yield node.attr
        elif isinstance(node, ast.Name) and node.id not in ours and names.get(node.id, node.id) in OPENING:
            yield names.get(node.id, node.id)


def test_rooms_that_read_results_open_files_by_the_door_alone() -> None:
    modules = [path for room in ROOMS for path in (SOURCE / room).rglob("*.py")]
    seen = {path.relative_to(SOURCE).as_posix(): set(openings(path.read_text(encoding="utf-8"))) for path in modules}
    assert {name: words for name, words in seen.items() if words} == ALLOWED


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("open('a')", "open"),
        ("Path('a').open()", "open"),
        ("path.read_text()", "read_text"),
        ("(folder / 'a').read_bytes()", "read_bytes"),
        ("json.load(file)", "json.load"),
        ("json.loads(text)", "json.loads"),
        ("np.load(path)", "np.load"),
        ("pd.read_csv(path)", "read_csv"),
        ("from safetensors.torch import load_file\nload_file(path)", "load_file"),
        ("from safetensors import safe_open as peek\npeek(path)", "safe_open"),
        ("import safetensors.torch\nsafetensors.torch.load_file(path)", "load_file"),
        ("map(Path.read_bytes, paths)", "read_bytes"),
    ],
)
def test_every_way_to_open_a_file_is_seen(line: str, word: str) -> None:
    assert word in list(openings(line))


@pytest.mark.parametrize(
    "line",
    [
        "from likewise._base.folders import read_text\nread_text(folder, 'a')",
        "from likewise._base import sealed\nsealed.read(path)",
        "from likewise.analysis.files import read_table\nread_table(path)",
    ],
)
def test_the_door_is_no_exception_to_itself(line: str) -> None:
    assert list(openings(line)) == []


def test_the_rooms_are_all_behind_the_readers_of_what_users_name() -> None:
    before = {"_base", "work", "wordnet", "data", "networks"}
    assert {path.name for path in Path(SOURCE).iterdir() if (path / "__init__.py").exists()} == before | set(ROOMS)
