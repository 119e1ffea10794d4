"""Networks that lay things out otherwise: rows stay one an input, columns neurons."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from likewise.views.extract import extract
from tests.networks.helpers import refused


def shown(*args: object, **options: object) -> object:
    return extract(*args, progress=False, **options)


def widths(net: object, data: Tensor, layers: object = "all", reduce: str = "mean") -> dict:
    return {name: view.d for name, view in shown(net, data, layers, reduce=reduce).items()}


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
    views = shown(net, series, names, reduce="mean", batch_size=batch_size)
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
        (
            "torchvision:swin_t",
            {
                "features.0.0": 96,
                "features.0.1": 96,
                "features.1.0.mlp.1": 384,
                "features.1.0.mlp.2": 384,
                "features.1.0.stochastic_depth": 96,
                "features.2": 192,
            },
        ),
        (
            "torchvision:convnext_tiny",
            {
                "features.1.0.block.0": 96,
                "features.1.0.block.1": 96,
                "features.1.0.block.4": 384,
                "features.1.0.block.6": 96,
                "features.1.0": 96,
            },
        ),
        ("torchvision:resnet18", {"layer1.0.relu": 64, "maxpool": 64, "layer2": 128}),
    ],
)
def test_layers_without_weights_keep_the_layout_they_are_given(address: str, expected: dict[str, int]) -> None:
    images = torch.rand(2, 3, 64, 64)
    assert widths(f"{address},pretrained=false", images, list(expected)) == expected


@pytest.mark.usefixtures("vision")
@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (
            "timm:swin_tiny_patch4_window7_224",
            {
                "layers.1.blocks.0.drop_path1": 192,
                "layers.1.blocks.0.mlp.act": 768,
                "layers.1.blocks.0": 192,
            },
        ),
        # tokens and maps by turns within one stage
        ("timm:pvt_v2_b0", {"patch_embed": 32, "stages.0": 32, "stages": 256}),
        # windows beside channels
        (
            "torchvision:maxvit_t",
            {
                "blocks.1.layers.0.layers.window_attention.partition_op": 128,
                "blocks.1.layers.0.layers.window_attention.mlp_layer.2": 512,
                "blocks.1.layers.0": 128,
            },
        ),
        # linear layers over tokens, and no normalisation to say where the channels are
        ("timm:resmlp_12_224", {"blocks.0.mlp_channels.act": 1536, "blocks.3": 384, "norm": 384}),
        ("timm:mixer_s32_224", {"blocks.0.mlp_tokens.act": 512, "blocks.0.mlp_channels.act": 2048}),
    ],
)
def test_layouts_that_change_within_a_network_are_followed(address: str, expected: dict[str, int]) -> None:
    images = torch.rand(2, 3, 224, 224)
    assert widths(f"{address},pretrained=false", images, list(expected)) == expected


def test_a_linear_layer_on_maps_as_they_are_mixes_positions_not_channels() -> None:
    net = nn.Sequential(nn.Conv2d(3, 5, 3), nn.Linear(6, 6), nn.ReLU()).eval()
    images = torch.rand(10, 3, 8, 8)
    views = shown(net, images, "all", reduce="mean")
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


class SecondAxisNorm(nn.LayerNorm):
    """As libraries write a normalisation of maps, under a name that does not say so."""

    def forward(self, maps: Tensor) -> Tensor:
        return super().forward(maps.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Turn(nn.Module):
    def __init__(self, *dims: int) -> None:
        super().__init__()
        self.order = dims

    def forward(self, maps: Tensor) -> Tensor:
        return maps.permute(self.order)


def test_a_normalisation_of_the_second_axis_is_found_by_trying_it() -> None:
    """As many channels as rows and columns, so that sizes tell nothing."""
    net, images = nn.Sequential(nn.Conv2d(3, 8, 1), SecondAxisNorm(8), nn.ReLU()).eval(), torch.rand(5, 3, 8, 8)
    with torch.no_grad():
        expected = net(images).mean(dim=(2, 3))
    torch.testing.assert_close(shown(net, images, "2", reduce="mean").values, expected)


def test_a_module_that_moves_axes_is_found_by_what_it_gives() -> None:
    net, images = nn.Sequential(nn.Conv2d(3, 8, 1), Turn(0, 2, 3, 1), nn.ReLU()).eval(), torch.rand(5, 3, 8, 8)
    with torch.no_grad():
        expected = net(images).mean(dim=(1, 2))
    torch.testing.assert_close(shown(net, images, "2", reduce="mean").values, expected)


def test_where_the_channels_could_be_on_either_side_is_said() -> None:
    net, images = Hidden().eval(), torch.rand(5, 3, 8, 8)
    with torch.no_grad():
        normed = net.norm(net.conv(images).permute(0, 2, 3, 1))
    views = shown(net, images, ["conv", "norm", "act"], reduce="mean")
    torch.testing.assert_close(views["norm"].values, normed.mean(dim=(1, 2)))
    torch.testing.assert_close(views["act"].values, normed.relu().mean(dim=(1, 2)))
    assert refused(lambda: shown(net, images, "drop", reduce="mean")) == (
        "'drop' of 'Hidden' gives shape (5, 8, 8, 8), whose channels may be the second axis or the "
        "last. Choose reduce='flatten', inputs of another size or another layer."
    )
    assert shown(net, images, "drop", reduce="flatten").d == 512


def test_a_series_through_convolutions_is_averaged_over_positions() -> None:
    inner = nn.Sequential(nn.Conv1d(6, 7, 3), nn.BatchNorm1d(7), nn.ReLU())
    net = nn.Sequential(nn.Conv1d(4, 6, 3), nn.ReLU(), nn.MaxPool1d(2), inner).eval()
    series = torch.rand(10, 4, 20)
    views = shown(net, series, "all", reduce="mean")
    assert {name: view.d for name, view in views.items()} == {
        "0": 6,
        "1": 6,
        "2": 6,
        "3": 7,
        "3.0": 7,
        "3.1": 7,
        "3.2": 7,
    }
    with torch.no_grad():
        first = net[0](series)
    torch.testing.assert_close(views["0"].values, first.mean(dim=2))
    positions = shown(net, series, "0", reduce="spatial").values
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


@pytest.mark.parametrize(("how", "shape"), [("mean", (10, 6)), ("flatten", (10, 162)), ("spatial", (270, 6))])
def test_maps_of_films_are_reduced_over_time_and_place(how: str, shape: tuple[int, int]) -> None:
    net, films = nn.Sequential(nn.Conv3d(3, 6, 3), nn.ReLU()).eval(), torch.rand(10, 3, 5, 5, 5)
    found = shown(net, films, "0", reduce=how).values
    assert found.shape == shape
    with torch.no_grad():
        maps = net[0](films)
    expected = {"mean": maps.mean(dim=(2, 3, 4)), "flatten": maps.flatten(1)}
    expected["spatial"] = maps.permute(0, 2, 3, 4, 1).reshape(-1, 6)
    torch.testing.assert_close(found, expected[how])
