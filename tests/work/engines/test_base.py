"""Engines: any tasks, any executor, and the one task that ends its worker is named."""

import os
import signal
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from importlib.util import find_spec

import pytest

from likewise.errors import InputError, MissingDependencyError, WorkerError
from likewise.work.engines import Local, WorkerDied, engine_of
from tests.helpers import sentence as refusal


def cube(number):
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 5:
        os._exit(0)
    return number**3


@pytest.mark.parametrize("engine", [None, "processes:2", Local(1), Local(2), ThreadPoolExecutor(2)])
def test_every_engine_runs_any_tasks(engine) -> None:
    assert dict(engine_of(engine).run(abs, range(-20, 0))) == {-i: i for i in range(1, 21)}


def test_a_task_that_ends_its_worker_is_named_and_all_others_are_run() -> None:
    results = dict(engine_of("processes:2").run(cube, range(8)))
    died = WorkerDied("the process that computed it was killed, twice")
    assert results == {i: died if i in (3, 5) else i**3 for i in range(8)}


def test_several_threads_may_use_workers_at_once() -> None:
    with ThreadPoolExecutor(3) as threads:
        runs = threads.map(lambda start: dict(engine_of("processes:2").run(abs, range(start, 0))), (-9, -8, -7))
        assert [sum(results.values()) for results in runs] == [45, 36, 28]


@pytest.mark.parametrize("engine", [Local(1), Local(2), "processes:2"])
def test_an_error_in_a_task_ends_the_run(engine) -> None:
    with pytest.raises(TypeError, match="bad operand type"):
        list(engine_of(engine).run(abs, [1, "two", 3]))


def test_an_executor_that_lost_a_worker_is_said() -> None:
    with ProcessPoolExecutor(1) as pool, pytest.raises(WorkerError) as caught:
        list(engine_of(pool).run(cube, range(8)))
    assert str(caught.value) == (
        "the executor given as engine lost a worker and takes no more work (A child process terminated "
        "abruptly, the process pool is not usable anymore). Pass a new one, or "
        "engine='processes', which starts workers again; with a store, what was computed is kept."
    )


@pytest.mark.parametrize(
    ("engine", "sentence"),
    [
        ("spark", "no engine named 'spark'. There are dask, processes and ray."),
        (7, "7 is not an engine. Pass None, 'processes', 'dask', 'ray', or an executor."),
    ],
)
def test_what_is_no_engine_is_refused(engine, sentence) -> None:
    assert refusal(InputError, engine_of, engine) == sentence


@pytest.mark.skipif(find_spec("ray") is not None, reason="ray is installed")
def test_a_cluster_whose_library_is_missing_names_the_extra() -> None:
    assert refusal(MissingDependencyError, engine_of, "ray") == (
        "to run on Ray, ray is needed: pip install 'likewise[distributed]'."
    )
