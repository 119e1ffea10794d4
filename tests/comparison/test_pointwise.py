"""A score per input: which inputs two networks place alike."""

import numpy as np
import pytest

import likewise
from likewise import measures


def test_pnka_is_the_mean_over_inputs() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 40, 6))
    points = likewise.pointwise(x, y)
    assert points.shape == (40,)
    assert points.mean() == pytest.approx(measures.pnka(x, y), abs=1e-12)


def test_the_input_that_was_moved_stands_out() -> None:
    x = np.random.default_rng(0).normal(size=(40, 6))
    y = x @ np.linalg.qr(np.random.default_rng(1).normal(size=(6, 6)))[0]
    y[11] = np.random.default_rng(2).normal(size=6)
    points = likewise.pointwise(x, y)
    assert points.argmin() == 11
    assert np.sort(points)[1] > points.min() + 0.1


def test_a_constant_network_is_refused_with_its_name() -> None:
    x = np.random.default_rng(0).normal(size=(40, 6))
    with pytest.raises(likewise.errors.UndefinedError) as caught:
        likewise.pointwise(x, np.ones((40, 3)))
    assert str(caught.value) == (
        "'y' is constant: all 40 rows are the same, so there is nothing to compare. Look at another layer."
    )
