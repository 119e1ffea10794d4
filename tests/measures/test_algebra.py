"""Products and norms, by numpy or by torch, against numpy's einsum."""

import numpy as np
import pytest
import torch

from likewise.measures import algebra
from likewise.measures.algebra import (
    FEW,
    MANY,
    SHORT,
    eigenvalues,
    eigenvectors,
    frobenius,
    lower_half,
    prefers_torch,
    product,
    symmetric,
    triangular_product,
)

SIZES = [(20, 30), (64, 100), (90, 100), (200, 150), (500, 450)]  # from few to many multiplications


def test_the_sizes_are_on_both_sides_of_every_limit() -> None:
    counts = [rows * rows * columns for rows, columns in SIZES]
    assert min(counts) < FEW < counts[2] < counts[3] < MANY < max(counts)
    assert 20 * 30 < SHORT < 500 * 450


@pytest.mark.parametrize("size", SIZES)
def test_a_product_of_a_matrix_with_itself_is_symmetric_to_the_last_digit(size: tuple[int, int]) -> None:
    values = np.random.default_rng(0).normal(size=size[::-1])
    found = symmetric(torch.from_numpy(values).T).numpy()
    assert np.array_equal(found, found.T)
    assert found == pytest.approx(np.einsum("ki,kj->ij", values, values), abs=1e-11)


@pytest.fixture(params=[False, True], ids=["numpy", "torch"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prefer numpy, then torch."""
    monkeypatch.setattr(algebra, "prefers_torch", lambda: request.param)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("size", SIZES)
def test_products_and_norms_do_not_depend_on_who_takes_them(size: tuple[int, int]) -> None:
    left, right = np.random.default_rng(0).normal(size=(2, *size[::-1]))
    found = product(torch.from_numpy(left).T, torch.from_numpy(right))
    assert found.numpy() == pytest.approx(np.einsum("ki,kj->ij", left, right), abs=1e-11)
    assert frobenius(found) == pytest.approx(np.sqrt(np.einsum("ij,ij->", found, found)), rel=1e-13)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("n", [300, 600, 1100])
def test_half_a_product_is_right_where_it_has_a_meaning(n: int) -> None:
    rows, others = (torch.from_numpy(v) for v in np.random.default_rng(0).normal(size=(2, n, 120)))
    expected = np.einsum("ik,jk->ij", rows, rows)
    assert lower_half(rows).tril().numpy() == pytest.approx(np.tril(expected), abs=1e-11)
    assert lower_half(rows, others).tril().numpy() == pytest.approx(np.tril(rows.numpy() @ others.numpy().T), abs=1e-11)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("n", [100, 200, 600])
def test_eigenvectors_and_triangles_do_not_depend_on_who_takes_them(n: int) -> None:
    values = np.random.default_rng(0).normal(size=(n, n))
    matrix = torch.from_numpy(values + values.T)
    sizes, vectors = eigenvectors(matrix)
    assert eigenvalues(matrix).numpy() == pytest.approx(sizes.numpy(), abs=1e-11)
    assert (vectors * sizes @ vectors.T).numpy() == pytest.approx(matrix.numpy(), abs=1e-11)
    upper = torch.from_numpy(values).triu()
    assert triangular_product(matrix, upper).numpy() == pytest.approx(matrix.numpy() @ upper.numpy(), abs=1e-10)


def test_torch_is_preferred_where_mkl_runs_on_an_intel_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    ask = prefers_torch.__wrapped__
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    for said, expected in (("vendor_id\t: GenuineIntel", True), ("vendor_id\t: AuthenticAMD", False), ("", False)):
        monkeypatch.setattr(algebra, "processor", lambda said=said: said)
        assert ask() is expected
    monkeypatch.setattr(algebra, "processor", lambda: "Intel64 Family 6 Model 158 Stepping 10, GenuineIntel")
    assert ask()
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: False)
    assert not ask()
