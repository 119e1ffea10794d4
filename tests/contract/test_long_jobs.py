"""Every long job is registered with the battery, and a seeded selection of its faults is survived."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

import likewise
from tests.contract.battery.job_registration import EXEMPT, long_jobs
from tests.contract.battery.jobs import BAD, JOBS, LOST_WORKER, disturb, run
from tests.contract.battery.jobs import reference as undisturbed

QUICK = [job for job in JOBS if job.name in ("extract", "train", "report", "benchmark folder")]
REGISTERED = {name for job in JOBS for name in job.covers}


def test_every_long_job_is_registered() -> None:
    package = Path(likewise.__file__).parent
    jobs = long_jobs(package)
    assert sorted(jobs - REGISTERED) == []
    assert sorted(REGISTERED - jobs) == []
    assert [name for name in sorted(REGISTERED | set(EXEMPT)) if not (package / name.partition(":")[0]).is_file()] == []


def test_a_long_job_that_is_not_registered_is_found(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "new.py").write_text("def polish(net, *, out: str | Path) -> None: ...\n")
    (tmp_path / "room" / "old.py").write_text("def shine(net, out: int) -> None: ...\ndef _hidden(out: Path): ...\n")
    (tmp_path / "room" / "shown.py").write_text(
        "def look(net, **options): return _settings('look', options)\n"
        "def _settings(verb, options): return Show.read(verb, options)\n"
        "def watch(net, **show: Unpack[ShowOptions]): ...\n"
        "@show_options()\ndef gaze(net, **show): ...\n"
        "def draw(net, **options): return net.plot(**options)\n"
    )
    names = {"new.py:polish", "shown.py:look", "shown.py:watch", "shown.py:gaze"}
    assert long_jobs(tmp_path) - REGISTERED == {f"room/{name}" for name in names}


@pytest.mark.parametrize("job", QUICK, ids=lambda job: job.name)
def test_faults_at_writes_lose_nothing(job: object, capsys: pytest.CaptureFixture[str]) -> None:
    counts = run(seed=1, volume=8, jobs=[job])  # type: ignore[list-item]
    assert {outcome: count for outcome, count in counts.items() if outcome in BAD} == {}, capsys.readouterr().out
    assert sum(counts.values()) >= 8


def test_a_killed_worker_changes_no_result() -> None:
    job = next(job for job in JOBS if job.name == "compare on a store")
    assert disturb(job, LOST_WORKER, 0, random.Random(0)) == ("went on without", "")


def test_the_battery_sees_a_job_that_loses_or_changes_files(tmp_path: Path) -> None:
    def careless(out: Path) -> None:
        out.mkdir(exist_ok=True)
        with (out / "a.txt").open("a") as file:
            file.write("one\n")

    job = replace(JOBS[0], name="careless", run=careless)
    assert undisturbed(job).writes == 3
    assert disturb(job, "full", 3, random.Random(0))[0] == "foreign"
    assert disturb(job, "kill", 3, random.Random(0))[0] == "killed"
    assert disturb(job, "two drivers", 1, random.Random(0))[0] == "wrong"
