"""A network in another precision than that of its weights, and as it was afterwards."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from likewise.errors import InputError
from likewise.networks.inputs.precision import in_precision


def test_half_precision_is_torchs_autocast() -> None:
    net, rows = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8)), torch.randn(4, 8)
    with in_precision(net, "bfloat16"):
        found = net(rows)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected = net(rows)
    assert torch.equal(found, expected)
    assert not torch.equal(found, net(rows))


def test_weights_of_half_precision_are_raised_meanwhile() -> None:
    net = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)).to(torch.bfloat16).eval()
    kept = {name: value.data_ptr() for name, value in net.state_dict().items()}
    rows = torch.randn(4, 8)
    with in_precision(net, "float32"):
        found = net(rows)
    assert {name: value.data_ptr() for name, value in net.state_dict().items()} == kept
    assert {value.dtype for value in net.parameters()} == {torch.bfloat16}
    assert torch.equal(found, net.float()(rows))


def test_another_half_precision_than_that_of_the_weights_works() -> None:
    net = nn.Sequential(nn.Conv1d(2, 2, 1), nn.BatchNorm1d(2)).to(torch.bfloat16).eval()
    with in_precision(net, "float16"):
        assert net(torch.randn(4, 2, 3)).isfinite().all()


@pytest.mark.parametrize(
    ("dtype", "hint"),
    [("float61", " Did you mean 'float16'?"), ("int8", ""), (torch.float16, " Did you mean 'float16'?")],
)
def test_an_unknown_precision_is_refused(dtype: object, hint: str) -> None:
    with pytest.raises(InputError) as error, in_precision(nn.Linear(2, 2), dtype):  # type: ignore[arg-type]
        pass
    assert str(error.value) == f"no dtype named {dtype!r}.{hint} There are float32, float16, bfloat16."
