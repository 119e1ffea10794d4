"""Blocks: one rule for the networks of all libraries."""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import likewise
from likewise.networks.anatomy.blocks import blocks
from likewise.networks.anatomy.layers import named_layers, submodules
from likewise.views.extract import extract

PAGE = Path(__file__).parents[3] / "docs" / "layers.md"
TABLE = dict(re.findall(r"^\| `([a-z]+[:.]\w+)` \| (\d+ × .*) \|$", PAGE.read_text(), flags=re.MULTILINE))


def build(address: str) -> nn.Module:
    """A network without memory for its weights: names and classes are all that counts."""
    library, name = re.split("[:.]", address)
    module: Any = pytest.importorskip(library)
    with torch.device("meta"):
        if library == "timm":
            return module.create_model(name)
        if library == "transformers":
            kind = getattr(module, name)
            return kind(kind.config_class())
        options = {"init_weights": False} if name == "googlenet" else {}
        return module.models.get_model(name, weights=None, **options)


@pytest.mark.usefixtures("vision")
@pytest.mark.parametrize("address", TABLE)
def test_blocks_are_as_documented(address: str) -> None:
    found = Counter(re.sub(r"\d+[a-z]?(?![a-z])", "#", name) for name in blocks(named_layers(build(address))))
    assert ", ".join(f"{count} × `{place}`" for place, count in found.items()) == TABLE[address]


def test_the_documented_table_is_read() -> None:
    assert len(TABLE) > 35


def test_blocks_of_a_residual_network_are_its_residual_blocks() -> None:
    found = blocks(named_layers(likewise.network("zoo:resnet56")))
    assert found == [f"layer{stage}.{index}" for stage in (1, 2, 3) for index in range(9)]


@pytest.mark.usefixtures("vision")
def test_a_shared_layer_is_a_block_in_every_call() -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {
        "hidden_size": 16,
        "embedding_size": 8,
        "intermediate_size": 32,
        "num_attention_heads": 2,
        "vocab_size": 50,
    }
    net = transformers.AlbertModel(transformers.AlbertConfig(num_hidden_layers=3, **sizes)).eval()
    words = {"input_ids": torch.randint(1, 50, (6, 5))}
    name = "encoder.albert_layer_groups.0.albert_layers.0"
    views = extract(net, [words], "blocks", reduce="mean", progress=False)
    assert list(views) == [name, f"{name}#2", f"{name}#3"]
    with torch.no_grad():
        states = net(**words, output_hidden_states=True).hidden_states
    for view, state in zip(views.values(), states[1:], strict=True):
        torch.testing.assert_close(view.values, state.mean(dim=1))


class Layer(nn.Module):
    """Two linear layers around an addition."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, rows: Tensor) -> Tensor:
        return rows + self.second(self.first(rows).relu())


def test_experts_inside_a_layer_are_no_blocks() -> None:
    class Mixture(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.experts = nn.ModuleList(Layer() for _ in range(8))

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention, self.mixture = nn.Linear(8, 8), Mixture()

    net = nn.Module()
    net.layers = nn.ModuleList(Decoder() for _ in range(3))
    assert blocks(named_layers(net)) == ["layers.0", "layers.1", "layers.2"]


def test_a_layer_that_repeats_a_part_is_no_stage() -> None:
    class Mobile(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key, self.value, self.out, self.down = (nn.Linear(8, 8) for _ in range(5))
            self.ffn = nn.ModuleList(Layer() for _ in range(2))

    net = nn.Module()
    net.layer = nn.ModuleList(Mobile() for _ in range(2))
    assert blocks(named_layers(net)) == ["layer.0", "layer.1"]


def test_stages_of_one_block_each_give_their_blocks() -> None:
    class Stage(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down, self.blocks = nn.Linear(8, 8), nn.Sequential(Layer())

    net = nn.Module()
    net.stem, net.stages = nn.Sequential(Layer(), Layer()), nn.Sequential(Stage(), Stage())
    assert blocks(named_layers(net)) == ["stages.0.blocks.0", "stages.1.blocks.0"]


def test_one_layer_alone_is_a_block() -> None:
    net = nn.Module()
    net.embed, net.layers, net.head = nn.Embedding(5, 8), nn.ModuleList([Layer()]), nn.Linear(8, 2)
    assert blocks(named_layers(net)) == ["layers.0"]


def test_a_body_and_a_classifier_of_several_layers_are_not_taken_for_blocks() -> None:
    body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.ReLU())
    net = nn.Sequential(body, nn.Flatten(), nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 2)))
    assert blocks(named_layers(net)) == ["0.0", "0.2", "2.0", "2.2"]


def test_without_blocks_the_layers_with_weights_count() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3))
    assert blocks(named_layers(net)) == ["0", "3"]


def test_blocks_of_layers_that_make_their_weights_are_the_same_blocks() -> None:
    def part() -> nn.Module:
        wrapped = nn.utils.parametrizations.weight_norm(nn.Linear(8, 8))
        return nn.Sequential(OrderedDict(fc=wrapped, act=nn.ReLU()))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inside = part()

        def forward(self, rows: Tensor) -> Tensor:
            return rows + self.inside(rows)

    net = nn.Sequential(Block(), Block())
    assert list(extract(net, torch.rand(10, 8), "blocks")) == ["0", "1"]


def test_attributes_inside_a_block_are_no_blocks_of_their_own() -> None:
    class Unit(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc, self.act = nn.Linear(8, 8), nn.ReLU()

        def forward(self, rows: Tensor) -> Tensor:
            return self.act(self.fc(rows))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.unit1, self.unit2 = Unit(), Unit()

        def forward(self, rows: Tensor) -> Tensor:
            return self.unit2(self.unit1(rows))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Sequential(OrderedDict(unit=Unit()))
            self.blocks = nn.Sequential(Block(), Block())

        def forward(self, rows: Tensor) -> Tensor:
            return self.blocks(self.stem(rows))

    assert list(extract(Net(), torch.rand(10, 8), "blocks")) == ["blocks.0", "blocks.1"]


def test_cells_of_a_stem_are_no_blocks() -> None:
    def cell() -> nn.Module:
        return nn.Sequential(nn.Conv2d(4, 4, 1), nn.ReLU(), nn.Conv2d(4, 4, 1))

    net = nn.Module()
    for name in ("cell_stem_0", "cell_stem_1", "cell_0", "cell_1", "cell_2"):
        net.add_module(name, cell())
    assert blocks(submodules(net)) == ["cell_0", "cell_1", "cell_2"]


def test_a_recurrent_layer_is_a_block_with_blocks_beside_it_or_without() -> None:
    words = nn.ModuleDict({"words": nn.Embedding(9, 4), "lstm": nn.LSTM(4, 4), "fc": nn.Linear(4, 2)})
    assert blocks(submodules(words)) == ["words", "lstm", "fc"]
    cells = nn.ModuleDict({"cell": nn.GRUCell(4, 4), "fc": nn.Linear(4, 2)})
    assert blocks(submodules(cells)) == ["cell", "fc"]
    convolutions = nn.Sequential(*(nn.Sequential(nn.Conv2d(4, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3)) for _ in range(2)))
    both = nn.ModuleDict({"cnn": convolutions, "rnn": nn.GRU(4, 4, 2), "fc": nn.Linear(4, 2)})
    assert blocks(submodules(both)) == ["cnn.0", "cnn.1", "rnn"]


def test_layerwise_of_two_recurrent_networks_compares_their_recurrent_layers() -> None:
    class Reader(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.lstm, self.fc = nn.Embedding(20, 6), nn.LSTM(6, 8, batch_first=True), nn.Linear(8, 3)

        def forward(self, tokens: Tensor) -> Tensor:
            return self.fc(self.lstm(self.words(tokens))[0][:, -1])

    matrix = likewise.layerwise(Reader(), Reader(), torch.randint(0, 20, (30, 7)))
    assert matrix.rows == matrix.columns == ["words", "lstm", "fc"]
    assert np.isfinite(matrix.values).all()
