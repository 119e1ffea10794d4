"""The names `likewise` gives out: a type checker sees them all, and learns what their calls give."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import torch

import likewise


def test_a_type_checker_sees_every_public_name() -> None:
    block = next(node for node in ast.parse(Path(likewise.__file__).read_text()).body if isinstance(node, ast.If))
    seen = {
        alias.name: f"likewise.{alias.name}" if node.module == "likewise" else node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == likewise._HOMES


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
