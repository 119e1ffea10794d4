"""A network watched over batches: precision, shapes and answers of every kind."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

import likewise
from likewise.errors import InputError
from likewise.networks import Normalised
from tests.views.helpers import _tiny, shown


@dataclass
class Answer:
    loss: Tensor
    logits: Tensor


@pytest.mark.parametrize(("low", "high", "range_"), [(0, 255, "0 to 255"), (-2, 2.5, "-2 to 2.5")])
def test_images_out_of_range_are_refused(low: float, high: float, range_: str) -> None:
    net = nn.DataParallel(Normalised(nn.Sequential(nn.Conv2d(3, 4, 3)), [0.5] * 3, [0.2] * 3))
    images = torch.linspace(low, high, 5 * 3 * 36).reshape(5, 3, 6, 6)
    with pytest.raises(InputError) as caught:
        shown(net, images, "0", reduce="mean", name="mine")
    assert str(caught.value) == (
        f"the images shown to 'mine' run from {range_}, not within [0, 1]. "
        "Divide bytes by 255, and leave normalisation to the network."
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
@pytest.mark.filterwarnings("ignore:the labels for .* must be")
def test_networks_of_any_precision_are_shown_data(dtype: torch.dtype) -> None:
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 5)).to(dtype)
    data = likewise.dataset("digits:test[:20]")
    found = shown(net, data, "1")
    images, _ = next(data.batches(20))
    with torch.no_grad():
        expected = net(images.to(dtype))
    torch.testing.assert_close(found.values, expected.to(found.values.dtype))
    assert found.probe == data.probe


@pytest.mark.parametrize("kind", [Answer, SimpleNamespace])
def test_an_answer_in_an_object_is_found(kind: type) -> None:
    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = _tiny()

        def forward(self, rows: Tensor) -> object:
            logits = self.net(rows)
            return kind(loss=logits.sum(), logits=logits)

    net, rows = Wrapped(), torch.rand(10, 8)
    with torch.no_grad():
        expected = net.net(rows)
    torch.testing.assert_close(shown(net, rows, "logits").values, expected)
    torch.testing.assert_close(shown(net, rows).outputs.logits, expected)


@pytest.mark.parametrize("batch_size", [10, 9])
def test_one_squeezed_number_an_input_is_an_answer(batch_size: int) -> None:
    class Binary(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.fc = nn.Linear(8, 4), nn.Linear(4, 1)

        def forward(self, rows: Tensor) -> Tensor:
            return self.fc(self.body(rows)).squeeze(1)

    net, rows = Binary(), torch.rand(10, 8)
    with torch.no_grad():
        expected = net(rows)[:, None]
    torch.testing.assert_close(shown(net, rows, "logits", batch_size=batch_size).values, expected)
    view = shown(net, rows, batch_size=batch_size)
    assert view.d == 4
    torch.testing.assert_close(view.outputs.logits, expected)
