"""Left singular vectors, held against numpy's whole decomposition, signs and all."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.measures import lapack
from likewise.measures.lapack import decompose, left_singular_vectors


def matrices() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    square = {f"{n} x {n}": rng.normal(size=(n, n)) for n in (1, 2, 3, 26, 27, 100, 257)}
    values = np.logspace(0, -12, 60)
    left, right = (np.linalg.qr(rng.normal(size=(60, 60)))[0] for _ in range(2))
    return square | {
        "wide": rng.normal(size=(20, 70)),
        "tall": rng.normal(size=(70, 20)),
        "nearly singular": left * values @ right,
        "by columns": np.asfortranarray(rng.normal(size=(40, 40))),
        "every other row": rng.normal(size=(80, 40))[::2],
    }


@pytest.mark.parametrize("name", matrices())
def test_vectors_and_their_signs_are_those_of_the_whole_decomposition(name: str) -> None:
    matrix = matrices()[name]
    before = matrix.copy()
    vectors, values = left_singular_vectors(matrix)
    whole = np.linalg.svd(matrix, full_matrices=False)
    np.testing.assert_allclose(values, whole[1], atol=1e-12 * whole[1][0])
    strong = values > 1e-8 * values[0]  # others are determined less well than this test asks for
    np.testing.assert_allclose(vectors[:, strong], whole[0][:, strong], atol=1e-7)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(values)), atol=1e-12)
    np.testing.assert_array_equal(matrix, before)


def test_equal_singular_values_still_give_orthonormal_vectors() -> None:
    vectors, values = left_singular_vectors(np.eye(30))
    np.testing.assert_allclose(values, 1)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(30), atol=1e-12)


def test_numpy_serves_where_scipy_has_other_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.random.default_rng(1).normal(size=(30, 30))
    expected = left_singular_vectors(matrix)
    monkeypatch.setattr(lapack, "_routines", lambda: ())
    for ours, numpys in zip(expected, left_singular_vectors(matrix), strict=True):
        np.testing.assert_allclose(ours, numpys, atol=1e-9)


def test_a_routine_whose_arguments_are_not_known_is_not_called() -> None:
    assert lapack._routine("dgebrd") is not None
    assert lapack._routine("zgebrd") is None  # complex numbers


def test_slower_steps_serve_where_the_quick_ones_give_up(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.random.default_rng(0).normal(size=(30, 20))
    whole = np.linalg.svd(matrix, full_matrices=False)

    def give_up(*given: object, **options: object) -> None:
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(np.linalg, "svd", give_up)
    left, sizes, right = decompose(matrix)
    np.testing.assert_allclose(sizes, whole[1], atol=1e-12)
    np.testing.assert_allclose((left * sizes) @ right, matrix, atol=1e-12)
    matrix[3, 4] = np.nan
    with pytest.raises(np.linalg.LinAlgError):
        decompose(matrix)
