"""Arrows point one way: a room imports only rooms on its left in the flow."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "likewise"
BASE = {
    "errors",
    "_optional",
    "_registry",
    "_compat",
    "_arrays",
    "_files",
    "_sealed",
    "_progress",
    "_geometric",
    "_minibatch",
    "engine",
}
ALLOWED = {
    "networks": BASE | {"networks", "data", "wordnet"},
    "wordnet": {"errors", "wordnet"},
    "data": BASE | {"data", "wordnet"},
    "views": BASE | {"views", "networks", "data", "wordnet"},
    "measures": BASE | {"measures", "views", "wordnet"},
    "attacks": BASE | {"attacks", "networks"},
    "classes": BASE | {"classes", "wordnet", "data", "networks", "views", "attacks", "pictures"},
}


def imported(path):
    """First rooms named in module-level imports; imports inside functions are free."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("likewise"):
            parts = node.module.split(".")
            yield from [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]


def test_rooms_import_only_from_their_left():
    wrong = []
    for room, allowed in ALLOWED.items():
        for path in (SOURCE / room).rglob("*.py"):
            wrong += [f"{path.relative_to(SOURCE)} imports {name}" for name in imported(path) if name not in allowed]
    assert wrong == []


def test_the_command_line_does_nothing_the_library_cannot():
    for path in (SOURCE / "cli").glob("*.py"):
        assert len(path.read_text().splitlines()) < 100, f"{path.name} is more than a thin command"
