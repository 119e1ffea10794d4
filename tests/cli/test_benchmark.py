"""`likewise benchmark`: a run from the command line, its plan, and a folder of one's own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
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
    assert lines[0].split() == (
        ["network", "group", "groundings", "networks", "done", "seconds", "left", "gpu_hours", "gigabytes"]
    )
    assert [line.split()[1] for line in lines[1:5]] == ["standard", "shortcut", "shortcut", "shortcut"]
    assert lines[-2].startswith("mlp: 20 networks, 0 of them done; ")
    assert " GPU hours at 10 TFLOP/s (assumed: --gpu-tflops); " in lines[-2]
    assert lines[-1] == "94 pairs by 2 measures. Nothing was trained."  # 8 · 7 / 2 + 12 · 11 / 2
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


def grouped(folder: Path) -> None:
    """Two groups of two networks each, and their manifest."""
    draw, networks = np.random.default_rng(0), {}
    for group in "ab":
        base = draw.normal(size=(30, 4))
        for number in range(2):
            np.save(folder / f"{group}{number}.npy", base + 0.1 * draw.normal(size=base.shape))
            networks[f"{group}{number}"] = {"representation": f"{group}{number}.npy", "group": group}
    (folder / "manifest.json").write_text(json.dumps({"networks": networks}))


def test_a_measure_of_ones_own_is_named_by_module_and_function(tmp_path: Path) -> None:
    grouped(tmp_path)
    (tmp_path / "mine.py").write_text("def near(x, y):\n    return -((x - y) ** 2).sum()\n\nimport_nothing = None\n")
    (tmp_path / "broken.py").write_text("import no_such_library\n")
    words = ("benchmark", "folder", ".", "--measures")
    done = run(*words, "mine:near", "cka", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [line.split()[2] for line in done.stdout.splitlines() if "auprc" in line] == ["near", "cka"]
    refused = [run(*words, name, cwd=tmp_path) for name in ("mine:nera", "yours:near")]
    assert [one.returncode for one in refused] == [1, 1]
    assert [one.stderr for one in refused] == [
        "likewise: 'mine' has no function 'nera'. Did you mean 'near'?\n",
        "likewise: there is no module 'yours' to take 'near' from. Run this in its folder, or install it.\n",
    ]
    assert "No module named 'no_such_library'" in run(*words, "broken:near", cwd=tmp_path).stderr


def test_a_folder_of_ones_own_is_evaluated(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    grouped(tmp_path)
    table = tmp_path / "table.csv"
    shown = printed(capsys, "benchmark", "folder", str(tmp_path), "--measures", "cka", "--out", str(table))
    assert shown.splitlines()[1].split() == ["family", "auprc", "cka", "1.0", "0.2", "1.0"]
    assert shown.splitlines()[2].split() == ["family", "conformity", "conform", "cka", "1.0", "1.0"]
    assert set(pd.read_csv(table)["measure"]) == {"cka"}
