"""The command line as a whole: which commands there are, and how they fail."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from likewise import cli
from likewise.cli import commands
from likewise.errors import InputError
from tests.cli.conftest import run

INFINITE = """
from torch import nn

class Net(nn.Sequential):
    def forward(self, rows):
        return super().forward(rows) / 0

def build():
    return Net(nn.Flatten(), nn.Linear(64, 3), nn.Linear(3, 3))
"""


def test_a_command_is_a_file_with_a_function_of_its_name() -> None:
    assert {"compare", "measures", "train"} <= set(commands())
    for name, point in commands().items():
        loaded = point.load()  # a folder is a group of commands, of which each file is one
        assert loaded.__name__ == (f"likewise.cli.{name}" if isinstance(loaded, ModuleType) else name)
        assert loaded.__doc__
        assert Path(__file__).with_name(f"test_{name}.py").exists()


def test_without_words_the_commands_are_listed() -> None:
    done = run()
    assert "Usage: likewise [OPTIONS] COMMAND" in done.stdout
    assert [name for name in commands() if f" {name} " not in done.stdout] == []
    assert done.stderr == ""


def test_a_command_of_others_cannot_take_the_name_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = EntryPoint("compare", "theirs.module:compare", "likewise.commands")
    monkeypatch.setattr(cli, "entry_points", lambda group: [theirs])
    with pytest.raises(InputError) as error:
        commands()
    assert str(error.value) == (
        "the command name 'compare' of theirs.module:compare is taken by likewise.cli.compare:compare. "
        "Choose another name."
    )


def test_an_error_is_one_line_and_exit_code_one(tmp_path: Path) -> None:
    for name in ("one", "two"):
        np.save(tmp_path / f"{name}.npy", np.random.default_rng(0).normal(size=(20, 3)))
    done = run("compare", "one.npy", "two.npy", "--measure", "ckaa", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == "likewise: no measure named 'ckaa'. Did you mean 'cka'?\n"
    assert done.stdout == ""
    assert "Traceback" in run("compare", "one.npy", "x.npy", "--debug", cwd=tmp_path).stderr


def test_a_warning_is_one_line_without_the_code_it_arose_in(tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text(INFINITE)
    words = ("compare", "nets.py:build", "nets.py:build", "--data", "digits:test[:40]", "--layers", "1")
    done = run(*words, cwd=tmp_path)
    assert done.stderr.splitlines()[0] == (
        "likewise: 'build' answers with numbers that are not finite. Its rows are kept without outputs."
    )
    assert "Warning" not in done.stderr
    assert "UserWarning" in run(*words, "--debug", cwd=tmp_path).stderr
