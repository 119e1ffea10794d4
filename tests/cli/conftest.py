"""Commands run as a person runs them, or in this process where only their output counts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import typer
from typer.testing import CliRunner

BUILD = """
from torch import nn

def build():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 10))
"""
MAIN = (sys.executable, "-c", "from likewise.cli import main; main()")


def run(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """`likewise WORDS` in a process of its own."""
    return subprocess.run([*MAIN, *words], capture_output=True, text=True, cwd=cwd, check=False)


def invoke(command: Callable[..., Any], *words: str) -> str:
    """What one command prints; its errors are raised."""
    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def address(tmp_path: Path) -> str:
    torch.manual_seed(0)
    (tmp_path / "nets.py").write_text(BUILD)
    return f"{tmp_path / 'nets.py'}:build"
