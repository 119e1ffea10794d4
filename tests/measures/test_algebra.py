"""Products and norms, by numpy or by torch, against numpy's einsum."""

import numpy as np
import pytest
import torch

from likewise.measures.algebra import FEW, MANY, SHORT, frobenius, product, symmetric

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


@pytest.mark.parametrize("size", SIZES)
def test_products_and_norms_do_not_depend_on_who_takes_them(size: tuple[int, int]) -> None:
    left, right = np.random.default_rng(0).normal(size=(2, *size[::-1]))
    found = product(torch.from_numpy(left).T, torch.from_numpy(right))
    assert found.numpy() == pytest.approx(np.einsum("ki,kj->ij", left, right), abs=1e-11)
    assert frobenius(found) == pytest.approx(np.sqrt(np.einsum("ij,ij->", found, found)), rel=1e-13)
