"""Reductions of tokens and maps, each against a slow plain loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

import likewise
from likewise import measures
from likewise.errors import InputError
from likewise.views import reduced
from tests.helpers import sentence

X = np.random.default_rng(0).normal(size=(30, 5))

TOKENS = torch.arange(24.0).reshape(2, 4, 3)
# the first text has two real tokens and padding behind them, the second padding before three
MASK = torch.tensor([[1, 1, 0, 0], [0, 1, 1, 1]])


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("cls", [TOKENS[0, 0], TOKENS[1, 1]]),
        ("last", [TOKENS[0, 1], TOKENS[1, 3]]),
        ("mean", [(TOKENS[0, 0] + TOKENS[0, 1]) / 2, TOKENS[1, 1:].sum(0) / 3]),
        ("spatial", [*TOKENS[0, :2], *TOKENS[1, 1:]]),
    ],
)
def test_padding_on_either_side_never_counts(how: str, expected: list[Tensor]) -> None:
    torch.testing.assert_close(reduced(TOKENS, how, mask=MASK), torch.stack(expected))


def test_maps_are_pooled_to_seven_by_seven_as_the_benchmark_does() -> None:
    maps = torch.rand(2, 3, 16, 12)
    expected = torch.empty(2, 3, 7, 7)
    for i in range(7):
        for j in range(7):
            rows = slice(i * 16 // 7, -(-(i + 1) * 16 // 7))
            columns = slice(j * 12 // 7, -(-(j + 1) * 12 // 7))
            expected[:, :, i, j] = maps[:, :, rows, columns].mean(dim=(2, 3))
    torch.testing.assert_close(reduced(maps, "pool7"), expected.flatten(1))
    positions = expected.permute(0, 2, 3, 1).reshape(-1, 3)
    torch.testing.assert_close(reduced(maps, "pool7-spatial"), positions)


def test_maps_no_larger_than_seven_by_seven_stay_as_they_are() -> None:
    maps = torch.rand(2, 3, 4, 7)
    assert torch.equal(reduced(maps, "pool7"), maps.flatten(1))


def test_tokens_cannot_be_pooled() -> None:
    with pytest.raises(InputError) as caught:
        reduced(TOKENS, "pool7", "'block' of 'net'")
    assert str(caught.value) == (
        "'block' of 'net' holds tokens, which have no 7 × 7 positions. "
        "Choose reduce='mean', 'cls', 'last' or 'flatten'."
    )


def test_maps_have_no_first_token() -> None:
    with pytest.raises(InputError) as caught:
        reduced(torch.rand(2, 3, 4, 4), "cls", "'conv' of 'net'")
    assert str(caught.value) == (
        "'conv' of 'net' holds maps, which have no 'cls' token. Choose reduce='mean', 'flatten' or 'spatial'."
    )


def test_what_has_no_seven_by_seven_positions_is_not_pooled_so() -> None:
    with pytest.raises(InputError) as caught:
        reduced(torch.rand(2, 3, 9, 9, 9), "pool7", "'conv' of 'net'")
    assert str(caught.value) == (
        "'conv' of 'net' has shape (2, 3, 9, 9, 9), which has no 7 × 7 positions. "
        "Choose reduce='mean', 'flatten' or 'spatial'."
    )


def test_padding_is_not_flattened_into_rows() -> None:
    with pytest.raises(InputError) as caught:
        reduced(torch.rand(2, 3, 4), "flatten", "'block' of 'net'", torch.tensor([[1, 1, 0]] * 2))
    assert str(caught.value) == (
        "'block' of 'net' holds padding, which 'flatten' would keep. Choose reduce='mean', 'cls' or 'last'."
    )
    assert reduced(torch.rand(2, 3, 4), "flatten", mask=torch.ones(2, 3)).shape == (2, 12)


def test_a_reduction_makes_them_comparable() -> None:
    tokens = np.random.default_rng(1).normal(size=(30, 4, 5))
    assert measures.cka(tokens, X, reduce="mean") == measures.cka(tokens.mean(axis=1), X)
    assert likewise.compare({"a": tokens, "b": X}, "cka", reduce="cls")["a", "b"] == pytest.approx(
        measures.cka(tokens[:, 0], X)
    )


def test_unknown_and_unfit_reductions() -> None:
    assert sentence(ValueError, measures.cka, np.ones((30, 4, 5)), X, reduce="meen") == (
        "no reduction named 'meen'. Did you mean 'mean'? There are mean, cls, last, flatten, spatial, "
        "pool7, pool7-spatial."
    )
    assert sentence(ValueError, reduced, torch.ones(3, 4, 5, 5), "cls", "'conv1'") == (
        "'conv1' holds maps, which have no 'cls' token. Choose reduce='mean', 'flatten' or 'spatial'."
    )
