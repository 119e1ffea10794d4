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
from likewise.errors import FailedMeasureWarning, InputError
from likewise.work.store import Store

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


def test_a_worker_killed_from_outside_costs_nothing(tmp_path) -> None:
    marker = str(tmp_path / "killed")
    mine = measures.register(killed_once, name="mine").bind(marker=marker)
    measures.unregister("mine")
    found = likewise.compare(VIEWS, mine, engine="processes:2")
    assert Path(marker).exists()
    assert np.array_equal(found.values, expected())


@pytest.mark.parametrize("name", ["processes:0", "processes:", "processes:-1", "processes:two"])
def test_a_number_of_processes_that_is_none_is_refused(name) -> None:
    with pytest.raises(InputError) as caught:
        likewise.compare(VIEWS, "cka", engine=name)
    assert str(caught.value) == (
        f"engine={name!r} does not say how many processes, at least 1. Write it like 'processes:2', "
        "or 'processes' for one per core."
    )


SLOW = """
import signal

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by what runs in the background
import sys, time, numpy as np, likewise

def slow(x, y):
    time.sleep(0.1)
    return 1.0

if __name__ == "__main__":
    views = {str(i): np.random.default_rng(i).normal(size=(20, 3)) for i in range(30)}
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
    deadline = time.monotonic() + 60
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
    start = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    process.wait(timeout=60)
    seconds = time.monotonic() - start
    assert seconds < 5  # less than one where the machine is not busy; 45 s of work are left
    assert 0 < kept <= _stored(tmp_path) < 900  # scores were kept as they came
    _, left = psutil.wait_procs(children, timeout=20)
    assert [child.cmdline() for child in left] == []
    log = (tmp_path / "log").read_text()
    assert log.count("KeyboardInterrupt") == 1  # of the run, not of its workers


def test_a_killed_run_leaves_no_workers_behind(tmp_path) -> None:
    process, children = _started(tmp_path)
    process.kill()
    process.wait()
    _, left = psutil.wait_procs(children, timeout=20)
    assert [child.cmdline() for child in left] == []


def test_a_script_without_a_guard_is_told_about_it(tmp_path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import numpy as np, likewise
        views = {str(i): np.random.default_rng(i).normal(size=(20, 3)) for i in range(3)}
        def mine(x, y):
            return 1.0
        likewise.compare(views, mine, engine="processes:1", progress=False)
        """)
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == (
        "likewise.errors.WorkerError: the worker processes ended as they started. In a script, put the "
        "call under `if __name__ == '__main__':`, since workers import the script; or leave the engine "
        "out."
    )


COPIES = """
import threading
from multiprocessing.forkserver import _forkserver
import numpy as np, torch, likewise

def mine(x, y):
    return 1.0

if __name__ == "__main__":
    torch.set_num_threads(2)
    torch.randn(900, 900) @ torch.randn(900, 900)  # wakes threads that copies do not have
    np.ones((900, 900)) @ np.ones((900, 900))
    views = {str(i): np.random.default_rng(i).normal(size=(200, 30)) for i in range(6)}
    names = ["cka", "pwcca", "rsa", "jaccard", "procrustes", "soft-correlation"]
    alone = likewise.compare(views, names, progress=False)
    found = likewise.compare(views, names, engine="processes:2", progress=False)
    print(all(np.array_equal(found[name].values, alone[name].values) for name in names))
    print(_forkserver._forkserver_pid is None)
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    likewise.compare(views, "cka", engine="processes:2", progress=False)
    print(_forkserver._forkserver_pid is None)
    over.set()
    other.join()
    likewise.compare(views, ["cka", mine], engine="processes:2", progress=False)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="copies of a process are made on Linux alone")
def test_measures_of_ours_run_in_copies_unless_another_thread_is_alive(tmp_path) -> None:
    script = tmp_path / "copies.py"
    script.write_text(COPIES)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.split() == ["True", "True", "False"], done.stderr
    assert done.returncode == 0


ENDLESS = """
import os, time
from likewise.work.engines import engine_of

def sleep(seconds):
    os.write(1, b"started\\n")  # in one piece: both write at once
    time.sleep(seconds)

engine = engine_of("processes:2")
engine.prepare(True)
list(engine.run(sleep, [60, 60]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="copies of a process are made on Linux alone")
def test_copies_end_when_the_process_they_are_of_is_killed(tmp_path) -> None:
    script = tmp_path / "endless.py"
    script.write_text(ENDLESS)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert [process.stdout.readline().strip() for _ in range(2)] == ["started", "started"]
        workers = psutil.Process(process.pid).children()
        assert len(workers) == 2
        process.kill()
    _, alive = psutil.wait_procs(workers, timeout=5)
    assert alive == []
