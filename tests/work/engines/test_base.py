"""Engines: any tasks, any executor, and the one task that ends its worker is named."""

import os
import signal
import socket
import threading
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from importlib.util import find_spec

import pytest

from likewise.errors import InputError, MissingDependencyError, WorkerError
from likewise.work.engines import Local, Remote, WorkerDied, engine_of
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


def test_workers_that_are_apart_lose_one_task_each_and_others_need_not_wait() -> None:
    sent: list[int] = []

    def submit(call, function, task):
        sent.append(task)
        future: Future[object] = Future()
        if task == 2 or sent.count(1) == 1 == task:
            future.set_exception(BrokenExecutor("lost"))
        else:
            future.set_result(call(function, task))
        return future

    results = dict(Remote(submit, 2, apart=True).run(abs, range(5)))
    assert results == {0: 0, 1: 1, 2: WorkerDied("the process that computed it was killed, twice"), 3: 3, 4: 4}
    assert sorted(sent) == [0, 1, 1, 2, 2, 3, 4]


class _Unsendable:
    """An object that refuses to be pickled."""

    def __reduce__(self):
        raise RuntimeError("it stays here")

    def method(self, number):
        return number


class DemandingError(Exception):
    """An error that cannot be built again from its message."""

    def __init__(self, first, second) -> None:
        super().__init__(f"{first} and {second}")


def demand(number):
    raise DemandingError(number, "more")


def test_an_error_that_cannot_travel_is_told() -> None:
    assert refusal(WorkerError, list, engine_of("processes:2").run(demand, [1])) == (
        "a task failed: DemandingError: 1 and more."
    )


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
        ("spark", "no engine named 'spark'. There are dask, processes, ray and slurm."),
        (7, "7 is not an engine. Pass None, 'processes', 'dask', 'ray', 'slurm', or an executor."),
    ],
)
def test_what_is_no_engine_is_refused(engine, sentence) -> None:
    assert refusal(InputError, engine_of, engine) == sentence


def test_options_that_an_engine_does_not_have_are_refused() -> None:
    assert engine_of("processes", workers=3).workers == 3
    assert engine_of("processes", options="workers=2").workers == 2
    assert refusal(InputError, engine_of, "processes", options={"num_cpus": 1}) == (
        "engine 'processes' has no option 'num_cpus'. It takes workers and num_gpus."
    )
    assert refusal(InputError, engine_of, "processes", options="num_gpus") == (
        "engine_options is 'num_gpus', in which 'num_gpus' is no option. Write name=value,name=value."
    )
    assert refusal(InputError, engine_of, "processes", options=[1]) == (
        "engine_options is [1]. Give options by name, as in {'num_gpus': 1}."
    )
    assert refusal(InputError, engine_of, None, workers=2) == (
        "workers belongs to an engine by name, such as 'ray', and the engine is None. Leave it out."
    )
    assert refusal(InputError, engine_of, "processes", workers=0) == "workers is 0. Give at least 1."
    assert refusal(InputError, engine_of, "processes", workers=10_001) == "workers is 10001. Give at most 10,000."
    assert refusal(InputError, engine_of, "processes:99999999") == "workers is 99999999. Give at most 10,000."


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda lock: lock, "cannot pickle '_thread.lock' object"),
        (_Unsendable().method, "it stays here"),
    ],
)
def test_what_cannot_be_sent_to_workers_is_said(function, reason) -> None:
    task = threading.Lock() if "lock" in reason else 1
    said = refusal(WorkerError, list, engine_of("processes:1").run(function, [task]))
    assert said.startswith("a task could not be run by the engine: ")
    assert said.endswith(
        ". Workers need what is installed here, and what they are sent may hold no open files, locks or the like."
    )
    assert dict(engine_of("processes:1").run(abs, [-1])) == {-1: 1}  # the next one is


def test_a_submit_that_fails_is_said() -> None:
    def submit(*task):
        raise OSError("connection lost")

    assert refusal(WorkerError, list, Remote(submit, 1).run(abs, [1])) == (
        "a task could not be run by the engine: OSError: connection lost. Workers need what is installed here, and "
        "what they are sent may hold no open files, locks or the like."
    )


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        (
            "slurm:nosuch",
            None,
            "submitit cannot run jobs as 'nosuch': AutoExecutor doesn't know any executor named nosuch. Run this where "
            "sbatch runs, with options that submitit has, such as slurm_partition; 'slurm:local' needs no Slurm.",
        ),
        (
            "slurm:local",
            {"timeout_min": "long"},
            "submitit cannot run jobs as 'local': Parameter \"timeout_min\" expected type <class 'int'> (but value: "
            '"long"). Run this where sbatch runs, with options that submitit has, such as slurm_partition; '
            "'slurm:local' needs no Slurm.",
        ),
    ],
)
def test_what_submitit_cannot_run_is_said_and_leaves_no_files(name, options, sentence, tmp_path, monkeypatch) -> None:
    pytest.importorskip("submitit", reason="submitit is not installed: pip install 'likewise[slurm]'")
    monkeypatch.chdir(tmp_path)
    assert refusal(InputError, engine_of, name, options=options) == sentence
    assert list(tmp_path.iterdir()) == []


def test_an_address_where_no_head_listens_is_refused_at_once() -> None:
    pytest.importorskip("ray", reason="ray is not installed: pip install 'likewise[ray]'")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert refusal(WorkerError, engine_of, f"ray:{address}") == (
            f"the Ray cluster at {address} cannot be reached: [Errno 111] Connection refused. Write it like "
            "'ray:10.0.0.1:6379', where a head runs, or 'ray' for one on this machine."
        )


@pytest.mark.skipif(find_spec("ray") is not None, reason="ray is installed")
def test_a_cluster_whose_library_is_missing_names_the_extra() -> None:
    assert refusal(MissingDependencyError, engine_of, "ray") == (
        "to run on Ray, ray is needed: pip install 'likewise[ray]'."
    )
