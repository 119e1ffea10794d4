"""Labelled inputs: rows are chosen, batches are made."""

from __future__ import annotations

import pytest
import torch

import likewise
from likewise.errors import InputError


def test_rows_are_chosen_by_whole_numbers_and_whole_masks() -> None:
    data = likewise.dataset("digits:test[:20]")
    with pytest.raises(InputError) as half:
        data[[1.5]]  # type: ignore[list-item]
    assert str(half.value) == "inputs are counted by whole numbers, not by torch.float32. Round them."
    with pytest.raises(InputError) as mask:
        data[torch.ones(5, dtype=torch.bool)]
    assert str(mask.value) == "a mask of 5 cannot choose among 20 inputs. Give 20."
    assert len(data[[]]) == 0
    assert len(data[torch.arange(20) < 3]) == 3
