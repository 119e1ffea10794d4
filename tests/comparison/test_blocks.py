"""Blocks of pairs for other processes: every score once, none of them large."""

import threading
import time
from concurrent.futures import Future

import numpy as np
import pytest
import torch
from torch import nn

import likewise
from likewise import measures
from likewise.comparison.blocks import Blocks
from likewise.comparison.schedule import Job
from likewise.errors import InputError
from likewise.measures.registry import select
from likewise.views import Activations

RNG = np.random.default_rng(0)


def blocks_of(tmp_path, names, m, left_out=()):
    views = [Activations(RNG.normal(size=(40, 5)), name=str(i)) for i in range(m)]
    job = Job([view.name for view in views], views, select(names))
    for item in left_out:
        job.todo[item] = False
    return job.todo, Blocks(job.todo, views, job.measures, workers=2, limit=10**9, folder=tmp_path)


@pytest.mark.parametrize("m", [1, 2, 3, 9, 14])
@pytest.mark.parametrize(
    "names", [["cka"], ["rsa", "distance-correlation"], ["pwcca", "rsa", "cka", "hard-correlation"]]
)
def test_every_score_is_in_one_block(tmp_path, names, m) -> None:
    left_out = [(0, 0, 1)] if m > 2 else []
    todo, blocks = blocks_of(tmp_path, names, m, left_out)
    blocks = list(blocks)
    items = [item for block in blocks for item in block.items]
    assert len(items) == len(set(items))
    assert set(items) == {tuple(map(int, item)) for item in np.argwhere(todo)}
    for block in blocks:
        assert {i for _, *pair in block.items for i in pair} == set(block.views)


def test_the_last_blocks_are_small(tmp_path) -> None:
    _, blocks = blocks_of(tmp_path, ["hard-correlation"], 20)
    blocks.pair_seconds = 1e-9
    sizes = [len(block.items) for block in blocks]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 20
    assert sizes[-1] == 1


def test_other_processes_read_the_files_an_extraction_wrote(tmp_path) -> None:
    rows = torch.rand(40, 3)
    nets = [nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)) for _ in range(3)]
    views = {str(i): likewise.extract(net, rows, "1", store=tmp_path, progress=False) for i, net in enumerate(nets)}
    before = sorted(tmp_path.rglob("*.safetensors"))
    kwargs = {"measure": ["cka", "disagreement"], "progress": False}
    there = likewise.compare(views, store=tmp_path, engine="processes:2", **kwargs)
    assert sorted(tmp_path.rglob("*.safetensors")) == before
    for name, matrix in likewise.compare(views, **kwargs).items():
        assert there[name].values == pytest.approx(matrix.values, rel=1e-9)
    for path in before:
        path.unlink()  # the views are still mapped here: others get them anew
    again = likewise.compare(views, engine="processes:2", **kwargs)
    assert np.array_equal(again["cka"].values, there["cka"].values)


class Inline:
    """An executor that runs a task when it is handed in, and counts them."""

    _max_workers = 2

    def __init__(self):
        self.tasks = 0

    def submit(self, function, *arguments):
        self.tasks += 1
        future = Future()
        future.set_result(function(*arguments))
        return future


def test_slow_measures_come_in_small_blocks() -> None:
    def slow(x, y):
        start = time.thread_time()
        while time.thread_time() - start < 0.1:
            pass
        return 1.0

    executor = Inline()
    views = {str(i): RNG.normal(size=(10, 2)) for i in range(6)}
    likewise.compare(views, slow, engine=executor)
    assert executor.tasks >= 10  # 36 scores of 0.1 s each, at most 0.3 s or one pair to a block


VIEWS = {name: RNG.normal(size=(30, 4)) for name in "abcd"}


def corner(x, y):
    return float(x[0, 0] + y[0, 0])


def expected(function=corner):
    return np.array([[function(x, y) for y in VIEWS.values()] for x in VIEWS.values()])


@measures.register(name="needs-many", rows=31)
def needs_many(x, y):
    return 1.0


measures.unregister("needs-many")


def test_functions_of_two_arrays_run_in_other_processes() -> None:
    factor = 2.0
    found = likewise.compare(VIEWS, [corner, lambda x, y: factor * corner(x, y)], engine="processes:2")
    assert np.array_equal(found["corner"].values, expected())
    assert np.array_equal(found["<lambda>"].values, 2 * expected())


def test_facts_of_a_registered_measure_hold_in_other_processes() -> None:
    here, there = (likewise.compare(VIEWS, needs_many, engine=engine) for engine in (None, "processes:2"))
    assert here.reasons["a", "b"].startswith("needs-many needs at least 31 rows, got 30.")
    assert there.reasons == here.reasons


def test_what_cannot_be_sent_is_said() -> None:
    lock = threading.Lock()

    def locked(x, y):
        with lock:
            return 1.0

    with pytest.raises(InputError) as caught:
        likewise.compare(VIEWS, locked, engine="processes:2")
    assert str(caught.value) == (
        "locked cannot be sent to other processes: cannot pickle '_thread.lock' object. Let it use nothing that "
        "belongs to this process, such as open files and locks, or leave the engine out."
    )
