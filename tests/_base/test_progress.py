"""Warnings name the line that called into this package, however deep inside they arise."""

from __future__ import annotations

import warnings
from pathlib import Path

import torch

import likewise
from likewise._base.progress import warn
from likewise.errors import DamagedStoreWarning


def test_a_warning_points_at_the_caller_of_this_package() -> None:
    batches = [(torch.rand(4, 3), torch.tensor([0, 1, 9, 0]))]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        likewise.extract(torch.nn.Linear(3, 2), batches, "logits")
        likewise.classes.from_confusion([0, 0], [0, 1])
        warn("here", DamagedStoreWarning)
    assert [Path(warning.filename) for warning in caught] == [Path(__file__)] * 3
    assert caught[2].category is DamagedStoreWarning
    assert caught[2].lineno == caught[1].lineno + 1 == caught[0].lineno + 2
