"""Batches of whatever data is: arrays, tensors, datasets, loaders."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import likewise
from likewise.networks import Normalised
from tests.views.helpers import _tiny, shown


def test_bytes_are_shown_as_images() -> None:
    net = Normalised(nn.Sequential(nn.Conv2d(3, 4, 3)), [0.5] * 3, [0.2] * 3)
    images = torch.randint(0, 256, (5, 3, 6, 6), dtype=torch.uint8)
    found, expected = (shown(net, part, "0", "mean").values for part in (images, images / 255))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("form", ["whole", "batches", "mappings", "read only"])
def test_arrays_are_shown_like_tensors(form: str) -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = _tiny()

        def forward(self, input: Tensor) -> Tensor:
            return self.net(input)

    net, rows, labels = Named(), np.random.default_rng(0).random((10, 8)), np.arange(10) % 3
    data = {
        "whole": rows,
        "batches": [(rows[:5], labels[:5]), (rows[5:], labels[5:])],
        "mappings": [{"input": rows, "labels": labels}],
        "read only": np.broadcast_to(rows, rows.shape),
    }[form]
    found = shown(net, data, "net.0")
    expected = shown(net, torch.from_numpy(rows).float(), "net.0")
    torch.testing.assert_close(found.values, expected.values)
    if form in ("batches", "mappings"):
        assert found.outputs.labels.tolist() == labels.tolist()


@pytest.mark.filterwarnings("ignore:the labels for .* must be")
@pytest.mark.parametrize("form", ["tensor", "array", "dataset", "data"])
def test_extraction_draws_nothing_from_the_callers_generator(form: str) -> None:
    rows = torch.rand(10, 64)
    data = {
        "tensor": rows,
        "array": rows.numpy(),
        "dataset": torch.utils.data.TensorDataset(rows, torch.arange(10) % 3),
        "data": likewise.dataset("digits:test[:20]"),
    }[form]
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 5), nn.Dropout(), nn.Linear(5, 3))
    before = torch.get_rng_state()
    shown(net, data, ["penultimate", "1"], "mean")
    assert torch.equal(torch.get_rng_state(), before)
