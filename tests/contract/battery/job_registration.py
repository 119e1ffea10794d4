"""Which functions of a package are long jobs: whatever takes a folder to write to, in its signature or by its options.

`Show` has a `store`, so every function that hands its options on to `Show` is one; found by reading the source.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

READERS = frozenset(("Show.read", "Show.only", "Call.read"))  # what takes `store` out of the options of a function
EXEMPT = {
    "benchmark/planning.py:plan": "reads what is done, and writes nothing",
    "benchmark/planning.py:run_folder": "names a folder",
    "classes/from_sources.py:from_weights": "shows networks no data, and refuses a store",
    "classes/network_sources.py:answers_of": "is how from_confusion and from_logits read their options",
    "cli/benchmark/board.py:board": "writes one file",
    "cli/benchmark/folder.py:folder": "writes one file",
    "cli/benchmark/submit.py:submit": "writes one file",
    "cli/benchmark/sweep.py:sweep": "writes one file",
    "cli/benchmark/table.py:table": "writes one file",
    "cli/benchmark/views.py:views": "writes one file",
    "cli/benchmark/compare_with_paper.py:compare_with_paper": "writes one file",
    "cli/record.py:record": "writes one file",
    "comparison/recordings/comparing.py:compare_recorded": "is how compare reads its options beside recordings",
    "comparison/recordings/comparing.py:layerwise_recorded": "is how layerwise does",
    "cli/_words.py:claim_out": "is how commands claim a folder",
    "difference/recorded.py:record": "gives a recording, which is saved as one file",
    "language/reading.py:answers": "refuses a store",
    "report/paper_figures.py:figures": "draws a finished report anew",
    "testing.py:assert_alike": "is diff, or writes one file",
    "transfer/cost.py:plan": "reads what is done, and writes nothing",
    "transfer/transferability.py:attacked_session": "is how sat, success and their like open a store",
    "views/cache.py:FolderViews": "is how an extraction keeps its views",
    "views/show.py:Show": "holds options",
    "work/store.py:open_store": "is the store itself",
}


def long_jobs(package: Path) -> set[str]:
    """The public functions and commands of a package that take a folder to write to, as `file.py:function`."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(package.rglob("*.py"))}
    readers = _readers(node for tree in trees.values() for node in tree.body if isinstance(node, ast.FunctionDef))
    names = set()
    for path, tree in trees.items():
        for node in tree.body:
            functions = [node] if isinstance(node, ast.FunctionDef) else []
            if isinstance(node, ast.ClassDef):
                functions = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"]
            if any(_takes_a_folder(one, readers) for one in functions) and not getattr(node, "name", "_").startswith(
                "_"
            ):
                names.add(f"{path.relative_to(package).as_posix()}:{getattr(node, 'name', '')}")
    return names - set(EXEMPT)


def _takes_a_folder(function: ast.FunctionDef, readers: frozenset[str]) -> bool:
    arguments = [*function.args.args, *function.args.kwonlyargs]
    optional = [one.arg for one in function.args.args[-len(function.args.defaults) or len(function.args.args) :]]
    names = ("out", "store", *(name for name in optional if name == "folder"))  # by default a folder of ours
    kinds = [ast.unparse(one.annotation) for one in arguments if one.arg in names and one.annotation]
    decorators = [ast.unparse(one) for one in function.decorator_list]
    return (
        any(word in kind for kind in kinds for word in ("Path", "StoreLike"))
        or any(name.startswith("show_options(") for name in decorators)
        or _hands_on(function, readers)
    )


def _readers(functions: Iterable[ast.FunctionDef]) -> frozenset[str]:
    """The functions that hand their options on to `Show`, and those that hand theirs on to one of these."""
    readers, functions = READERS, [one for one in functions if one.name != "read"]
    while more := {one.name for one in functions if one.name not in readers and _hands_on(one, readers)}:
        readers |= more
    return readers


def _hands_on(function: ast.FunctionDef, readers: frozenset[str]) -> bool:
    """Whether a function passes a mapping of options, its own or one that it was given, to a reader of them."""
    keywords = function.args.kwarg
    if keywords and keywords.annotation and "ShowOptions" in ast.unparse(keywords.annotation):
        return True
    options = {"options", keywords.arg if keywords else "options"}
    return any(
        isinstance(call, ast.Call)
        and ast.unparse(call.func) in readers
        and any(
            isinstance(value, ast.Name) and value.id in options
            for value in [*call.args, *(one.value for one in call.keywords if one.arg in (None, "options"))]
        )
        for call in ast.walk(function)
    )
