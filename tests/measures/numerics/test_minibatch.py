"""Debiased CKA by batches: scales, precisions, and layers with nothing to compare."""

from __future__ import annotations

import pytest
import torch

from likewise import measures
from likewise.measures.numerics.minibatch import MinibatchCKA, centred_gram


def test_inputs_that_are_equally_alike_are_undefined() -> None:
    sums = MinibatchCKA()
    sums.add([torch.eye(32) * 0.1, torch.randn(32, 5)], None)  # every two rows equally far apart
    assert torch.isnan(sums.values()).tolist() == [[True, True], [True, False]]
    assert sums.faults()[0][0].startswith("finds all inputs equally alike but for rounding")


@pytest.mark.parametrize("scale", [1e-36, 1e-25, 1e19, 1e30, 1e37])
def test_the_scale_of_a_layer_does_not_matter(scale: float) -> None:
    data = [torch.randn(64, 7, generator=torch.Generator().manual_seed(i)) for i in range(2)]
    plain, scaled = MinibatchCKA(), MinibatchCKA()
    plain.add(data, None)
    scaled.add([data[0] * scale, data[1]], None)
    torch.testing.assert_close(scaled.values(), plain.values(), atol=2e-6, rtol=0)


def test_half_precision_is_multiplied_in_single() -> None:
    data = [torch.randn(64, 300, generator=torch.Generator().manual_seed(i)) for i in range(2)]
    half, single = MinibatchCKA(), MinibatchCKA()
    half.add([part.half() for part in data], None)
    single.add([part.half().float() for part in data], None)
    torch.testing.assert_close(half.values(), single.values(), atol=0, rtol=0)


def test_a_mean_a_thousand_times_the_spread_costs_few_digits() -> None:
    data = [torch.randn(64, 7, generator=torch.Generator().manual_seed(i)) for i in range(2)]
    shifted = [part + 1000 for part in data]
    single, double = MinibatchCKA(), MinibatchCKA()
    single.add(shifted, None)
    double.add([part.double() for part in shifted], None)
    torch.testing.assert_close(single.values(), double.values(), atol=1e-6, rtol=0)


def test_the_squares_beside_a_centred_matrix_are_those_of_its_parts() -> None:
    rows = torch.randn(9, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 2
    gram, (own, terms, trace, squares, spread) = centred_gram(rows)
    assert squares == pytest.approx(float(rows.square().sum()))
    centred = rows - rows.mean(dim=0)
    assert spread == pytest.approx(float(centred.square().sum()))
    whole = (centred @ centred.T).fill_diagonal_(0)
    assert (own, terms) == pytest.approx((float(gram.square().sum()), float(whole.square().sum())))
    assert trace == pytest.approx(spread**2)
    torch.testing.assert_close(gram.sum(dim=1), torch.zeros(9, dtype=torch.float64), atol=1e-12, rtol=0)


def test_the_measure_is_the_streamed_sum_of_its_batches() -> None:
    x, y = torch.randn(2, 50, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    sums = MinibatchCKA()
    for start in (0, 16, 32):  # the last two rows are no batch
        sums.add([x[start : start + 16]], [y[start : start + 16]])
    assert measures.get("cka-minibatch", batch=16)(x, y) == pytest.approx(float(sums.values()), abs=1e-12)
