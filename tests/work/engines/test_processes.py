"""Worker processes: one that is lost costs nothing, an interrupt leaves nobody behind."""

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

import likewise
from likewise import measures
from likewise.errors import FailedMeasureWarning, InputError, WorkerError
from likewise.work.engines import engine_of, processes
from likewise.work.engines.base import WorkerDied
from likewise.work.store import Store
from tests.helpers import sentence

PATIENCE = 1800  # seconds, on a busy machine
RNG = np.random.default_rng(0)
VIEWS = {name: RNG.normal(size=(30, 4)) for name in "abcd"}
VIEWS["c"][0, 0] = 7.0  # the one that functions below stumble over


def corner(x, y):
    return float(x[0, 0] + y[0, 0])


def deadly(x, y):
    if x[0, 0] == 7.0 and y[0, 0] == VIEWS["a"][0, 0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return corner(x, y)


def killed_once(x, y, marker=""):
    path = Path(marker)
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return corner(x, y)


def expected(function=corner):
    return np.array([[function(x, y) for y in VIEWS.values()] for x in VIEWS.values()])


def test_a_pair_that_kills_its_process_costs_that_pair_alone(tmp_path) -> None:
    with pytest.warns(FailedMeasureWarning) as caught:
        found = likewise.compare(VIEWS, [deadly, "cka"], engine="processes:2", store=tmp_path / "s")
    reason = "deadly failed on 'c' and 'a': the process that computed it was killed, twice"
    assert str(caught[0].message) == (
        f"deadly gave no score for 1 of 16 pairs, and the run went on. The first reason: {reason}"
    )
    assert found["deadly"].reasons == {("c", "a"): reason}
    values = expected()
    values[2, 0] = np.nan
    assert np.array_equal(found["deadly"].values, values, equal_nan=True)
    assert np.array_equal(found["cka"].values, likewise.compare(VIEWS, "cka").values)
    with Store(tmp_path / "s") as store:
        assert len(store) == 15 + 6


def test_a_measure_that_always_ends_its_process_is_given_up(tmp_path) -> None:
    def doomed(x, y):
        with (tmp_path / "tries").open("a") as tries:
            tries.write("x")
        os._exit(1)

    views = {str(i): RNG.normal(size=(20, 3)) for i in range(8)}
    with pytest.warns(FailedMeasureWarning):
        found = likewise.compare(views, [doomed, "cka"], engine="processes:1")
    assert np.isnan(found["doomed"].values).all()
    assert found["doomed"].reasons["7", "6"] == (
        "doomed failed on '7' and '6': it was not tried, since the measure ended its process on all pairs before"
    )
    assert len((tmp_path / "tries").read_text()) < 30  # of 128, if each pair were tried twice
    assert np.array_equal(found["cka"].values, likewise.compare(views, "cka").values)


def test_a_worker_killed_from_outside_costs_nothing(tmp_path) -> None:
    marker = str(tmp_path / "killed")
    mine = measures.register(killed_once, name="mine").bind(marker=marker)
    measures.unregister("mine")
    found = likewise.compare(VIEWS, mine, engine="processes:2")
    assert Path(marker).exists()
    assert np.array_equal(found.values, expected())


@pytest.mark.parametrize("name", ["processes:0", "processes:", "processes:-1", "processes:two"])
def test_a_number_of_processes_that_is_none_is_refused(name) -> None:
    assert sentence(InputError, likewise.compare, VIEWS, "cka", engine=name) == (
        f"engine={name!r} does not say how many processes, at least 1. Write it like 'processes:2', "
        "or 'processes' for one per core."
    )


def visible(task):
    """The GPUs that a process sees: one that dies at task 0, or both, each of which waits for the other to begin."""
    number, notes = task
    if notes is None:
        if number == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return os.environ["CUDA_VISIBLE_DEVICES"]
    (notes / str(os.getpid())).touch()
    end = time.monotonic() + PATIENCE
    while len(list(notes.iterdir())) < 2 and time.monotonic() < end:
        time.sleep(0.01)
    return os.environ["CUDA_VISIBLE_DEVICES"]


@pytest.mark.parametrize("size", [1, 2])
def test_every_process_sees_gpus_of_its_own_also_after_one_was_lost(size, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2 * size)  # as on a machine that has them
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", ",".join(f"GPU-{i}" for i in range(2 * size)))
    engine = engine_of("processes", options={"num_gpus": size})
    assert engine.workers == 2
    shares = [",".join(f"GPU-{i}" for i in range(start, start + size)) for start in (0, size)]
    for name in ("before", "after"):
        notes = tmp_path / name
        notes.mkdir()
        seen = [gpus for _, gpus in engine.run(visible, [(i, notes) for i in range(6)])]
        assert len(seen) == 6
        assert sorted(set(seen)) == shares
        [(_, died)] = engine.run(visible, [(0, None)])
        assert isinstance(died, WorkerDied)


def test_gpus_that_are_not_there_are_refused(monkeypatch) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 3)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert engine_of("processes:2", options={"num_gpus": 1}).workers == 2
    assert engine_of("processes", options={"num_gpus": 2}).workers == 1
    assert sentence(InputError, engine_of, "processes:4", options={"num_gpus": 1}) == (
        "4 processes with 1 GPUs each need 4, and there are 3 here. Ask for fewer, or leave num_gpus out."
    )
    assert sentence(InputError, engine_of, "processes", options={"num_gpus": 0.5}) == (
        "num_gpus is 0.5. Give how many GPUs every process has, at least 1."
    )


SLOW = """
import signal

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by what runs in the background
import sys, time, numpy as np, likewise

def slow(x, y):
    time.sleep(0.1)
    return 1.0

if __name__ == "__main__":
    views = {str(i): np.random.default_rng(i).normal(size=(20, 3)) for i in range(60)}
    likewise.compare(views, slow, engine="processes:2", store=sys.argv[1], progress=False)
"""


def _started(tmp_path):
    """A slow run in a process of its own, as soon as scores come; and its workers."""
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, str(script), str(tmp_path / "s")],
            stderr=log,
            start_new_session=True,  # a Ctrl-C reaches the whole group, and no one else
        )
    deadline = time.monotonic() + PATIENCE
    while _stored(tmp_path) < 4 and time.monotonic() < deadline:
        assert process.poll() is None, (tmp_path / "log").read_text()
        time.sleep(0.05)
    return process, psutil.Process(process.pid).children(recursive=True)


def _stored(tmp_path):
    if not (tmp_path / "s" / "scores.sqlite").exists():
        return 0
    database = sqlite3.connect(tmp_path / "s" / "scores.sqlite", timeout=30)
    try:
        return database.execute("SELECT count(*) FROM scores").fetchone()[0]
    except sqlite3.OperationalError:  # the table is not there yet
        return 0
    finally:
        database.close()


def test_a_ctrl_c_ends_the_run_and_its_workers_at_once(tmp_path) -> None:
    process, children = _started(tmp_path)
    assert len(children) >= 2
    kept = _stored(tmp_path)
    os.killpg(process.pid, signal.SIGINT)
    process.wait(timeout=PATIENCE)
    assert 0 < kept <= _stored(tmp_path) < 1800  # scores were kept as they came; half of 180 s of work is left at least
    _, left = psutil.wait_procs(children, timeout=PATIENCE)
    assert [child.cmdline() for child in left] == []
    log = (tmp_path / "log").read_text()
    assert log.count("KeyboardInterrupt") == 1  # of the run, not of its workers


def test_a_killed_run_leaves_no_workers_behind(tmp_path) -> None:
    process, children = _started(tmp_path)
    process.kill()
    process.wait()
    _, left = psutil.wait_procs(children, timeout=PATIENCE)
    assert [child.cmdline() for child in left] == []


def test_a_script_needs_no_guard_and_later_calls_find_the_workers_of_earlier_ones(tmp_path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import os, numpy as np, likewise
        from likewise.work.engines import engine_of
        views = {str(i): np.random.default_rng(i).normal(size=(20, 3)) for i in range(3)}
        def mine(x, y):
            return float(os.getpid())
        first, second = (likewise.compare(views, mine, engine="processes:1", progress=False) for _ in range(2))
        print(len({os.getpid(), *first.values.flat, *second.values.flat}))
        """)
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("2\n", "", 0)


def test_workers_that_cannot_start_are_said(monkeypatch) -> None:
    monkeypatch.setattr(processes, "_begin", lambda parent: os._exit(1))
    with pytest.raises(WorkerError) as caught:
        list(engine_of("processes:3").run(abs, [1]))
    assert str(caught.value).startswith("worker processes cannot be started: ")
    assert str(caught.value).endswith(". Leave the engine out.")


def test_a_worker_that_is_killed_while_it_starts_costs_a_second_start(monkeypatch, tmp_path) -> None:
    first = tmp_path / "first"

    def begin(parent: int) -> None:
        if not first.exists():
            first.touch()
            os._exit(1)

    monkeypatch.setattr(processes, "_begin", begin)
    assert list(engine_of("processes:1").run(abs, [-1])) == [(-1, 1)]
    assert first.exists()
