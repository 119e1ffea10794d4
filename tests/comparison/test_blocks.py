"""Blocks of pairs for other processes: every score once, per-network work first and shared."""

import sys
import time
from concurrent.futures import Future

import numpy as np
import pytest
import torch
from torch import nn

import likewise
from likewise import measures
from likewise.comparison import blocks
from likewise.comparison.blocks import Blocks, disjoint
from likewise.comparison.schedule import Job, Ledger
from likewise.errors import InputError
from likewise.measures import transport
from likewise.measures.registry import select
from likewise.measures.transport import SharedFolder
from likewise.views import Activations

RNG = np.random.default_rng(0)


def blocks_of(tmp_path, names, m, left_out=()):
    views = [Activations(RNG.normal(size=(40, 5)), name=str(i)) for i in range(m)]
    job = Job([view.name for view in views], views, select(names))
    todo = job.wanted.copy()
    for item in left_out:
        todo[item] = False
    return todo, list(Blocks(todo, Ledger(job, None, None), 2, 10**9, str(tmp_path)))


@pytest.mark.parametrize("m", [1, 2, 3, 9, 14])
@pytest.mark.parametrize(
    "names", [["cka"], ["rsa", "distance-correlation"], ["pwcca", "rsa", "cka", "hard-correlation"]]
)
def test_every_score_is_in_one_block(tmp_path, names, m) -> None:
    left_out = [(0, 0, 1)] if m > 2 else []
    todo, blocks = blocks_of(tmp_path, names, m, left_out)
    items = [item for block in blocks for item in block.items]
    assert len(items) == len(set(items))
    assert set(items) == {tuple(map(int, item)) for item in np.argwhere(todo)}
    for block in blocks:
        assert {i for _, *pair in block.items for i in pair} <= set(block.views)


def test_the_first_blocks_hold_every_network_once(tmp_path) -> None:
    _, blocks = blocks_of(tmp_path, ["pwcca", "rsa"], 12)
    first = [block for block in blocks if block.first]
    assert blocks[: len(first)] == first
    assert sorted(i for block in first for i in block.views) == list(range(12))
    pairs = np.array([(0, 0), (0, 1), (0, 2), (1, 2), (2, 3)])
    assert pairs[disjoint(pairs)].tolist() == [[0, 1], [2, 3]]


@pytest.mark.skipif(sys.platform != "linux", reason="workers are copies of this process on Linux only")
def test_copies_of_this_process_find_the_views_where_they_are(monkeypatch) -> None:
    monkeypatch.setattr("likewise.work.engines.processes._can_copy", lambda: True)
    views = {str(i): RNG.normal(size=(60, 4)) for i in range(5)}
    written = []
    monkeypatch.setattr("likewise.comparison.blocks.put_view", lambda *given: written.append(given))
    names = ["procrustes", "rsa"]
    there = likewise.compare(views, names, engine="processes:2", progress=False)
    here = likewise.compare(views, names, progress=False)
    assert all(np.array_equal(there[name].values, here[name].values) for name in names)
    assert not written
    assert not blocks._inherited


def test_the_last_blocks_are_small(tmp_path) -> None:
    views = [Activations(RNG.normal(size=(40, 5)), name=str(i)) for i in range(20)]
    job = Job([view.name for view in views], views, select(["hard-correlation"]))
    blocks = Blocks(job.wanted, Ledger(job, None, None), 2, 10**9, str(tmp_path))
    blocks._seconds = 1e-9
    sizes = [len(block.items) for block in blocks if not block.first]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 20
    assert sizes[-1] == 1


def test_halves_of_a_block_hold_its_items(tmp_path) -> None:
    _, blocks = blocks_of(tmp_path, ["pwcca", "linear-regression"], 3)
    left, right = blocks[0].halves()
    assert left.items + right.items == blocks[0].items
    assert left.items
    assert right.items


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

    def submit(self, function, *given):
        self.tasks += 1
        future = Future()
        future.set_result(function(*given))
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


def test_what_took_long_is_found_by_another_process(tmp_path) -> None:
    computed = []

    def compute():
        computed.append(1)
        start = time.thread_time()
        while time.thread_time() - start < 0.02:
            pass
        return torch.arange(6.0).view(2, 3), 0.5, True, 7

    one, other = SharedFolder(tmp_path, 10**6), SharedFolder(tmp_path, 10**6)
    one.names[11], other.names[0] = "network", "network"  # owners are numbered by each process
    expected = one.get((11, ("nearest", 5)), compute)
    found = other.get((0, ("nearest", 5)), compute)
    assert torch.equal(found[0], expected[0])
    assert found[1:] == expected[1:] == (0.5, True, 7)
    assert [type(part) for part in found[1:]] == [float, bool, int]
    other.get((0, ("nearest", 6)), compute)
    other.get((5, ("nearest", 5)), compute)  # of a network without a name
    assert len(computed) == 3


def test_what_is_quick_large_or_no_number_is_not_shared(tmp_path) -> None:
    folder = SharedFolder(tmp_path, room=100)
    folder.names[0] = "network"

    def slowly(value):
        start = time.thread_time()
        while time.thread_time() - start < 0.01:
            pass
        return value

    folder.get((0, "quick"), lambda: 1.0)
    folder.get((0, "large"), lambda: slowly(torch.zeros(1000)))
    folder.get((0, "object"), lambda: slowly({"a": 1}))
    folder.get((0, object()), lambda: slowly(1.0))  # a name that means nothing elsewhere
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_costs_nothing_but_time(tmp_path) -> None:
    folder = SharedFolder(tmp_path / "elsewhere", room=10**6)
    folder.names[0] = "network"

    def compute():
        start = time.thread_time()
        while time.thread_time() - start < 0.01:
            pass
        return 2.0

    assert folder.get((0, "x"), compute) == 2.0


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


def test_what_cannot_be_sent_is_said(monkeypatch) -> None:
    monkeypatch.setattr(transport, "find_spec", lambda name: None)  # as without cloudpickle
    with pytest.raises(InputError) as caught:
        likewise.compare(VIEWS, lambda x, y: 1.0, engine="processes:2")
    sentence = str(caught.value)
    assert sentence.startswith("<lambda> cannot be sent to other processes: ")
    assert sentence.endswith(". Define it by `def` at the top of a module, or leave the engine out.")
    found = likewise.compare(VIEWS, corner, engine="processes:2")
    assert np.array_equal(found.values, expected())
