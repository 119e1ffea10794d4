"""Every verb takes networks in half and in double precision, whatever the precision of the inputs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import nn

import likewise
from likewise.analysis.trace import record_pass
from likewise.data import Data
from likewise.views.batches import Batch

ROUNDING = {torch.float16: 0.01, torch.bfloat16: 0.05, torch.float64: 1e-4}
_PATCHES = torch.rand(12, 3, 2, 2, generator=torch.Generator().manual_seed(0))
IMAGES = nn.functional.interpolate(_PATCHES, size=(32, 32), mode="bilinear")


@cache
def _single(source: str) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if source == "zoo":
            return likewise.network("zoo:lenet").eval()
        if source == "timm":
            if find_spec("timm") is None:
                pytest.skip("timm is not installed")
            return likewise.network("timm:test_resnet,pretrained=false,num_classes=10").eval()
        maps = [nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(4), nn.Flatten()]
        return nn.Sequential(*maps, nn.Linear(294, 10)).eval()


@cache
def _data(source: str) -> Data:
    """Images with what the network in single precision answers as their labels."""
    with torch.no_grad():
        labels = _single(source)(IMAGES).argmax(dim=1)
    return Data("random:images", "image", IMAGES, labels, [str(i) for i in range(10)])


def _layers(net: nn.Module, _: Data) -> Any:
    return [(entry.name, entry.shape) for entry in likewise.layers(net, IMAGES)]


def _extract(net: nn.Module, _: Data) -> Any:
    return likewise.extract(net, IMAGES, "logits", progress=False).values


def _layerwise(net: nn.Module, _: Data) -> Any:
    return torch.from_numpy(likewise.layerwise(net, data=IMAGES, progress=False).values).float()


def _trace(net: nn.Module, _: Data) -> Any:
    return [call.path for call in record_pass(net, Batch(IMAGES[:2], None, 0), "the network").modules]


def _attack(net: nn.Module, data: Data) -> Any:
    images, labels = IMAGES[:2], data.labels
    assert labels is not None
    changed = likewise.attacks.pgd(net, images, labels[:2], eps=8 / 255, iterations=1, seed=0).images
    assert changed.dtype == torch.float32
    assert 0 < float((changed - images).abs().max()) <= 8.001 / 255
    return None  # the sign of a slope near zero is a matter of rounding


def _transfer(net: nn.Module, data: Data) -> Any:
    small = Data(data.name, "image", data.inputs[:4], data.labels[:4], data.classes)  # type: ignore[index]
    return likewise.transfer.one_sided({"a": net}, {"b": net}, small, "fgsm", progress=False).counts


VERBS: list[Callable[[nn.Module, Data], Any]] = [_layers, _extract, _layerwise, _trace, _attack, _transfer]
SOURCES = ["module", "zoo", "timm"]
CASES = [(verb, source) for verb in VERBS for source in SOURCES if (verb, source) != (_transfer, "timm")]  # slow


@pytest.mark.parametrize(("verb", "source"), CASES, ids=[f"{verb.__name__[1:]}-{source}" for verb, source in CASES])
@pytest.mark.parametrize("dtype", ROUNDING, ids=lambda dtype: str(dtype).removeprefix("torch."))
def test_a_verb_takes_networks_of_any_precision(verb: Any, source: str, dtype: torch.dtype) -> None:
    data, single = _data(source), _single(source)
    expected, result = verb(single, data), verb(copy.deepcopy(single).to(dtype), data)
    if isinstance(expected, torch.Tensor):
        scale = float(expected.abs().max())
        torch.testing.assert_close(result.float(), expected.float(), rtol=0, atol=ROUNDING[dtype] * scale)
    else:
        assert result == expected


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("dtype", ROUNDING, ids=lambda dtype: str(dtype).removeprefix("torch."))
@pytest.mark.parametrize("sides", ["second", "first", "both"])
def test_a_copy_of_another_precision_is_close(source: str, dtype: torch.dtype, sides: str) -> None:
    single, other = _single(source), copy.deepcopy(_single(source)).to(dtype)
    a, b = {"second": (single, other), "first": (other, single), "both": (other, copy.deepcopy(other))}[sides]
    change = likewise.diff({"a": a, "b": b}, data=IMAGES, transfer=False, progress=False)
    rounding = "identical" if sides == "both" else "equal but for rounding" if dtype == torch.float64 else "close"
    if change.flips:  # of two classes that are as likely but for rounding
        assert max(flip.margin for flip in change.flips) < ROUNDING[dtype]
    else:
        assert change.verdict == rounding
    assert change.scores["cka-debiased"] > 0.99
    assert change.first_diverged is None


@pytest.mark.parametrize("dtype", ROUNDING, ids=lambda dtype: str(dtype).removeprefix("torch."))
def test_a_mean_and_deviation_fit_a_network_of_any_precision(dtype: torch.dtype) -> None:
    single = _single("module")
    other = copy.deepcopy(single).to(dtype)
    shown = {"mean": (0.2, 0.3, 0.4), "std": 0.5, "progress": False}
    expected, values = (likewise.extract(net, IMAGES, "logits", **shown).values.float() for net in (single, other))
    torch.testing.assert_close(values, expected, rtol=0, atol=ROUNDING[dtype] * float(expected.abs().max()))
    assert likewise.diff({"a": single, "b": other}, data=IMAGES, transfer=False, **shown).scores["cka-debiased"] > 0.99
    counts = likewise.transfer.one_sided(single, {"b": other}, _data("module"), "fgsm", **shown).counts
    assert sum(counts) > 0
    assert likewise.network(other, mean=0.5, std=0.5).mean.dtype == dtype
