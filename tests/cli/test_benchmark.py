"""`likewise benchmark`: a run from the command line, its plan, and a folder of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from likewise.cli import main
from likewise.cli._words import spread
from tests.cli.conftest import run

RUN = ("benchmark", "run", "--domain", "vision", "--data", "digits", "--network", "mlp")


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What the command prints, in this process."""
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_a_plan_says_what_would_be_trained_and_leaves_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = printed(capsys, *RUN, "--grounding", "accuracy", "shortcut", "--measures", "cka", "rsa", "--plan")
    lines = shown.splitlines()
    assert [line.split()[0] for line in lines[:5]] == ["group", "standard", "shortcut", "shortcut", "shortcut"]
    assert lines[-1].startswith("20 networks, 0 of them done; ")
    assert lines[-1].endswith(" 94 pairs by 2 measures. Nothing was trained.")  # 8 · 7 / 2 + 12 · 11 / 2
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_a_folder_is_one_line_on_stderr() -> None:
    done = run(*RUN)
    assert done.returncode == 1
    assert done.stderr == (
        "likewise: a run needs a folder for its networks and results. Say which, as in --out runs/cora-gcn.\n"
    )


def test_names_go_on_after_measures_and_groundings() -> None:
    words = ["run", "--measures", "cka", "rsa", "--grounding", "labels", "shortcut", "--out", "x"]
    wanted = ["run", "--measures", "cka", "--measures", "rsa", "--grounding", "labels", "--grounding", "shortcut"]
    assert spread(words) == [*wanted, "--out", "x"]
