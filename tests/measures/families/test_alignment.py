"""Matchings and regressions against plain oracles."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from likewise import measures
from likewise.errors import UndefinedError
from likewise.measures.families.alignment import _level_peak, _turn_from_squares
from tests.measures.families.oracles import X, Y, centred, network, related, with_a_large_row


def test_linear_regression_projects_with_a_rank_tolerance() -> None:
    flat = np.hstack([Y, Y[:, :3] + Y[:, 3:6]])  # three dependent neurons
    fitted = centred(flat) @ np.linalg.lstsq(centred(flat), centred(X), rcond=1e-10)[0]
    expected = np.linalg.norm(fitted) ** 2 / np.linalg.norm(centred(X)) ** 2
    assert measures.linear_regression(X, flat) == pytest.approx(expected, abs=1e-9)


def test_soft_matching_equals_the_assignment_for_equal_widths() -> None:
    other = network(9)
    costs = cdist(centred(X).T, centred(other).T) ** 2
    expected = math.sqrt(costs[linear_sum_assignment(costs)].sum() / 9)
    assert measures.soft_matching(X, other) == pytest.approx(expected, rel=1e-9)


def test_soft_matching_of_different_widths_equals_the_assignment_of_copies() -> None:
    x, y = X[:, :4], Y[:, :6]  # widths 4 and 6: copies of 3 and 2 give 12 equal neurons each
    left, right = np.repeat(centred(x), 3, axis=1), np.repeat(centred(y), 2, axis=1)
    costs = cdist(left.T, right.T) ** 2
    expected = math.sqrt(costs[linear_sum_assignment(costs)].sum() / 12)
    assert measures.soft_matching(x, y) == pytest.approx(expected, rel=1e-9)


def test_ridge_predicts_inputs_it_was_not_fitted_on() -> None:
    rng = np.random.default_rng(0)
    source = rng.normal(size=(200, 10))
    target = source @ rng.normal(size=(10, 7))
    assert measures.ridge_predictivity(target, source) > 0.999
    noise = rng.normal(size=(200, 7))
    assert -0.1 < measures.ridge_predictivity(noise, source) < 0.02
    assert measures.linear_regression(noise, source) > 0.03  # in sample, noise looks explained


def test_neurons_left_over_are_counted_without_loss() -> None:
    x = np.random.default_rng(0).normal(size=(50, 4))
    assert measures.permutation_procrustes(x, np.hstack([x, np.zeros((50, 1))])) == 0
    assert measures.permutation_procrustes(np.hstack([x, np.ones((50, 1))]), x) == pytest.approx(math.sqrt(50))


def test_soft_matching_scales_with_the_activations() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(100, 4)), rng.normal(size=(100, 6))
    small = measures.soft_matching(1e-9 * x, 1e-9 * y)
    assert small == pytest.approx(1e-9 * measures.soft_matching(x, y), rel=1e-9)


@pytest.mark.parametrize("seed", [1163, 1695, 2992])
def test_small_inputs_beside_large_ones_are_turned_without_loss(seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=(7, 15)) ** 9  # one row hundreds of times the other
    assert measures.aligned_cosine(x, x) == pytest.approx(1, abs=1e-11)


def test_a_rotation_lost_to_one_large_input_is_refused() -> None:
    x, _ = with_a_large_row(1e12)
    with pytest.raises(UndefinedError) as refusal:
        measures.aligned_cosine(x, x)
    assert str(refusal.value) == (
        "aligned-cosine is undefined for 'x' and 'y': some inputs are so much larger than others that "
        "rounding decides how the others are turned. Scale the rows, or leave those out."
    )


def test_neurons_whose_squares_vanish_still_correlate() -> None:
    x, y = related()
    tiny = x * np.where(np.arange(5) == 1, 1e-160, 1.0)
    other = y * np.where(np.arange(6) == 2, 1e-160, 1.0)
    for name in ("hard-correlation", "soft-correlation"):
        measure = measures.get(name)
        assert measure(tiny, other) == pytest.approx(measure(x, y), rel=1e-9)


def turned(sizes: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """A matrix with these singular values, and its polar factor."""
    rng = np.random.default_rng(1)
    left, right = (np.linalg.qr(rng.normal(size=(sizes.size, sizes.size)))[0] for _ in range(2))
    return torch.from_numpy(left * sizes @ right.T), torch.from_numpy(left @ right.T)


@pytest.mark.parametrize("peaks", [(1e3,), (1e3, 999.0), (1e3, 500.0), ()])
def test_a_direction_that_towers_is_brought_down_and_the_nearest_rotation_stays(peaks: tuple[float, ...]) -> None:
    matrix, exact = turned(np.array([*peaks, *np.linspace(2, 0.5, 20 - len(peaks))]))
    level = _level_peak(matrix)
    turn = _turn_from_squares(level, 0.0)
    assert turn is not None
    torch.testing.assert_close(turn, exact, rtol=0, atol=1e-9)
    assert bool(torch.linalg.matrix_norm(level, 2) < 10) == (len(peaks) < 2)


def test_a_matrix_of_zeros_or_of_rank_one_is_left_as_it_is() -> None:
    for matrix in (torch.zeros(5, 5), torch.ones(5, 5), torch.eye(1)):
        assert torch.equal(_level_peak(matrix.double()), matrix.double())


def test_weak_directions_found_from_squares_are_refined_or_given_up() -> None:
    for weakest in (1e-5, 6e-5, 2e-3):
        matrix, exact = turned(np.geomspace(1, weakest, 50))
        turn = _turn_from_squares(matrix, 0.0)
        assert turn is not None
        # rounding over it, as of a decomposition, and what is left alone
        torch.testing.assert_close(turn, exact, rtol=0, atol=3e-17 / weakest + 1e-12)
        torch.testing.assert_close(turn.T @ turn, torch.eye(50).double(), rtol=0, atol=1e-11)
    assert _turn_from_squares(turned(np.geomspace(1, 1e-7, 50))[0], 0.0) is None
