"""The loop over pairs: a failure costs one pair, here and in other processes."""

import threading
from dataclasses import dataclass

import numpy as np
import pytest
import torch

import likewise
from likewise import measures
from likewise.comparison.pairs import score_items
from likewise.comparison.schedule import MANY, prepare
from likewise.errors import FailedMeasureWarning, MeasureError, UndefinedError
from likewise.measures.numerics.kernels import Linear
from likewise.measures.representation import Representation
from likewise.views import Activations
from likewise.work.engines import Local
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


def hungry(x, y):
    if 7.0 in (x[0, 0], y[0, 0]):
        raise MemoryError("no room at all")
    return corner(x, y)


def greedy(x, y):
    if 7.0 in (x[0, 0], y[0, 0]):
        raise torch.OutOfMemoryError("CUDA out of memory.")
    return corner(x, y)


def indefinite(x, y):
    return float("nan") if 7.0 in (x[0, 0], y[0, 0]) else corner(x, y)


def expected(function=corner):
    return np.array([[function(x, y) for y in VIEWS.values()] for x in VIEWS.values()])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (raising, "raising failed on 'a' and 'c': LookupError: 'no seven'"),
        (wordy, "wordy gave '0.5' for 'a' and 'c'. A measure gives one number."),
        (hungry, "hungry failed on 'a' and 'c': MemoryError: no room at all"),
        (
            greedy,
            "greedy failed on 'a' and 'c': OutOfMemoryError: CUDA out of memory.",
        ),
    ],
)
def test_a_pair_that_fails_is_undefined_and_the_run_goes_on(tmp_path, engine, function, reason) -> None:
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


@pytest.mark.parametrize("engine", ENGINES)
def test_what_a_function_of_the_users_gave_is_said_where_it_is_no_number(engine) -> None:
    scores = likewise.compare(VIEWS, indefinite, engine=engine)
    assert scores.reasons["a", "c"] == "indefinite is undefined for 'a' and 'c': the function gave nan."
    with pytest.raises(UndefinedError) as caught:
        likewise.compare(VIEWS["a"], VIEWS["b"], lambda x, y: np.inf)
    assert str(caught.value) == "<lambda> is undefined for 'x' and 'y': the function gave inf."


def test_a_score_that_failed_is_tried_again(tmp_path) -> None:
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
def test_a_single_comparison_raises_our_error_with_the_cause(tmp_path, store) -> None:
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


@pytest.mark.parametrize("store", [False, True])
def test_a_single_comparison_without_memory_is_our_error(tmp_path, store) -> None:
    with pytest.raises(MeasureError) as caught:
        likewise.compare(VIEWS["a"], VIEWS["c"], hungry, store=tmp_path / "s" if store else None)
    assert str(caught.value) == "hungry failed on 'x' and 'y': MemoryError: no room at all"


def test_a_measure_of_ours_without_memory_leaves_its_pairs_undefined(monkeypatch) -> None:
    def full(*arguments, **options):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    monkeypatch.setattr(torch.linalg, "eigvalsh", full)
    with pytest.warns(FailedMeasureWarning):
        scores = likewise.compare(VIEWS, ["procrustes", "cka"])
    assert scores["procrustes"].reasons["a", "b"] == (
        "procrustes failed on 'a' and 'b': OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    )
    assert np.isfinite(scores["cka"].values).all()


def test_an_interrupt_inside_a_measure_ends_the_run() -> None:
    def interrupted(x, y):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        likewise.compare(VIEWS, interrupted)


def test_every_item_is_scored_in_order_and_both_directions_of_a_pair_share_work() -> None:
    left = [Representation(Activations(VIEWS[name], name=name)) for name in "ab"]
    right = [Representation(Activations(VIEWS[name], name=name)) for name in "cd"]
    both = [measures.get("cka"), measures.get("linear-regression")]
    items = [(1, 0, 1), (0, 0, 1), (1, 1, 0), (1, 0, 0)]
    within = list(score_items(items, both, left))
    assert [item for item, _ in within] == items
    across = dict(score_items(items, both, left, right))
    for (k, i, j), result in within:
        assert result.value == pytest.approx(both[k](VIEWS["ab"[i]], VIEWS["ab"[j]]), rel=1e-9)
    for (k, i, j), result in across.items():
        assert result.value == pytest.approx(both[k](VIEWS["ab"[i]], VIEWS["cd"[j]]), rel=1e-9)


def test_networks_are_prepared_two_at_a_time() -> None:
    meeting = threading.Barrier(2)

    @dataclass(frozen=True)
    class Waiting(Linear):
        def prepare(self, rep: Representation) -> int:
            return meeting.wait(timeout=900)  # breaks where one has to end before the next begins

    prepare([Waiting()], [Representation(Activations(view)) for view in VIEWS.values()], Local(2))
    assert not meeting.broken


def test_scores_do_not_depend_on_how_many_threads_prepare_and_score() -> None:
    views = {name: RNG.normal(size=(MANY, 5)) for name in "abc"}
    wanted = ["rsa", "distance-correlation", "jaccard"]
    serial, threads = (likewise.compare(views, wanted, engine=Local(workers), progress=False) for workers in (1, 2))
    for name in wanted:
        assert serial[name].values == pytest.approx(threads[name].values, abs=1e-13)
