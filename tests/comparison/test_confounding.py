"""Nulls of cka-deconfounded: networks that share the confounder only are no more alike than chance."""

import numpy as np
import pytest

import likewise
from likewise import measures
from likewise.comparison.confounding import Unexplained
from likewise.comparison.significance import null_scores
from likewise.errors import UndefinedError
from likewise.measures.pair import Pair
from likewise.measures.representation import Representation
from likewise.views import Activations


def related_through(inputs, rng, shared=0.0, d=12):
    """Two networks of the inputs with noise of their own, and perhaps some that they share."""
    hidden = rng.normal(size=(len(inputs), 3))
    return [
        np.tanh(inputs @ rng.normal(size=(inputs.shape[1], d)))
        + rng.normal(size=(len(inputs), d))
        + shared * hidden @ rng.normal(size=(3, d))
        for _ in range(2)
    ]


def share_of_small_p(shared, trials, width=3):
    small, rng = 0, np.random.default_rng(0)
    for _ in range(trials):
        inputs = rng.normal(size=(60, width))
        measure = measures.get("cka-deconfounded", confounder=inputs)
        small += likewise.calibrate(*related_through(inputs, rng, shared), measure, 19).p <= 0.05
    return small / trials


def test_networks_related_through_the_confounder_only_are_chance():
    """Shuffled inputs gave p <= 0.05 in most of these pairs."""
    assert share_of_small_p(0.0, 120) <= 0.12  # three standard deviations above 0.05


def test_networks_related_beyond_the_confounder_are_found():
    assert share_of_small_p(0.8, 30) >= 0.8


def test_what_the_confounder_explains_stays_and_the_rest_keeps_its_size():
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(50, 3))
    x = inputs @ rng.normal(size=(3, 6)) + 0.1 * rng.normal(size=(50, 6))
    unexplained = Unexplained(inputs)
    rep = Representation(Activations(x))
    shuffled = unexplained.shuffled(rep, np.random.default_rng(1)).values.numpy()
    design = np.c_[np.ones(50), inputs]
    fits = [np.linalg.lstsq(design, v, rcond=None)[0] for v in (x, shuffled)]
    assert fits[0] == pytest.approx(fits[1])
    assert not np.allclose(x, shuffled)
    assert x.T @ x == pytest.approx(shuffled.T @ shuffled)


def test_classes_to_shuffle_within_count_as_explained():
    rng = np.random.default_rng(0)
    inputs, labels = rng.normal(size=(60, 2)), np.repeat(np.arange(4), 15)
    x = rng.normal(size=(4, 5))[labels] + rng.normal(size=(60, 5))
    rep = Representation(Activations(x))
    shuffled = Unexplained(inputs, labels).shuffled(rep, rng).values.numpy()
    for label in range(4):
        own = labels == label
        assert shuffled[own].mean(axis=0) == pytest.approx(x[own].mean(axis=0))


def test_a_confounder_that_explains_everything_leaves_no_null():
    rng = np.random.default_rng(0)
    x, y, inputs = rng.normal(size=(3, 40, 35))
    measure = measures.get("cka-deconfounded", confounder=inputs)
    with pytest.raises(UndefinedError) as error:
        likewise.calibrate(x, y, measure, 9)
    assert str(error.value) == (
        "the confounder has 35 independent directions on 40 inputs, so hardly anything of a network is left "
        "that it does not explain, and there is no null. Show the networks more inputs, or reduce the "
        "confounder to fewer features."
    )
    pair = Pair(*(Representation(Activations(v)) for v in (x, y)))
    assert np.isnan(null_scores(pair, measure, 5, 0)).all()
    table = likewise.compare({"a": x, "b": y}, [measure], calibrate=True).to_frame()
    assert table.p.isna().all()


def test_pairs_in_a_table_have_the_null_of_single_pairs():
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(40, 3))
    views = dict(zip("ab", related_through(inputs, rng), strict=True))
    measure = measures.get("cka-deconfounded", confounder=inputs)
    alone = likewise.calibrate(views["a"], views["b"], measure, 9)
    table = likewise.calibrate(views, measure=measure, permutations=9)
    assert table.null_mean[0, 1] == pytest.approx(alone.null_mean)
