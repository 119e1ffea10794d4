"""Which layers a network has, which of them are its blocks, and what each gives."""

from __future__ import annotations

import torch
from torch import nn

import likewise
from likewise.networks import Normalised
from likewise.views.selection import named_layers


def test_layers_are_listed_with_shapes_and_parameters_one_entry_a_call() -> None:
    step = nn.Linear(4, 4)
    net = nn.Sequential(nn.Linear(8, 4), step, step)
    found = [(one.name, one.kind, one.shape, one.parameters) for one in likewise.layers(net, torch.rand(3, 8))]
    # weights and biases: 8 · 4 + 4 = 36 and 4 · 4 + 4 = 20
    assert found == [
        ("0", "Linear", (4,), 36),
        ("1", "Linear", (4,), 20),
        ("1#2", "Linear", (4,), 20),
    ]


def test_without_data_a_size_is_tried() -> None:
    shapes = {one.name: one.shape for one in likewise.layers("zoo:resnet20")}
    assert shapes["layer1.0"] == (16, 32, 32)
    assert shapes["layer3.2"] == (64, 8, 8)


def test_where_no_size_fits_names_are_listed_without_shapes() -> None:
    found = likewise.layers(nn.Sequential(nn.Linear(7, 3)))
    assert [(one.name, one.shape) for one in found] == [("0", None)]


def test_wrappers_do_not_show_in_names() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3))
    wrapped = nn.DataParallel(Normalised(net, mean=[0.5] * 3, std=[0.2] * 3))
    assert list(named_layers(wrapped)) == ["0"]
    compiled = torch.compile(net, backend="eager")
    assert list(named_layers(compiled)) == ["0"]
