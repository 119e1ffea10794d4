"""`likewise ensemble`: the folder of a run in, members and their worth out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from likewise import analysis
from likewise.cli.ensemble import ensemble
from likewise.errors import InputError, LikewiseError
from tests.analysis.helpers import run_folder
from tests.cli.conftest import invoke
from tests.helpers import sentence


def test_the_pick_is_printed_with_its_evidence(tmp_path: Path) -> None:
    run, matrix, answers = run_folder(tmp_path)
    text = f"{analysis.pick_ensemble(matrix, answers, 3)}\n\n{analysis.gain_predictors(matrix, answers)}\n"
    assert invoke(ensemble, str(run), "--size", "3") == text
    other = analysis.pick_ensemble(matrix, answers, 3, seed=4)
    found = json.loads(invoke(ensemble, str(run), "--size", "3", "--seed", "4", "--json"))
    assert found["members"] == list(other.members)
    assert found["evidence"] == pytest.approx(dict(other.evidence))
    assert other.held_out is not None
    rows = {row["choice"]: row for row in found["held_out"]["choices"]}
    assert rows["random"]["regret"] == pytest.approx(other.held_out.regrets["random"].value)
    assert found["held_out"]["inputs"] == 200


def test_which_measure_predicts_the_gain_is_told(tmp_path: Path) -> None:
    run, matrix, answers = run_folder(tmp_path)
    predictors = analysis.gain_predictors(matrix, answers)
    found = json.loads(invoke(ensemble, str(run), "--size", "3", "--json"))["predictors"]
    assert found["verdict"] == predictors.verdict
    assert [row["measure"] for row in found["measures"]] == list(predictors.correlations)
    few, _, _ = run_folder(tmp_path / "few", (2, 1))
    reason = "3 networks have too few pairs to compare measures by. Give four or more."
    assert reason in invoke(ensemble, str(few), "--size", "2")
    assert json.loads(invoke(ensemble, str(few), "--size", "2", "--json"))["predictors"] == {"undefined": reason}


def test_the_gain_by_families_is_added(tmp_path: Path) -> None:
    run, _, _ = run_folder(tmp_path, (3, 3, 3))
    text = invoke(ensemble, str(run), "--size", "2", "--by-families")
    assert "error reduction by number of families; gain over random members; p by permuting families" in text
    assert text.count("random") >= 2
    rows = json.loads(invoke(ensemble, str(run), "--size", "3", "--by-families", "--json"))["by_families"]
    assert [(row["size"], row["families"]) for row in rows][:3] == [(2, "1"), (2, "2"), (2, "random")]
    assert rows[-1]["size"] == 3


def test_without_families_there_is_no_gain_by_them(tmp_path: Path) -> None:
    run, _, _ = run_folder(tmp_path, (6,))
    text = invoke(ensemble, str(run), "--size", "2", "--by-families")
    assert "\none family of 6 networks by sat" in text
    assert "error reduction by number of families" not in text
    assert json.loads(invoke(ensemble, str(run), "--size", "2", "--by-families", "--json"))["by_families"] == []


def test_a_size_that_cannot_be_and_a_folder_that_is_no_run_are_refused(tmp_path: Path) -> None:
    run, _, _ = run_folder(tmp_path)
    assert sentence(InputError, invoke, ensemble, str(run), "--size", "20") == (
        "12 networks have no choice of 20. Choose from 2 to 12."
    )
    gone = str(tmp_path / "gone")
    assert sentence(LikewiseError, invoke, ensemble, gone).startswith(f"there is no folder {gone}.")
