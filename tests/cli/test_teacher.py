"""`likewise teacher`: a run and a student in, advice out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from likewise import analysis
from likewise.cli.teacher import teacher
from likewise.errors import LikewiseError
from tests.analysis.helpers import run_folder
from tests.cli.conftest import invoke
from tests.helpers import sentence


def test_advice_is_printed_with_all_candidates(tmp_path: Path) -> None:
    run, matrix, answers = run_folder(tmp_path)
    found = analysis.pick_teacher("n0", matrix, answers=answers)
    text = invoke(teacher, str(run), "--student", "n0")
    assert text.startswith(f"{found}\n\n")
    assert len(text.removeprefix(f"{found}\n\n").splitlines()) == 1 + 11
    read = json.loads(invoke(teacher, str(run), "--student", "n0", "--json"))
    assert (read["teacher"], read["student"], read["held_out"]) == (found.teacher, "n0", None)
    assert [row["teacher"] for row in read["candidates"]] == list(found.candidates.index)


def test_families_and_outcomes_come_from_tables(tmp_path: Path) -> None:
    run, matrix, answers = run_folder(tmp_path / "run")
    kinds = {name: "CNN" if name in ("n0", "n11") else "ViT" for name in matrix.names}
    (tmp_path / "families.csv").write_text("network,family\n" + "".join(f"{a},{b}\n" for a, b in kinds.items()))
    outcomes = {"n1": 0.5, "n2": 0.25, "n11": 0.75}
    (tmp_path / "outcomes.csv").write_text("teacher,accuracy\n" + "".join(f"{a},{b}\n" for a, b in outcomes.items()))
    tables = ["--families", str(tmp_path / "families.csv"), "--outcomes", str(tmp_path / "outcomes.csv")]
    words = [word for name in outcomes for word in ("--teacher", name)]
    read = json.loads(invoke(teacher, str(run), "--student", "n0", *tables, *words, "--json"))
    found = analysis.pick_teacher(
        "n0", matrix, teachers=list(outcomes), families=kinds, answers=answers, outcomes=outcomes
    )
    assert read == found.record()
    assert read["candidates"][-1]["same_family"] or not read["candidates"][-1]["considered"]
    assert {row["choice"] for row in read["held_out"]["choices"]} == {"pick", "accuracy", "best", "random"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["n0", "--teacher", "n0"], "'n0' cannot be its own teacher. Leave it out of the teachers."),
        (["n99"], "no network named 'n99'. Did you mean 'n9'?"),
    ],
    ids=["itself", "unknown"],
)
def test_what_is_no_teacher_is_refused(words: list[str], message: str, tmp_path: Path) -> None:
    run, _, _ = run_folder(tmp_path, (2, 8))
    assert sentence(LikewiseError, invoke, teacher, str(run), "--student", *words) == message
