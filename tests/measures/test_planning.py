"""What a comparison would cost: how it adds up, and that it is of the right size."""

import time

import numpy as np
import pytest

import likewise
from likewise import measures
from likewise.errors import InputError


@pytest.mark.parametrize(("name", "m"), [("cka-debiased", 300), ("procrustes", 30)])
def test_seconds_are_about_those_of_a_run(name, m) -> None:
    views = {str(i): x for i, x in enumerate(np.random.default_rng(0).normal(size=(m, 200, 32)).astype("float32"))}
    likewise.compare(dict(list(views.items())[:3]), name, progress=False)
    start = time.process_time()
    likewise.compare(views, name, progress=False)
    seconds = time.process_time() - start
    assert seconds / 3 < measures.cost(name, m, 200, 32).seconds < 3 * seconds  # a busy machine, too


def test_costs_add_up() -> None:
    few, many = (measures.cost("cka-debiased", m, 50, 8, memory="100MB") for m in (600, 6000))
    assert (few.pairs, many.pairs) == (600 * 599 // 2, 6000 * 5999 // 2)
    assert many.views == 10 * few.views == 4 * 6000 * 50 * 8
    assert few.groups == 1 < many.groups
    assert many.memory > 26 * 6000**2
    assert few.stored == 0
    assert few.hours == pytest.approx(few.seconds / 3600)


def test_one_process_collects_what_workers_score() -> None:
    shared = measures.cost("cka", 2000, 50, 8, workers=1000, store=True)
    assert shared.stored == 340 * shared.pairs
    assert shared.hours == pytest.approx(shared.pairs * 3e-5 / 3600)
    assert shared.seconds > 3600 * shared.hours


def test_measures_of_two_directions_have_twice_the_pairs() -> None:
    assert measures.cost("linear-regression", 10, 40, 4).pairs == 90


def test_what_has_no_such_cost_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        measures.cost("disagreement", 10, 40, 4)
    assert str(caught.value) == (
        "a cost is that of two networks or more and a measure of activations, got 10 and disagreement, which looks at "
        "outputs. Name another measure, or more networks."
    )
    with pytest.raises(InputError, match="got 1 and cka"):
        measures.cost("cka", 1, 40, 4)
