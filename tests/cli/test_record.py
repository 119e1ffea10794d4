"""`likewise record` and `diff` with a baseline: files, sentences, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from likewise.cli.diff import diff
from likewise.cli.record import record
from likewise.errors import InputError
from tests.cli.conftest import invoke

NETWORK, DATA = "zoo:mlp,size=8,channels=1", ("--data", "digits:test[:40]")


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "old.likewise"
    printed = invoke(record, NETWORK, *DATA, "--out", str(path))
    assert printed.startswith(f"{path}: ")
    assert printed.endswith(" kB\n")
    return str(path)


def test_a_recording_is_compared_with_a_network(file: str) -> None:
    assert json.loads(invoke(diff, file, NETWORK, *DATA, "--json"))["verdict"] == "identical"


def test_a_baseline_that_is_not_there_is_written_and_the_next_run_compares(tmp_path: Path) -> None:
    baseline = str(tmp_path / "base.likewise")
    printed = invoke(diff, baseline, NETWORK, *DATA)
    assert printed == (
        f"{baseline} was not there: {NETWORK} is recorded as the baseline. Later runs are compared with it.\n"
    )
    assert ": identical" in invoke(diff, baseline, NETWORK, *DATA)
    with pytest.raises((typer.Exit, SystemExit, AssertionError)):
        invoke(diff, baseline, f"{NETWORK},seed=5", *DATA, "--fail-under", "cka-debiased=0.999")


def test_another_probe_and_a_file_of_somebody_else_are_refused(file: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Record both on one probe"):
        invoke(diff, file, NETWORK, "--data", "digits:test[:41]")
    other = tmp_path / "mine.likewise"
    other.write_text("notes")
    with pytest.raises(InputError, match="is no whole recording"):
        invoke(record, NETWORK, *DATA, "--out", str(other))
    assert other.read_text() == "notes"
