"""Layer by layer, where there is nothing to compare: NaN with a reason, or one sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import likewise
from likewise.errors import InputError, UnknownNameError
from likewise.matrices.layers import LayerMatrix
from likewise.measures.minibatch import MinibatchCKA


def five() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))


def rows(n: int = 600) -> Tensor:
    return torch.randn(n, 10, generator=torch.Generator().manual_seed(1))


def dead() -> nn.Sequential:
    net = five()
    net[2].weight.data.zero_()
    return net


@pytest.mark.parametrize("measure", ["cka-debiased", "cka"])
def test_dead_layers_are_undefined_with_their_reason(measure: str) -> None:
    found = likewise.layerwise(dead(), data=rows(), layers="all", batch_size=64, measure=measure)
    assert np.isnan(found.values[2:]).all()
    assert np.isnan(found.values[:, 2:]).all()
    np.testing.assert_allclose(np.diag(found.values)[:2], 1, atol=1e-9)
    assert len(found.reasons) == 25 - 4
    assert "is constant: all 600 rows are the same" in found.reasons["0", "3"]
    assert "'3' of 'Sequential'" in found.reasons["0", "3"] or measure == "cka"


def test_a_large_shift_of_a_dead_layer_is_no_life() -> None:
    net = dead()
    nn.init.constant_(net[2].bias, 1e6 / 3)
    found = likewise.layerwise(net, data=rows(), layers="all", batch_size=100)
    assert np.isnan(found.values[2:]).all()


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


@pytest.mark.filterwarnings("ignore:'Sequential' answers with numbers that are not finite")
@pytest.mark.parametrize("measure", ["cka-debiased", "cka"])
def test_inputs_that_are_not_finite_are_refused(measure: str) -> None:
    data = rows(100)
    data[3, 2] = torch.nan
    with pytest.raises(InputError, match="NaN or infinite entries in 1 of 100 rows"):
        likewise.layerwise(five(), data=data, layers="all", measure=measure)


def test_reasons_come_back_from_a_file(tmp_path: Path) -> None:
    matrix = LayerMatrix("a", "b", ["p"], ["q"], [[float("nan")]], "cka", {}, {("p", "q"): "dead"})
    matrix.save(tmp_path / "m.safetensors")
    assert LayerMatrix.load(tmp_path / "m.safetensors").reasons == {("p", "q"): "dead"}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"measure": "disagreement"},
            "disagreement looks at what a network answers, which is the same for all its layers. "
            "Choose a measure of representations, or use likewise.compare.",
        ),
        (
            {"measure": ["cka", "rsa"]},
            "layerwise takes one measure and was given 2. Call it once a measure.",
        ),
        (
            {"data": None, "b": "digits:test[:20]"},
            "no data to show the networks: the second argument, 'digits:test[:20]', is another "
            "network. Pass data, as in data='cifar10:test[:2000]'.",
        ),
        (
            {"data": None, "b": torch.zeros(4, 10)},
            "no data to show the networks: the second argument, a Tensor, is another network. "
            "Pass data, as in data='cifar10:test[:2000]'.",
        ),
    ],
)
def test_what_cannot_be_compared_by_layer_is_refused(given: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError) as error:
        likewise.layerwise(five(), **{"data": rows(20), "layers": "all", **given})
    assert str(error.value) == sentence


def test_a_wrong_measure_is_told_before_a_network_runs() -> None:
    net = five()
    net.register_forward_pre_hook(lambda *_: pytest.fail("the network was shown inputs"))
    with pytest.raises(UnknownNameError) as error:
        likewise.layerwise(net, data=rows(20), measure="ckaa", layers="all")
    assert str(error.value) == "no measure named 'ckaa'. Did you mean 'cka'?"


@pytest.mark.parametrize("measure", ["cka-debiased", "cka"])
def test_positions_are_compared_only_where_layers_have_equally_many(measure: str) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2))
    images = torch.rand(12, 3, 8, 8)
    found = likewise.layerwise(net, data=images, layers=["0", "1"], reduce="spatial", measure=measure)
    assert found.values.shape == (2, 2)
    # 12 images of 6 x 6 positions, and of 3 x 3 after pooling
    with pytest.raises(InputError, match=r"gives 432 rows and '.*2.* gives 108, so their rows are"):
        likewise.layerwise(net, data=images, layers="all", reduce="spatial", measure=measure)


def test_words_are_averaged_where_nothing_else_is_said() -> None:
    words = (["good", "bad", "fine", "a", "the", "one", "film", "was", "not", "so", "very"] * 5)[:40]
    texts = [" ".join(words[i : i + 2 + i % 5]) for i in range(30)]
    net = likewise.network("zoo:bert-tiny")
    found = likewise.layerwise(net, data=texts)
    assert found.about["reduction"] == "mean"
    np.testing.assert_array_equal(found.values, likewise.layerwise(net, data=texts, reduce="mean").values)
    assert likewise.layerwise(five(), data=rows(20)).about["reduction"] == "flatten"
