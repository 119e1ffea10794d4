"""Which layers are meant: names, patterns, blocks, and networks that cannot be looked into."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from likewise.errors import InputError
from likewise.networks import head
from likewise.views.extract import extract


def _tiny() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 3)).eval()


def _normed(kind: str) -> nn.Module:
    wrap = getattr(nn.utils.parametrizations, kind)
    return nn.Sequential(wrap(nn.Linear(8, 5)), nn.ReLU(), wrap(nn.Linear(5, 3, bias=False))).eval()


@pytest.mark.parametrize("kind", ["weight_norm", "spectral_norm"])
def test_what_makes_weights_is_no_layer(kind: str) -> None:
    net, rows = _normed(kind), torch.rand(10, 8)
    assert list(extract(net, rows, "blocks")) == ["0", "2"]
    assert list(extract(net, rows, "all")) == ["0", "1", "2"]
    found = head(net)
    assert found.layer_name == "2"
    assert torch.equal(found.weight, net[2].weight)
    assert extract(net, rows).d == 5


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_quantised_networks_have_blocks_and_a_classifier() -> None:
    net = torch.ao.quantization.quantize_dynamic(_tiny(), {nn.Linear}, dtype=torch.qint8)
    rows = torch.rand(10, 8)
    assert list(extract(net, rows, "blocks")) == ["0", "2"]
    assert extract(net, rows).d == 5
    found = head(net)
    assert found.layer_name == "2"
    assert torch.equal(found.weight, net[2].weight().dequantize())


@pytest.mark.filterwarnings("ignore:Lazy modules")
@pytest.mark.parametrize("layers", ["blocks", "penultimate"])
def test_a_network_without_sizes_yet_is_refused(layers: str) -> None:
    net = nn.Sequential(nn.LazyLinear(5), nn.ReLU(), nn.LazyLinear(3))
    with pytest.raises(InputError) as caught:
        extract(net, torch.rand(10, 8), layers)
    assert str(caught.value) == (
        "'0' of 'Sequential' is a LazyLinear, whose size shows with its first inputs. "
        "Show it some before: network(inputs)."
    )


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_of_a_scripted_network_there_are_logits_alone() -> None:
    net, rows = _tiny(), torch.rand(10, 8)
    scripted = torch.jit.trace(net, rows)
    with torch.no_grad():
        torch.testing.assert_close(extract(scripted, rows, "logits").values, net(rows))
    with pytest.raises(InputError) as caught:
        extract(scripted, rows, "0", name="mine")
    assert str(caught.value) == (
        "'mine' is compiled by TorchScript, so nothing but its 'logits' can be watched. "
        "Pass the module it was made from."
    )
