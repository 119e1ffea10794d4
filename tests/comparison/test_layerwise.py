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
from likewise.errors import InputError, StoreError, UndefinedError
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


@pytest.fixture
def matrix() -> LayerMatrix:
    values = [[1.0, 0.25, 0.5], [0.125, 0.0, float("nan")]]
    return LayerMatrix("a", "b@x/w", ["p", "q"], ["r", "s", "t"], values, "cka", {"seed": "0"})


def test_a_matrix_comes_back_from_its_file(matrix: LayerMatrix, tmp_path: Path) -> None:
    matrix.save(tmp_path / "m.safetensors")
    again = LayerMatrix.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.values, matrix.values)
    assert (again.a, again.b, again.rows, again.columns) == (
        "a",
        "b@x/w",
        ["p", "q"],
        ["r", "s", "t"],
    )
    assert (again.measure, again.about) == ("cka", {"seed": "0"})


def test_a_file_that_holds_no_matrix_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(b"something else")
    with pytest.raises(StoreError) as caught:
        LayerMatrix.load(path)
    assert str(caught.value) == (f"{path} holds no layer matrix. Give a file that LayerMatrix.save wrote.")


def test_every_layer_needs_a_name() -> None:
    with pytest.raises(InputError) as caught:
        LayerMatrix("a", "b", ["p"], ["r"], [[1.0, 2.0]], "cka")
    assert str(caught.value) == ("1 rows and 1 columns were named for values of shape (1, 2). Name every layer once.")


def test_the_picture_shows_every_layer_and_the_short_names(matrix: LayerMatrix) -> None:
    axes = matrix.plot().axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["p", "q"]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["r", "s", "t"]
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("a", "b@w")


def test_a_folder_gets_numbers_table_and_picture(matrix: LayerMatrix, tmp_path: Path) -> None:
    paths = matrix.write(tmp_path / "new")
    assert [path.name for path in paths] == [
        "layerwise.safetensors",
        "layerwise.csv",
        "layerwise.png",
    ]
    assert paths[1].read_text().splitlines()[1] == "p,1.0,0.25,0.5"
    assert paths[2].read_bytes().startswith(b"\x89PNG")


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
    assert "<td>1†</td>" in found._repr_html_()
    assert sum("†" in text.get_text() for text in found.plot().axes[0].texts) == len(found.saturated)
    found.save(tmp_path / "m.safetensors")
    assert LayerMatrix.load(tmp_path / "m.safetensors").saturated == found.saturated
    itself = likewise.layerwise(net, data=torch.rand(20, 6), measure="mean-cca", layers="all")
    assert ("1", "1") not in itself.saturated
    assert not likewise.layerwise(net, data=torch.rand(20, 6), measure="cka", layers="all").saturated
