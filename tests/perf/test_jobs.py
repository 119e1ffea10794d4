"""Lines of code for a job: what the documentation says was counted and run."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from perf.jobs import JOBS, run, setting

from likewise._base.optional import prepare_torchvision
from tests.conftest import ROOT

KEPT = list(csv.DictReader((ROOT / "perf" / "results" / "jobs.csv").read_text().splitlines()))


def test_the_page_tells_the_lines_that_were_run() -> None:
    counted = {(row["job"], row["tool"]): row for row in KEPT}
    assert set(counted) == {(job, tool) for job, blocks in JOBS.items() for tool in blocks}
    page = (ROOT / "docs" / "other-tools.md").read_text()
    for (job, tool), row in counted.items():
        assert int(row["lines"]) == len(JOBS[job][tool].splitlines())
        line = re.search(rf"^\| {job} \|.*\|$", page, re.M)
        assert line is not None, job
        told = f"{row['lines']} lines" if tool == "likewise" else f"{tool} {row['release']}, {row['lines']} lines"
        assert told in line[0], (job, tool)
        assert row["failed"] == ("" if tool != "ckatorch" else "batch1 must be a 3D tensor")


@pytest.mark.parametrize("job", JOBS)
def test_our_lines_run(job: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if job == "names to a matrix":
        prepare_torchvision()
        pytest.importorskip("timm")
    monkeypatch.chdir(tmp_path)
    assert run(JOBS[job]["likewise"], setting())
