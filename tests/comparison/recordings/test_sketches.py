"""Sketches against what they stand for: debiased CKA, and relative changes from rounding to a third."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import likewise
from likewise.comparison.recordings.sketches import (
    centred_products,
    length,
    relative_change,
    similarity,
    similarity_sketch,
    value_sketch,
)


def related(seed: int, share: float, n: int = 200) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 30, generator=draw)
    return x, share * x @ torch.randn(30, 20, generator=draw) / 5 + (1 - share) * torch.randn(n, 20, generator=draw)


def test_centred_products_by_a_plain_loop() -> None:
    x, _ = related(0, 0.5, n=7)
    rows = x.double().numpy() - x.double().numpy().mean(axis=0)
    k = rows @ rows.T
    np.fill_diagonal(k, 0)
    n = len(k)
    expected = np.zeros_like(k)
    for i in range(n):
        for j in range(n):
            if i != j:
                expected[i, j] = k[i, j] - k[i].sum() / (n - 2) - k[:, j].sum() / (n - 2) + k.sum() / (n - 1) / (n - 2)
    assert np.allclose(centred_products(x).numpy(), expected)


def test_sketches_are_near_debiased_cka() -> None:
    errors = []
    for seed, share in enumerate(np.linspace(0, 1, 12)):
        x, y = related(seed, float(share))
        exact = float(likewise.compare(x, y, "cka-debiased"))
        errors.append(abs(similarity(similarity_sketch(x, "p"), similarity_sketch(y, "p")) - exact))
    assert max(errors) < 0.03
    assert np.mean(errors) < 0.01


@pytest.mark.parametrize("change", [1e-6, 1e-4, 1e-2, 0.3])
def test_relative_changes_are_within_a_tenth(change: float) -> None:
    for seed in range(5):
        draw = torch.Generator().manual_seed(seed)
        x = torch.randn(300, 40, generator=draw, dtype=torch.float64)
        noise = torch.randn(300, 40, generator=draw, dtype=torch.float64)
        y = x + change * noise * x.norm() / noise.norm()
        found = relative_change(value_sketch(x, "p"), value_sketch(y, "p"), float(x.norm()))
        assert found == pytest.approx(change, rel=0.1)


def test_equal_rows_have_equal_sketches_and_batches_do_not_matter() -> None:
    x, _ = related(0, 0.5)
    assert relative_change(value_sketch(x, "p"), value_sketch(x.clone(), "p"), 1.0) == 0.0
    assert length(value_sketch(x, "p")) == pytest.approx(float(x.norm()), rel=0.1)
    assert not np.array_equal(value_sketch(x, "p"), value_sketch(x, "another probe"))


def test_inputs_that_are_all_the_same_have_no_similarity() -> None:
    flat = similarity_sketch(torch.ones(10, 3), "p")
    assert np.isnan(similarity(flat, similarity_sketch(related(0, 0.5, n=10)[0], "p")))


def test_a_matrix_as_one_row_takes_no_more_than_its_entries() -> None:
    row = torch.randn(1, 3 * 2**20 + 5, generator=torch.Generator().manual_seed(0))
    assert length(value_sketch(row, "embedding", bins=256)) == pytest.approx(float(row.norm()), rel=0.15)
