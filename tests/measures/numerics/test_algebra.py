"""Products of a matrix with itself, and decompositions that do not fail."""

import numpy as np
import pytest
import torch

from likewise.measures.numerics.algebra import LARGE, numpy_svd, svd, symmetric


@pytest.mark.parametrize(("size", "large"), [((20, 30), False), ((500, 450), True)])
def test_a_product_of_a_matrix_with_itself_is_symmetric_to_the_last_digit(size: tuple[int, int], large: bool) -> None:
    values = np.random.default_rng(0).normal(size=size[::-1])
    product = symmetric(torch.from_numpy(values).T).numpy()
    assert (size[0] ** 2 * size[1] > LARGE) == large
    assert np.array_equal(product, product.T)
    assert product == pytest.approx(np.einsum("ki,kj->ij", values, values), abs=1e-11)


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("shape", [(40, 40), (60, 25), (25, 60), (5, 1)])
def test_decompositions_give_the_matrix_back(shape, repeated) -> None:
    matrix = torch.from_numpy(np.random.default_rng(0).normal(size=shape))
    left, sizes, right = svd(matrix, repeated=repeated)
    assert left.shape[1] == len(sizes) == right.shape[0] == min(shape)
    assert torch.allclose((left * sizes) @ right, matrix, atol=1e-12)
    assert bool((sizes.diff() <= 0).all())


def test_a_decomposition_that_torch_gives_up_is_made_by_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(matrix: torch.Tensor, **options: bool) -> None:
        raise torch.linalg.LinAlgError("the algorithm failed to converge")

    monkeypatch.setattr(torch.linalg, "svd", give_up)
    matrix = torch.from_numpy(np.random.default_rng(0).normal(size=(30, 20)))
    left, sizes, right = svd(matrix)
    assert torch.allclose((left * sizes) @ right, matrix, atol=1e-12)
    matrix[2, 3] = torch.nan
    with pytest.raises(torch.linalg.LinAlgError):
        svd(matrix)


def test_the_older_routine_serves_where_numpy_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.random.default_rng(0).normal(size=(30, 20))

    def fail(*arguments: object, **options: object) -> None:
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(np.linalg, "svd", fail)
    left, sizes, right = numpy_svd(matrix)
    np.testing.assert_allclose((left * sizes) @ right, matrix, atol=1e-12)
    np.testing.assert_allclose(left.T @ left, np.eye(20), atol=1e-12)
    matrix[3, 4] = np.nan
    with pytest.raises(np.linalg.LinAlgError):
        numpy_svd(matrix)
