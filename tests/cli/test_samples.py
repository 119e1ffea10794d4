"""`likewise samples`: a table, JSON, and an exit code where a task became worse."""

from __future__ import annotations

import json
from pathlib import Path

from likewise.cli import main
from likewise.cli.samples import samples
from tests.cli.conftest import invoke
from tests.language.test_samples import write


def code(*words: str) -> int:
    """The exit code of the command."""
    try:
        main(["samples", *words])
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def test_two_evaluations_are_compared(tmp_path: Path) -> None:
    words = [str(write(tmp_path / name, "arc", {"acc": [1, 0, 1, value]})) for name, value in (("a", 1), ("b", 0))]
    assert "Nothing changed by more than chance." in invoke(samples, *words)
    assert json.loads(invoke(samples, *words, "--json"))[0]["changed"] == 1
    assert code(*words, "--fail") == 0


def test_a_task_that_became_worse_fails(tmp_path: Path, capsys) -> None:
    words = [str(write(tmp_path / name, "arc", {"acc": [value] * 20})) for name, value in (("a", 1), ("b", 0))]
    assert code(*words, "--fail") == 1
    assert code(*reversed(words), "--fail") == 0
    assert "More than chance: arc (acc)." in capsys.readouterr().out
