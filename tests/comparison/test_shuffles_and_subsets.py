"""Nulls and intervals run where scores run, are kept where scores are kept, and hold no more than they may."""

import pickle
from concurrent.futures import Future

import cloudpickle
import numpy as np
import pytest
import torch

import likewise
from likewise.comparison import intervals, null
from likewise.comparison.pairs import score_table
from likewise.measures.numerics.ranks import rank_vector
from likewise.measures.representation import Representation
from likewise.measures.resampling import Permuted
from likewise.measures.workspace import Workspace
from likewise.views import Activations

RNG = np.random.default_rng(5)
HIDDEN = RNG.normal(size=(60, 4))
VIEWS = {
    name: HIDDEN @ RNG.normal(size=(4, d)) + RNG.normal(size=(60, d))
    for name, d in zip("abcd", (5, 9, 20, 7), strict=True)
}
BOTH = {"calibrate": 30, "intervals": True, "progress": False}


class Inline:
    """An executor that runs what it receives at once, as other processes receive it, and says what that was."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def submit(self, call, function, task):
        self.sent.append(function.__name__)
        future: Future = Future()
        future.set_result(call(function, pickle.loads(cloudpickle.dumps(task))))
        return future


class Counter:
    """Tables of scores as they are computed, up to a number of them."""

    def __init__(self, monkeypatch, most=10**6) -> None:
        self.count, self.most = 0, most
        for module in (null, intervals):
            monkeypatch.setattr(module, "score_table", self)

    def __call__(self, *arguments):
        if self.count == self.most:
            raise KeyboardInterrupt
        self.count += 1
        return score_table(*arguments)


def grids_equal(here, there) -> bool:
    return all(np.array_equal(grid, there.extra[name], equal_nan=True) for name, grid in here.extra.items())


@pytest.mark.parametrize("measure", ["jaccard", "linear-regression", "cka"])
def test_nulls_and_intervals_go_to_the_engine(measure) -> None:
    executor = Inline()
    here, there = (likewise.compare(VIEWS, measure, engine=engine, **BOTH) for engine in (None, executor))
    assert {"low", "q"} <= set(here.extra)
    assert grids_equal(here, there)
    assert executor.sent.count("draw_block") == 2  # 30 shuffles of six pairs, and 40 sets of what remains


def test_a_killed_null_resumes_from_the_store(tmp_path, monkeypatch) -> None:
    many = {str(i): RNG.normal(size=(30, 6)) for i in range(20)}
    arguments = {"calibrate": 30, "progress": False, "store": tmp_path / "s"}
    Counter(monkeypatch, most=21)
    with pytest.raises(KeyboardInterrupt):
        likewise.compare(many, "cka", **arguments)
    rest = Counter(monkeypatch)
    resumed = likewise.compare(many, "cka", **arguments)
    assert rest.count == 10  # of 30: 20 were kept, two at a time
    again = Counter(monkeypatch)
    assert grids_equal(resumed, likewise.compare(many, "cka", **arguments))
    assert again.count == 0
    assert grids_equal(resumed, likewise.compare(many, "cka", calibrate=30, progress=False))


def test_draws_of_other_inputs_groups_seeds_and_measures_are_not_taken_from_the_store(tmp_path, monkeypatch) -> None:
    labels = np.arange(60) % 3
    changes = [{}, {"seed": 1}, {"within": labels}, {"calibrate": 40}, {"clusters": np.arange(60) // 2}]
    for change in changes:
        counter = Counter(monkeypatch)
        likewise.compare(VIEWS, "jaccard[k=5]", store=tmp_path / "s", **{**BOTH, **change})
        assert counter.count > 0
    counter = Counter(monkeypatch)
    likewise.compare({**VIEWS, "a": VIEWS["a"] + 1e-9}, "jaccard[k=5]", store=tmp_path / "s", **BOTH)
    likewise.compare(VIEWS, "jaccard[k=6]", store=tmp_path / "s", **BOTH)
    assert counter.count == 2 * (30 + 40)  # shuffles, and 20 groups left out


def test_draws_that_failed_are_drawn_again_and_undefined_networks_are_not(tmp_path, monkeypatch) -> None:
    views = {**VIEWS, "constant": np.ones((60, 3))}
    likewise.compare(views, "jaccard", store=tmp_path / "s", **BOTH)
    counter = Counter(monkeypatch)
    assert np.isnan(likewise.compare(views, "jaccard", store=tmp_path / "s", **BOTH).extra["low"][0, 4])
    assert counter.count == 0


def test_more_shuffles_take_those_that_are_there(tmp_path, monkeypatch) -> None:
    many = {str(i): RNG.normal(size=(30, 6)) for i in range(20)}
    likewise.compare(many, "cka", calibrate=20, store=tmp_path / "s", progress=False)
    counter = Counter(monkeypatch)
    likewise.compare(many, "cka", calibrate=30, store=tmp_path / "s", progress=False)
    assert counter.count == 10


@pytest.mark.parametrize("engine", [None, Inline()])
def test_every_workspace_of_nulls_and_intervals_has_the_memory_limit(engine, monkeypatch) -> None:
    limits = []
    start = Workspace.__init__
    monkeypatch.setattr(
        Workspace, "__init__", lambda self, limit=None, **options: limits.append(limit) or start(self, limit, **options)
    )
    likewise.compare(VIEWS, "distance-correlation", engine=engine, memory="20MB", **BOTH)
    assert len(limits) >= 3  # scores, nulls, intervals
    assert None not in limits
    assert max(limits) <= 2 * 10**7


def test_shuffled_ranks_need_no_square_matrix() -> None:
    workspace = Workspace(10**7, networks=2, resampled=True)
    rep = Representation(Activations(RNG.normal(size=(420, 6))), workspace)
    assert not workspace.keeps_squares(420)
    order = torch.from_numpy(RNG.permutation(420))
    whole = torch.zeros(420, 420, dtype=rank_vector(rep).dtype)
    whole[tuple(torch.triu_indices(420, 420, 1))] = rank_vector(rep)
    whole = (whole + whole.T)[order][:, order]
    assert torch.equal(rank_vector(Permuted(rep, order)), whole[tuple(torch.triu_indices(420, 420, 1))])
