"""Data addresses: name, split and slice."""

from __future__ import annotations

import pytest

import likewise
from likewise.errors import InputError


def test_a_split_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError) as error:
        likewise.dataset("digits", split="tarin")
    assert str(error.value) == (
        "digits has no split 'tarin', asked for by 'digits'. Did you mean 'train'? It has test, train, all."
    )
