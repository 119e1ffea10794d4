"""Scripts, studies, examples and speed tests import names that exist: no test runs all of them."""

from __future__ import annotations

import ast
import importlib
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import ROOT

FILES = sorted(path for folder in ("scripts", "studies", "examples", "perf") for path in (ROOT / folder).glob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_name_that_is_imported_from_the_package_exists(path: Path) -> None:
    imports = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    missing = [
        f"{node.module}.{name.name}"
        for node in imports
        if node.module is not None and node.module.partition(".")[0] == "likewise"
        for name in node.names
        if not hasattr(importlib.import_module(node.module), name.name) and not find_spec(f"{node.module}.{name.name}")
    ]
    assert missing == []
