"""The command line as a whole: which commands there are, and how they fail."""

from __future__ import annotations

import subprocess
import sys
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
    network = "nets.py:build,mean=0,std=1"
    words = ("compare", network, network, "--data", "digits:test[:40]", "--layers", "1")
    done = run(*words, cwd=tmp_path)
    assert done.stderr.splitlines()[0] == (
        "likewise: 'build' answers with numbers that are not finite. Its rows are kept without outputs."
    )
    assert "Warning" not in done.stderr
    assert "UserWarning" in run(*words, "--debug", cwd=tmp_path).stderr


def helps(points: dict[str, EntryPoint], words: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The words of every command, those of groups included."""
    found: list[tuple[str, ...]] = [words]
    for name, point in points.items():
        loaded = point.load()
        if isinstance(loaded, ModuleType):
            found += helps(cli._points(loaded.__name__, loaded.__path__), (*words, name))
        else:
            found.append((*words, name))
    return found


@pytest.mark.parametrize("words", helps(commands()), ids=" ".join)
def test_help_fits_80_columns_and_cuts_no_sentence(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as stopped:
        cli.main([*words, "--help"])
    assert stopped.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert [line for line in lines if line.endswith("...") and not line.startswith("Usage")] == []
    assert lines[0].startswith(" ".join(["Usage: likewise", *words]))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["compar"], "Error: No such command 'compar'. Did you mean 'compare'?"),
        (["mesures"], "Error: No such command 'mesures'. Did you mean 'measures'?"),
        (["benchmark", "rn"], "Error: No such command 'rn'. Did you mean 'run'?"),
    ],
)
def test_an_unknown_command_is_met_with_the_nearest_one(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(words)
    assert stopped.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1] == sentence


def test_the_package_runs_as_a_module_under_the_same_name() -> None:
    done = subprocess.run([sys.executable, "-m", "likewise", "measures", "ckaa"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "likewise: no measure named 'ckaa'. Did you mean 'cka'?\n")


@pytest.fixture
def arrays(tmp_path: Path) -> list[str]:
    """Two files of activations."""
    for name in ("one", "two"):
        np.save(tmp_path / f"{name}.npy", np.random.default_rng(0).normal(size=(20, 3)))
    return [str(tmp_path / "one.npy"), str(tmp_path / "two.npy")]


def test_a_folder_of_somebody_else_is_refused_before_anything_is_computed(
    arrays: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(tmp_path.iterdir())
    words = {
        "compare": arrays,
        "layerwise": ["none", "--data", "none"],
        "diff": ["none", "none", "--data", "none"],
        "classes": ["none"],
        "inspect": ["none", "--data", "none"],
        "attack": ["none", "--data", "none"],
        "transfer": ["none", "--data", "none"],
        "zeroshot": ["none", "--data", "none"],
    }
    for command, arguments in words.items():
        with pytest.raises(SystemExit) as end:
            cli.main([command, *arguments, "--out", str(tmp_path)])
        assert end.value.code == 1
        assert capsys.readouterr().err == (
            f"likewise: {tmp_path} holds files that likewise did not write. Name a new or an empty folder, as in "
            f"{tmp_path / 'likewise'}.\n"
        )
    assert sorted(tmp_path.iterdir()) == before


def test_results_are_there_whatever_goes_wrong_with_the_record_of_the_command(
    arrays: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["compare", *arrays, "--out", str(out)]
    for sentence in ("", f"likewise: cannot write {out / 'command.txt'}: Is a directory.\n"):
        with pytest.raises(SystemExit) as end:
            cli.main(words)
        assert not end.value.code
        assert capsys.readouterr().err == sentence
        assert (out / "command.txt").is_dir() or (out / "command.txt").read_text().startswith("likewise compare")
        assert (out / "scores.csv").is_file()
        (out / "command.txt").unlink(missing_ok=True) if not sentence else None
        (out / "command.txt").mkdir(exist_ok=True)


def test_progress_and_warnings_are_shown_as_asked(tmp_path: Path) -> None:
    """Lines on stderr with --progress plain, nothing with --quiet; results on stdout are the same."""
    for name in ("a", "b", "c"):
        np.save(tmp_path / f"{name}.npy", np.random.default_rng(ord(name)).normal(size=(12, 30)))
    words = ["compare", "a.npy", "b.npy", "c.npy", "-m", "svcca"]
    plain = run(*words, "--progress", "plain", cwd=tmp_path)
    quiet = run("--quiet", *words, cwd=tmp_path)
    assert (plain.returncode, quiet.returncode, quiet.stderr) == (0, 0, "")
    assert plain.stdout == quiet.stdout != ""
    assert "comparing: 0 of 3 after 0 s" in plain.stderr.splitlines()
    wrong = run(*words, "--progress", "loud", cwd=tmp_path)
    assert wrong.returncode == 1
    assert wrong.stderr == "likewise: --progress is 'loud'. Choose plain (lines), bar or none.\n"
