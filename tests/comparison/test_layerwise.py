"""Layer by layer: the streamed value against a plain whole-data one, the matrix and its files."""

from __future__ import annotations

import math
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import likewise
from likewise.errors import InputError, UndefinedError, UnknownNameError
from likewise.matrices.layers import LayerMatrix
from tests.conftest import data_root


def hsic1(x: Tensor, y: Tensor) -> float:
    """Song et al. 2012, equation 5, by loops."""
    n = len(x)
    k = [[0.0 if i == j else float(x[i] @ x[j]) for j in range(n)] for i in range(n)]
    l = [[0.0 if i == j else float(y[i] @ y[j]) for j in range(n)] for i in range(n)]
    trace = sum(k[i][j] * l[j][i] for i in range(n) for j in range(n))
    sums = sum(map(sum, k)) * sum(map(sum, l))
    rows = sum(sum(k[i]) * sum(l[i]) for i in range(n))
    return (trace + sums / ((n - 1) * (n - 2)) - 2 * rows / (n - 2)) / (n * (n - 3))


def debiased_cka(batches: list[tuple[Tensor, Tensor]]) -> float:
    """The ratio of sums over batches, each counting by its inputs."""
    cross = sum(len(x) * hsic1(x, y) for x, y in batches)
    own = [sum(len(p[i]) * hsic1(p[i], p[i]) for p in batches) for i in (0, 1)]
    return cross / math.sqrt(own[0] * own[1])


def _two_nets() -> tuple[nn.Module, nn.Module]:
    torch.manual_seed(0)
    a = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 4))
    return a, nn.Sequential(nn.Linear(6, 9), nn.Linear(9, 3))


def _rows(net: nn.Module, inputs: Tensor) -> list[Tensor]:
    return [view.values for view in likewise.extract(net, inputs, "all").values()]


def test_the_streamed_value_is_the_ratio_of_sums_of_hsic1_over_batches() -> None:
    (a, b), inputs = _two_nets(), torch.rand(26, 6)
    parts = [inputs[:12], inputs[12:24], inputs[24:]]
    found = likewise.layerwise(a, b, parts, layers="all")
    # a batch of two has no HSIC1, so it joins the one before it
    joined = [inputs[:12], inputs[12:]]
    rows = [(_rows(a, part), _rows(b, part)) for part in joined]
    for i in range(3):
        for j in range(2):
            expected = debiased_cka([(x[i], y[j]) for x, y in rows])
            assert found.values[i, j] == pytest.approx(expected, abs=1e-5)


def test_one_batch_of_everything_is_the_whole_data_value() -> None:
    (a, b), inputs = _two_nets(), torch.rand(30, 6)
    found = likewise.layerwise(a, b, inputs, layers="all", batch_size=30)
    expected = debiased_cka([(_rows(a, inputs)[1], _rows(b, inputs)[0])])
    assert found.values[1, 0] == pytest.approx(expected, abs=1e-5)


def test_a_network_with_itself_has_a_diagonal_of_one_and_is_symmetric() -> None:
    net, inputs = _two_nets()[0], torch.rand(40, 6)
    found = likewise.layerwise(net, data=inputs, layers="all", batch_size=16)
    assert found.rows == found.columns == ["0", "1", "2"]
    np.testing.assert_allclose(np.diag(found.values), 1, atol=1e-9)
    np.testing.assert_allclose(found.values, found.values.T, atol=1e-12)
    twice = likewise.layerwise(net, _two_nets()[0], inputs, layers="all", batch_size=16)
    np.testing.assert_allclose(twice.values, found.values, atol=1e-9)


def test_inputs_sorted_by_class_do_not_mislead() -> None:
    # batches of one class alone would see only what differs within classes, which is noise here
    torch.manual_seed(0)
    classes = torch.arange(400) // 100
    inputs = nn.functional.one_hot(classes, 4) * 5.0 + 0.5 * torch.randn(400, 4)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8))
    whole = likewise.layerwise(net, data=inputs, layers="all", batch_size=400)
    cut = likewise.layerwise(net, data=inputs, layers="all", batch_size=100)
    np.testing.assert_allclose(cut.values, whole.values, atol=0.01)


def test_streaming_equals_the_whole_on_real_networks(real_data: Path) -> None:
    # the first stage of each network, on fewer inputs than the study, to stay within seconds
    weights = data_root("cifar10_resnets")
    nets = [f"zoo:{name}@{weights / name}.safetensors" for name in ("resnet20", "resnet32")]
    data = likewise.dataset("cifar10:test[:400]")
    cut, whole = (
        likewise.layerwise(*nets, data, layers="layer?.2", reduce="pool7", batch_size=size) for size in (100, 400)
    )
    np.testing.assert_allclose(cut.values, whole.values, atol=0.03)
    assert whole.values.argmax(axis=1).tolist() == [0, 1, 2]


@pytest.mark.skipif(find_spec("torch_geometric") is None, reason="torch_geometric is not installed")
def test_nodes_of_a_graph_are_compared_in_parts() -> None:
    data = likewise.dataset("digits-graph:test")
    features = next(data.batches())[0]["x"].shape[1]
    net = likewise.network(f"zoo:gcn,features={features},classes=10")
    whole = likewise.layerwise(net, data=data, batch_size=len(data))
    cut = likewise.layerwise(net, data=data, batch_size=100)
    assert not np.array_equal(cut.values, whole.values)
    np.testing.assert_allclose(cut.values, whole.values, atol=0.03)


def test_other_measures_come_from_the_registry() -> None:
    measures = pytest.importorskip("likewise.measures")
    (a, b), inputs = _two_nets(), torch.rand(30, 6)
    found = likewise.layerwise(a, b, inputs, measure="cka", layers="all")
    expected = measures.get("cka")(_rows(a, inputs)[1], _rows(b, inputs)[0])
    assert found.values[1, 0] == pytest.approx(float(expected), abs=1e-9)


def test_a_constant_layer_is_undefined_not_zero() -> None:
    net = nn.Sequential(nn.Linear(6, 5), nn.Linear(5, 4))
    nn.init.zeros_(net[1].weight)
    found = likewise.layerwise(net, data=torch.rand(30, 6), layers="all")
    assert np.isnan(found.values[1]).all()
    assert found.values[0, 0] == pytest.approx(1)


def test_both_networks_are_left_as_they_were_when_one_fails() -> None:
    a, b = nn.Sequential(nn.Linear(6, 5)), nn.Sequential(nn.Linear(7, 5))
    with pytest.raises(RuntimeError, match="failed in layer '0'"):
        likewise.layerwise(a, b, torch.rand(30, 6), layers="all")
    for part in [*a.modules(), *b.modules()]:
        assert part.training
        assert not part._forward_hooks


def test_too_few_inputs_and_no_data_are_refused() -> None:
    net = nn.Sequential(nn.Linear(6, 5))
    with pytest.raises(UndefinedError) as undefined:
        likewise.layerwise(net, data=torch.rand(3, 6), layers="all")
    assert str(undefined.value) == ("debiased CKA is not defined for a batch of 3 inputs. Use batches of at least 4.")
    with pytest.raises(InputError) as without:
        likewise.layerwise(net)
    assert str(without.value) == ("no data to show the networks. Pass data, as in data='cifar10:test[:2000]'.")


def test_batches_that_cannot_be_joined_are_refused() -> None:
    def batches() -> Iterator[Tensor]:
        yield torch.rand(8, 3, 6, 6)
        yield torch.rand(2, 3, 8, 8)

    net = nn.Sequential(nn.Conv2d(3, 4, 3))
    with pytest.raises(InputError) as caught:
        likewise.layerwise(net, data=batches(), layers="all", reduce="mean")
    assert str(caught.value) == (
        "a batch of fewer than 4 inputs cannot be joined to the one before it, since their inputs "
        "differ in size. Choose batches of at least 4."
    )


def test_layers_wider_than_the_inputs_are_marked_where_that_decides_the_score(tmp_path) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 40), nn.ReLU(), nn.Linear(40, 4))
    other = nn.Sequential(nn.Linear(6, 3), nn.Tanh(), nn.Linear(3, 2), nn.Tanh())
    found = likewise.layerwise(net, other, 9 * torch.randn(20, 6), measure="mean-cca", layers="all")
    reason = (
        "40 neurons can express anything on 20 inputs, so any network with as many that are "
        "independent gets this score. Show the networks more inputs."
    )
    assert {pair for pair in found.saturated if pair[1] in ("1", "3")} == {("1", "1"), ("1", "3")}
    assert set(found.saturated.values()) == {reason}
    assert str(found).splitlines()[-1] == f"† saturated: {reason}"
    assert ">1†</td>" in found._repr_html_()
    assert sum("†" in text.get_text() for text in found.plot().axes[0].texts) == len(found.saturated)
    found.save(tmp_path / "m.safetensors")
    assert LayerMatrix.load(tmp_path / "m.safetensors").saturated == found.saturated
    itself = likewise.layerwise(net, data=torch.rand(20, 6), measure="mean-cca", layers="all")
    assert ("1", "1") not in itself.saturated
    assert not likewise.layerwise(net, data=torch.rand(20, 6), measure="cka", layers="all").saturated


# What cannot be compared: NaN with a reason, or one sentence


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


@pytest.mark.filterwarnings("ignore:'Sequential' answers with numbers that are not finite")
@pytest.mark.parametrize("measure", ["cka-debiased", "cka"])
def test_inputs_that_are_not_finite_are_refused(measure: str) -> None:
    data = rows(100)
    data[3, 2] = torch.nan
    with pytest.raises(InputError, match="NaN or infinite entries in 1 of 100 rows"):
        likewise.layerwise(five(), data=data, layers="all", measure=measure)


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
            "layerwise takes one measure and was given 2. Call it once per measure.",
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


def test_networks_carry_the_names_they_were_given_into_tables_and_pictures() -> None:
    torch.manual_seed(0)
    nets = {name: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)) for name in ("before", "after")}
    found = likewise.layerwise(nets, data=torch.randn(30, 4), progress=False)
    assert (found.a, found.b) == ("before", "after")
    axis = found.plot().axes[0]
    assert (axis.get_ylabel(), axis.get_xlabel()) == ("before", "after")
    by_name = likewise.layerwise(
        nets, data=torch.randn(30, 4), layers={"before": "0", "after": ["0", "2"]}, progress=False
    )
    assert (by_name.rows, by_name.columns) == (["0"], ["0", "2"])
    unnamed = likewise.layerwise(*nets.values(), torch.randn(30, 4), progress=False)
    assert (unnamed.a, unnamed.b) == ("Sequential", "Sequential#2")


def test_a_mapping_of_three_networks_is_refused() -> None:
    nets = {name: nn.Linear(4, 2) for name in "abc"}
    with pytest.raises(InputError) as error:
        likewise.layerwise(nets, data=torch.randn(30, 4))
    assert str(error.value) == (
        "layerwise takes two networks, and was given a mapping of 3. Put both into one mapping."
    )
