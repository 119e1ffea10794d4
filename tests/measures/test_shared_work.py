"""What two directions or several measures of a pair have in common is computed once."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import likewise
from likewise.measures.pair import levelled, pair_of, polar

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 12))
Y = X @ RNG.normal(size=(12, 12)) + RNG.normal(size=(80, 12))


@pytest.fixture
def decompositions(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Shapes of the matrices whose singular vectors were computed."""
    shapes: list[tuple[int, ...]] = []
    svd = torch.linalg.svd

    def counted(matrix: torch.Tensor, *given: object, **options: object) -> object:
        shapes.append(tuple(matrix.shape))
        return svd(matrix, *given, **options)

    monkeypatch.setattr(torch.linalg, "svd", counted)
    return shapes


def test_both_directions_of_pwcca_come_from_one_decomposition(
    decompositions: list[tuple[int, ...]],
) -> None:
    matrix = likewise.compare({"x": X, "y": Y}, "pwcca", progress=False)
    assert len(decompositions) == 1
    alone = [likewise.measures.pwcca(a, b) for a, b in ((X, Y), (Y, X))]
    assert [matrix["x", "y"], matrix["y", "x"]] == pytest.approx(alone, rel=1e-12)
    assert matrix["x", "y"] != pytest.approx(matrix["y", "x"], rel=1e-6)


def test_canonical_correlations_follow_from_the_directions_where_these_are_known(
    decompositions: list[tuple[int, ...]],
) -> None:
    pair, fresh = pair_of(X, Y), pair_of(X, Y)
    left, rho, right = pair.canonical
    assert pair.correlations is rho
    assert rho.numpy() == pytest.approx(fresh.correlations.numpy(), abs=1e-12)
    assert (left * rho @ right.T).numpy() == pytest.approx(pair.overlap.numpy(), abs=1e-12)
    assert pair.swapped.canonical == (right, rho, left)
    assert len(decompositions) == 1


@pytest.mark.parametrize("peaks", [(1e3,), (1e3, 999.0), (1e3, 500.0), ()])
def test_a_direction_that_towers_is_brought_down_and_the_nearest_rotation_stays(
    peaks: tuple[float, ...],
) -> None:
    rng = np.random.default_rng(1)
    left, right = (np.linalg.qr(rng.normal(size=(20, 20)))[0] for _ in range(2))
    sizes = np.linspace(2, 0.5, 20)
    sizes[: len(peaks)] = peaks
    matrix = torch.from_numpy(left * sizes @ right.T)
    found = levelled(matrix)
    assert polar(found).numpy() == pytest.approx(left @ right.T, abs=1e-9)
    assert bool(torch.linalg.matrix_norm(found, 2) < 10) == (len(peaks) == 1 or not peaks)


def test_a_matrix_of_zeros_or_of_rank_one_is_left_as_it_is() -> None:
    for matrix in (torch.zeros(5, 5), torch.ones(5, 5), torch.eye(1)):
        assert torch.equal(levelled(matrix.double()), matrix.double())
