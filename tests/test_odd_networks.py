"""Networks that lay out, order or name things otherwise: rows stay one an input, columns neurons."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import likewise
from likewise.errors import InputError
from likewise.networks import Normalised
from likewise.views import extract


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def shown(*args: object, **options: object) -> object:
    return extract(*args, progress=False, **options)


def widths(net: object, data: Tensor, layers: object = "all", reduce: str = "mean") -> dict:
    return {name: view.d for name, view in shown(net, data, layers, reduce).items()}


class TimeFirst(nn.Module):
    """Takes (n, t, d) and works on (t, n, d) inside."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(8)
        self.whole = Turned(self.encoder)
        self.fc = nn.Linear(8, 3)

    def forward(self, series: Tensor) -> Tensor:
        return self.fc(self.norm(self.whole(series).transpose(0, 1)).mean(dim=0))


class Turned(nn.Module):
    def __init__(self, inside: nn.Module) -> None:
        super().__init__()
        self.inside = [inside]

    def forward(self, series: Tensor) -> Tensor:
        return self.inside[0](series.transpose(0, 1)).transpose(0, 1)


@pytest.mark.parametrize("steps", [7, 5, 2], ids=["as many as inputs", "fewer", "two"])
@pytest.mark.parametrize("batch_size", [7, 5])
def test_time_first_inside_a_network_gives_one_row_an_input(steps: int, batch_size: int) -> None:
    net, series = TimeFirst().eval(), torch.rand(7, steps, 8)
    names = ["encoder", "encoder.layers.0", "encoder.layers.0.linear1", "norm", "whole"]
    views = shown(net, series, names, "mean", batch_size=batch_size)
    first = net.encoder.layers[0]
    with torch.no_grad():
        turned = series.transpose(0, 1)
        encoded = net.encoder(turned)
        middle = first.norm1(turned + first.self_attn(turned, turned, turned)[0])
        expected = {
            "encoder": encoded,
            "encoder.layers.0": first(turned),
            "encoder.layers.0.linear1": first.linear1(middle),
            "norm": net.norm(encoded),
            "whole": encoded,
        }
    for name, values in expected.items():
        torch.testing.assert_close(views[name].values, values.mean(dim=0), atol=1e-5, rtol=1e-4)


def test_blocks_of_a_time_first_network_are_found() -> None:
    found = widths(TimeFirst(), torch.rand(10, 7, 8), "blocks")
    assert found == {"encoder.layers.0": 8, "encoder.layers.1": 8}


@pytest.mark.usefixtures("vision")
@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("torchvision:swin_t", {
            "features.0.0": 96, "features.0.1": 96, "features.1.0.mlp.1": 384,
            "features.1.0.mlp.2": 384, "features.1.0.stochastic_depth": 96, "features.2": 192,
        }),
        ("torchvision:convnext_tiny", {
            "features.1.0.block.0": 96, "features.1.0.block.1": 96, "features.1.0.block.4": 384,
            "features.1.0.block.6": 96, "features.1.0": 96,
        }),
        ("torchvision:resnet18", {"layer1.0.relu": 64, "maxpool": 64, "layer2": 128}),
    ],
)  # fmt: skip
def test_layers_without_weights_keep_the_layout_they_are_given(
    address: str, expected: dict[str, int]
) -> None:
    images = torch.rand(2, 3, 64, 64)
    assert widths(f"{address},pretrained=false", images, list(expected)) == expected


@pytest.mark.usefixtures("vision")
@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("timm:swin_tiny_patch4_window7_224", {
            "layers.1.blocks.0.drop_path1": 192, "layers.1.blocks.0.mlp.act": 768,
            "layers.1.blocks.0": 192,
        }),
        # tokens and maps by turns within one stage
        ("timm:pvt_v2_b0", {"patch_embed": 32, "stages.0": 32, "stages": 256}),
        # windows beside channels
        ("torchvision:maxvit_t", {
            "blocks.1.layers.0.layers.window_attention.partition_op": 128,
            "blocks.1.layers.0.layers.window_attention.mlp_layer.2": 512, "blocks.1.layers.0": 128,
        }),
        # linear layers over tokens, and no normalisation to say where the channels are
        ("timm:resmlp_12_224", {"blocks.0.mlp_channels.act": 1536, "blocks.3": 384, "norm": 384}),
        ("timm:mixer_s32_224", {"blocks.0.mlp_tokens.act": 512, "blocks.0.mlp_channels.act": 2048}),
    ],
)  # fmt: skip
def test_layouts_that_change_within_a_network_are_followed(
    address: str, expected: dict[str, int]
) -> None:
    images = torch.rand(2, 3, 224, 224)
    assert widths(f"{address},pretrained=false", images, list(expected)) == expected


def test_a_linear_layer_on_maps_as_they_are_mixes_positions_not_channels() -> None:
    net = nn.Sequential(nn.Conv2d(3, 5, 3), nn.Linear(6, 6), nn.ReLU()).eval()
    images = torch.rand(10, 3, 8, 8)
    views = shown(net, images, "all", "mean")
    assert [view.d for view in views.values()] == [5, 5, 5]
    with torch.no_grad():
        torch.testing.assert_close(views["1"].values, net[:2](images).mean(dim=(2, 3)))


class Hidden(nn.Module):
    """As many channels as rows and columns, moved in between by something that is no layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 1)
        self.norm = nn.LayerNorm(8)
        self.act = nn.ReLU()
        self.drop = nn.Dropout()

    def forward(self, images: Tensor) -> Tensor:
        maps = self.act(self.norm(self.conv(images).permute(0, 2, 3, 1)))
        return self.drop(maps.permute(0, 3, 1, 2) + 1).mean(dim=(2, 3))


def test_where_the_channels_could_be_on_either_side_is_said() -> None:
    net, images = Hidden().eval(), torch.rand(5, 3, 8, 8)
    with torch.no_grad():
        normed = net.norm(net.conv(images).permute(0, 2, 3, 1))
    views = shown(net, images, ["conv", "norm", "act"], "mean")
    torch.testing.assert_close(views["norm"].values, normed.mean(dim=(1, 2)))
    torch.testing.assert_close(views["act"].values, normed.relu().mean(dim=(1, 2)))
    with pytest.raises(InputError) as caught:
        shown(net, images, "drop", "mean")
    assert str(caught.value) == (
        "'drop' of 'Hidden' gives shape (5, 8, 8, 8), whose channels may be the second axis or the "
        "last. Choose reduce='flatten', inputs of another size or another layer."
    )
    assert shown(net, images, "drop", "flatten").d == 512


def test_a_series_through_convolutions_is_averaged_over_positions() -> None:
    inner = nn.Sequential(nn.Conv1d(6, 7, 3), nn.BatchNorm1d(7), nn.ReLU())
    net = nn.Sequential(nn.Conv1d(4, 6, 3), nn.ReLU(), nn.MaxPool1d(2), inner).eval()
    series = torch.rand(10, 4, 20)
    views = shown(net, series, "all", "mean")
    assert {name: view.d for name, view in views.items()} == {
        "0": 6, "1": 6, "2": 6, "3": 7, "3.0": 7, "3.1": 7, "3.2": 7,
    }  # fmt: skip
    with torch.no_grad():
        first = net[0](series)
    torch.testing.assert_close(views["0"].values, first.mean(dim=2))
    positions = shown(net, series, "0", "spatial").values
    torch.testing.assert_close(positions, first.transpose(1, 2).reshape(-1, 6))


def test_tokens_behind_a_convolution_over_a_series_are_tokens() -> None:
    class Speech(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv1d(4, 6, 3)
            self.norm = nn.LayerNorm(6)
            self.act = nn.GELU()
            self.rnn = nn.LSTM(6, 5, batch_first=True)

        def forward(self, series: Tensor) -> Tensor:
            return self.rnn(self.act(self.norm(self.conv(series).transpose(1, 2))))[0][:, -1]

    found = widths(Speech(), torch.rand(10, 4, 20))
    assert found == {"conv": 6, "norm": 6, "act": 6, "rnn": 5}


def test_as_many_tokens_as_neurons_are_no_riddle() -> None:
    class Attending(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(6)
            self.mix = nn.Linear(6, 6)

        def forward(self, tokens: Tensor) -> Tensor:
            return self.mix(self.norm(tokens).softmax(dim=1) @ tokens)

    assert widths(Attending(), torch.rand(5, 6, 6)) == {"norm": 6, "mix": 6}


@pytest.mark.parametrize(
    ("how", "shape"), [("mean", (10, 6)), ("flatten", (10, 162)), ("spatial", (270, 6))]
)
def test_maps_of_films_are_reduced_over_time_and_place(how: str, shape: tuple[int, int]) -> None:
    net, films = nn.Sequential(nn.Conv3d(3, 6, 3), nn.ReLU()).eval(), torch.rand(10, 3, 5, 5, 5)
    found = shown(net, films, "0", how).values
    assert found.shape == shape
    with torch.no_grad():
        maps = net[0](films)
    expected = {"mean": maps.mean(dim=(2, 3, 4)), "flatten": maps.flatten(1)}
    expected["spatial"] = maps.permute(0, 2, 3, 4, 1).reshape(-1, 6)
    torch.testing.assert_close(found, expected[how])


class HeadFirst(nn.Module):
    """A classifier that is written down before the body."""

    def __init__(self, after: nn.Module | None = None) -> None:
        super().__init__()
        self.head = nn.Linear(6, 3)
        self.body = nn.Sequential(nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 6), nn.ReLU())
        self.after = after or nn.Identity()

    def forward(self, rows: Tensor) -> Tensor:
        return self.after(self.head(self.body(rows)))


@pytest.mark.parametrize("after", [nn.Identity(), nn.LogSoftmax(1), nn.Flatten(0)])
def test_the_classifier_is_the_layer_that_answers_wherever_it_is_written(after: nn.Module) -> None:
    net, rows = HeadFirst(after).eval(), torch.rand(10, 8)
    with torch.no_grad():
        expected = net.body(rows)
    torch.testing.assert_close(shown(net, rows).values, expected)


def test_a_body_that_ends_in_a_normalisation_does_not_hide_the_classifier() -> None:
    net, rows = HeadFirst().eval(), torch.rand(10, 8)
    net.body.append(nn.BatchNorm1d(6).eval())
    with torch.no_grad():
        torch.testing.assert_close(shown(net, rows).values, net.body(rows))


@pytest.mark.usefixtures("vision")
def test_the_classifier_of_a_segmentation_network_is_not_its_auxiliary_one() -> None:
    from torchvision.models.segmentation import deeplabv3_mobilenet_v3_large

    net = deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None, aux_loss=True)
    assert shown(net, torch.rand(2, 3, 64, 64), reduce="mean").d == 256


@pytest.mark.parametrize("part", [0, 1], ids=["outputs", "last state"])
def test_the_linear_layer_before_a_recurrent_answer_is_no_classifier(part: int) -> None:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.GRU(5, 4, batch_first=True)
            self.enter = nn.Linear(8, 5)

        def forward(self, series: Tensor) -> Tensor:
            return self.rnn(self.enter(series))[part].reshape(len(series), -1)

    with pytest.raises(InputError, match="the last layer its answer needs, 'rnn', is a GRU"):
        shown(Recurrent(), torch.rand(10, 6, 8), reduce="mean")


@pytest.mark.skipif(find_spec("transformers") is None, reason="transformers is not installed")
@pytest.mark.usefixtures("vision")
def test_of_an_encoder_of_text_the_pooled_state_is_penultimate() -> None:
    import transformers

    config = transformers.BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32,
    )  # fmt: skip
    net = transformers.BertModel(config).eval()
    words = {"input_ids": torch.randint(0, 50, (6, 9))}
    with torch.no_grad():
        expected = net(**words).last_hidden_state[:, 0]
    torch.testing.assert_close(shown(net, [words], reduce="mean").values, expected)


def test_where_the_answer_comes_from_no_linear_layer_the_way_to_name_one_is_said() -> None:
    net = nn.Sequential(nn.Linear(8, 5), nn.LayerNorm(5))
    net.register_module("beside", nn.Linear(2, 2))
    net.forward = lambda rows: net[1](net[0](rows))
    with pytest.raises(InputError) as caught:
        shown(net, torch.rand(10, 8))
    assert str(caught.value) == (
        "Sequential has no classifier that could be found: the last layer its answer needs, '1', "
        "is a LayerNorm. Name the layer yourself: head='name' where it is asked for, or "
        "net.head_layer = 'name'."
    )
    net.head_layer = "0"
    assert shown(net, torch.rand(10, 8)).d == 8


def test_bytes_are_shown_as_images() -> None:
    net = Normalised(nn.Sequential(nn.Conv2d(3, 4, 3)), [0.5] * 3, [0.2] * 3)
    images = torch.randint(0, 256, (5, 3, 6, 6), dtype=torch.uint8)
    found, expected = (shown(net, part, "0", "mean").values for part in (images, images / 255))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(("low", "high", "range_"), [(0, 255, "0 to 255"), (-2, 2.5, "-2 to 2.5")])
def test_images_out_of_range_are_refused(low: float, high: float, range_: str) -> None:
    net = nn.DataParallel(Normalised(nn.Sequential(nn.Conv2d(3, 4, 3)), [0.5] * 3, [0.2] * 3))
    images = torch.linspace(low, high, 5 * 3 * 36).reshape(5, 3, 6, 6)
    with pytest.raises(InputError) as caught:
        shown(net, images, "0", "mean", name="mine")
    assert str(caught.value) == (
        f"the images shown to 'mine' run from {range_}, not within [0, 1]. "
        "Divide bytes by 255, and leave normalisation to the network."
    )


def _tiny() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 3)).eval()


@pytest.mark.parametrize("folder", [False, True], ids=["in memory", "in a folder"])
@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (torch.tensor([0, -100, 2, 1]), "the labels run down to -100, and classes count from 0"),
        (
            torch.tensor([[0, 1]] * 4),
            "the labels are torch.int64 of shape (4, 2), not 4 whole numb",
        ),
        (torch.rand(4).bfloat16(), "the labels are torch.bfloat16 of shape (4,), not 4 whole numb"),
    ],
)
def test_labels_that_are_no_classes_cost_no_rows(
    labels: Tensor, sentence: str, folder: bool, tmp_path: Path
) -> None:
    batches = [{"input": torch.rand(4, 8), "labels": labels}]
    store = tmp_path if folder else None
    with pytest.warns(UserWarning, match=re.escape(sentence)):
        view = shown(_tiny(), batches, "0", store=store)
    assert view.n == 4
    assert view.outputs.labels is None


@pytest.mark.parametrize(
    "labels",
    [["good", "bad"], [torch.zeros(2, 3), torch.zeros(2, 5)], [torch.tensor(1), torch.tensor(2)]],
    ids=["words", "as many as tokens", "one a batch"],
)
def test_what_stands_in_the_place_of_labels_costs_no_rows(labels: list) -> None:
    batches = [{"input": torch.rand(2, 8), "labels": value} for value in labels]
    view = shown(_tiny(), batches, "0")
    assert view.n == 4
    assert view.outputs.labels is None


def test_targets_in_half_precision_are_no_labels() -> None:
    view = shown(_tiny(), [(torch.rand(4, 8), torch.rand(4).bfloat16())], "0")
    assert view.outputs.labels is None


@pytest.mark.parametrize("folder", [False, True], ids=["in memory", "in a folder"])
def test_an_infinite_answer_costs_no_rows(folder: bool, tmp_path: Path) -> None:
    class Masked(nn.Module):
        def forward(self, rows: Tensor) -> Tensor:
            return rows.masked_fill(rows > 0.99, -torch.inf)

    net, rows = nn.Sequential(nn.Identity(), Masked()), torch.rand(10, 3) / 2
    rows[7, 1] = 1
    sentence = (
        "'Sequential' answers with numbers that are not finite. Its rows are kept without outputs."
    )
    store = tmp_path if folder else None
    with pytest.warns(UserWarning, match=sentence):
        view = shown(net, rows, "0", store=store, batch_size=5)
    assert view.outputs is None
    assert torch.equal(view.values, rows)
    with (
        pytest.warns(UserWarning, match=sentence),
        pytest.raises(InputError, match="has NaN or infinite entries in 1 of 10 rows"),
    ):
        shown(net, rows, "logits", store=store)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
@pytest.mark.filterwarnings("ignore:the labels run to 9")
def test_networks_of_any_precision_are_shown_data(dtype: torch.dtype) -> None:
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 5)).to(dtype)
    data = likewise.data("digits:test[:20]")
    found = shown(net, data, "1")
    images, _ = next(data.batches(20))
    with torch.no_grad():
        expected = net(images.to(dtype))
    torch.testing.assert_close(found.values, expected.to(found.values.dtype))
    assert found.probe == data.probe


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


@dataclass
class Answer:
    loss: Tensor
    logits: Tensor


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


@pytest.mark.filterwarnings("ignore:the labels run to")
@pytest.mark.parametrize("form", ["tensor", "array", "dataset", "data"])
def test_extraction_draws_nothing_from_the_callers_generator(form: str) -> None:
    rows = torch.rand(10, 64)
    data = {
        "tensor": rows,
        "array": rows.numpy(),
        "dataset": torch.utils.data.TensorDataset(rows, torch.arange(10) % 3),
        "data": likewise.data("digits:test[:20]"),
    }[form]
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 5), nn.Dropout(), nn.Linear(5, 3))
    before = torch.get_rng_state()
    shown(net, data, ["penultimate", "1"], "mean")
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("device", ["gpu", "meta", "cuda"])
def test_a_device_that_is_not_there_is_refused(device: str) -> None:
    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("there is one here")
    with pytest.raises(InputError) as caught:
        shown(_tiny(), torch.rand(10, 8), "0", device=device)
    assert str(caught.value) == (
        f"device {device!r} cannot be used here. Leave it out, or name one that torch has, "
        "such as 'cpu'."
    )
