"""Engines: a failure costs one pair, a lost worker nothing, an interrupt leaves nobody behind."""

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import psutil
import pytest

import likewise
from likewise import measures
from likewise.errors import FailedMeasureWarning, InputError, MeasureError, WorkerError
from likewise.measures import transport
from likewise.work.engines import Local, Lost, engine_of
from likewise.work.store import Store

RNG = np.random.default_rng(0)
VIEWS = {name: RNG.normal(size=(30, 4)) for name in "abcd"}
VIEWS["c"][0, 0] = 7.0  # the one that functions below stumble over
ENGINES = [None, "processes:2"]


def corner(x, y):
    return float(x[0, 0] + y[0, 0])


def raising(x, y):
    if 7.0 in (x[0, 0], y[0, 0]):
        raise LookupError("no seven")
    return corner(x, y)


def wordy(x, y):
    return "0.5" if 7.0 in (x[0, 0], y[0, 0]) else corner(x, y)


def deadly(x, y):
    if x[0, 0] == 7.0 and y[0, 0] == VIEWS["a"][0, 0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return corner(x, y)


def without_memory(x, y):
    raise MemoryError("no room at all")


def killed_once(x, y, marker=""):
    path = Path(marker)
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return corner(x, y)


@measures.register(name="needs-many", rows=31)
def needs_many(x, y):
    return 1.0


measures.unregister("needs-many")


def expected(function=corner):
    return np.array([[function(x, y) for y in VIEWS.values()] for x in VIEWS.values()])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (raising, "raising failed on 'a' and 'c': LookupError: 'no seven'"),
        (wordy, "wordy gave '0.5' for 'a' and 'c'. A measure gives one number."),
    ],
)
def test_a_pair_that_fails_is_undefined_and_the_run_goes_on(tmp_path, engine, function, reason):
    reason = reason.replace("'no seven'", "no seven")
    with pytest.warns(FailedMeasureWarning) as caught:
        found = likewise.compare(VIEWS, [function, "cka"], engine=engine, store=tmp_path / "s")
    failed = found[function.__name__]
    assert failed.reasons["a", "c"] == reason
    assert str(caught[0].message) == (
        f"{function.__name__} gave no score for 7 of 16 pairs, and the run went on. The first reason: "
        f"{next(iter(failed.reasons.values()))}"
    )
    with_c = np.zeros((4, 4), dtype=bool)
    with_c[2] = with_c[:, 2] = True
    assert np.array_equal(np.isnan(failed.values), with_c)
    assert np.array_equal(failed.values[~with_c], expected()[~with_c])
    assert np.array_equal(found["cka"].values, likewise.compare(VIEWS, "cka").values)
    with Store(tmp_path / "s") as store:
        assert len(store) == 9 + 6  # what failed is not kept: the cause may be gone the next time


def test_a_score_that_failed_is_tried_again(tmp_path):
    def mine(x, y):
        if (tmp_path / "broken").exists():
            raise RuntimeError("not yet")
        return corner(x, y)

    (tmp_path / "broken").touch()
    with pytest.warns(FailedMeasureWarning):
        first = likewise.compare(VIEWS, mine, store=tmp_path / "s")
    assert np.isnan(first.values).all()
    (tmp_path / "broken").unlink()
    again = likewise.compare(VIEWS, mine, store=tmp_path / "s")
    assert np.array_equal(again.values, expected())


@pytest.mark.parametrize("store", [False, True])
def test_a_single_comparison_raises_our_error_with_the_cause(tmp_path, store):
    place = tmp_path / "s" if store else None
    with pytest.raises(MeasureError) as caught:
        likewise.compare(VIEWS["a"], VIEWS["c"], raising, store=place)
    assert str(caught.value) == "raising failed on 'x' and 'y': LookupError: no seven"
    assert isinstance(caught.value.__cause__, LookupError)
    with pytest.raises(MeasureError) as caught:
        likewise.compare(VIEWS["a"], VIEWS["c"], lambda x, y: [1, 2], store=place)
    assert str(caught.value) == "<lambda> gave [1, 2] for 'x' and 'y'. A measure gives one number."
    if store:
        with Store(place) as kept:
            assert len(kept) == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_a_lack_of_memory_is_not_taken_for_an_undefined_pair(engine):
    with pytest.raises(MemoryError, match="no room at all"):
        likewise.compare(VIEWS, without_memory, engine=engine)


def test_an_interrupt_inside_a_measure_ends_the_run():
    def interrupted(x, y):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        likewise.compare(VIEWS, interrupted)


def test_a_pair_that_kills_its_process_costs_that_pair_alone(tmp_path):
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


def test_a_worker_killed_from_outside_costs_nothing(tmp_path):
    marker = str(tmp_path / "killed")
    mine = measures.register(killed_once, name="mine").bind(marker=marker)
    measures.unregister("mine")
    found = likewise.compare(VIEWS, mine, engine="processes:2")
    assert Path(marker).exists()
    assert np.array_equal(found.values, expected())


def test_functions_of_two_arrays_run_in_other_processes():
    factor = 2.0
    found = likewise.compare(VIEWS, [corner, lambda x, y: factor * corner(x, y)], engine="processes:2")
    assert np.array_equal(found["corner"].values, expected())
    assert np.array_equal(found["<lambda>"].values, 2 * expected())


def test_facts_of_a_registered_measure_hold_in_other_processes():
    here, there = (likewise.compare(VIEWS, needs_many, engine=engine) for engine in ENGINES)
    assert here.reasons["a", "b"].startswith("needs-many needs at least 31 rows, got 30.")
    assert there.reasons == here.reasons


def test_what_cannot_be_sent_is_said(monkeypatch):
    monkeypatch.setattr(transport, "find_spec", lambda name: None)  # as without cloudpickle
    with pytest.raises(InputError) as caught:
        likewise.compare(VIEWS, lambda x, y: 1.0, engine="processes:2")
    sentence = str(caught.value)
    assert sentence.startswith("<lambda> cannot be sent to other processes: ")
    assert sentence.endswith(". Define it by `def` at the top of a module, or leave the engine out.")
    found = likewise.compare(VIEWS, corner, engine="processes:2")
    assert np.array_equal(found.values, expected())


@pytest.mark.parametrize("name", ["processes:0", "processes:", "processes:-1", "processes:two"])
def test_a_number_of_processes_that_is_none_is_refused(name):
    with pytest.raises(InputError) as caught:
        likewise.compare(VIEWS, "cka", engine=name)
    assert str(caught.value) == (
        f"engine={name!r} does not say how many processes, at least 1. Write it like 'processes:2', "
        "or 'processes' for one per core."
    )


def test_an_executor_that_lost_a_worker_is_said():
    with ProcessPoolExecutor(1) as pool, pytest.raises(WorkerError) as caught:
        likewise.compare(VIEWS, deadly, engine=pool)
    assert str(caught.value) == (
        "the executor given as engine lost a worker and takes no more work (A child process terminated "
        "abruptly, the process pool is not usable anymore). Pass a new one, or "
        "engine='processes', which starts workers again; with a store, what was computed is kept."
    )


def cube(number):
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number**3


def test_an_engine_runs_any_tasks_and_names_the_one_that_was_lost():
    results = dict(engine_of("processes:2").run(cube, range(8)))
    assert results.pop(3) == Lost("the process that computed it was killed, twice")
    assert results == {i: i**3 for i in (0, 1, 2, 4, 5, 6, 7)}
    assert dict(Local(2).run(abs, range(-20, 0))) == {-i: i for i in range(1, 21)}


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


def test_a_ctrl_c_ends_the_run_and_its_workers_at_once(tmp_path):
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


def test_a_killed_run_leaves_no_workers_behind(tmp_path):
    process, children = _started(tmp_path)
    process.kill()
    process.wait()
    _, left = psutil.wait_procs(children, timeout=20)
    assert [child.cmdline() for child in left] == []


def test_a_script_without_a_guard_is_told_about_it(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import numpy as np, likewise
        views = {str(i): np.random.default_rng(i).normal(size=(20, 3)) for i in range(3)}
        likewise.compare(views, "cka", engine="processes:1", progress=False)
        """)
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == (
        "likewise.errors.WorkerError: the worker processes ended as they started. In a script, put the "
        "call under `if __name__ == '__main__':`, since workers import the script; or leave the engine "
        "out."
    )
