"""Published CIFAR-10 weights answer rightly through their addresses alone.

All 10,000 images are in `perf/cifar10_accuracy.py`, which gives every recorded figure to the
second decimal. Here are the first 1,000: the numbers of right answers are our own, counted by that
script when it gave those figures, so they guard against change and prove nothing more.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import likewise
from likewise.networks import evaluate

RIGHT = {
    ("cifar10_resnets", "resnet20", "resnet20"): 915,
    ("cifar10_models_extra", "resnet20-b", "resnet20_chenyaofo"): 925,
    ("cifar10_models_extra", "conv-mlp", "hybrid_cnn_mlp_smmk47"): 515,
    ("cifar10_models_extra", "vit-tiny-post", "vit_d128_l6_smmk47"): 705,
}
OTHERS = {
    ("cifar10_resnets", "resnet32", "resnet32"),
    ("cifar10_resnets", "resnet44", "resnet44"),
    ("cifar10_resnets", "resnet56", "resnet56"),
    ("cifar10_models_extra", "resnet56-b", "resnet56_chenyaofo"),
    ("cifar10_models_extra", "resnet20-b", "resnet20_ehanw"),
    ("cifar10_models_extra", "resnet20-b", "resnet20_pgd_ehanw"),
    ("cifar10_models_extra", "shufflenetv2-x0-5", "shufflenetv2_x0_5_chenyaofo"),
    ("cifar10_models_extra", "lmfrnet", "lmfrnet_santosantonio1"),
}


@pytest.mark.parametrize("place", RIGHT, ids=lambda place: place[2])
def test_a_published_network_is_as_accurate_as_it_was(real_data: Path, place: tuple[str, str, str]) -> None:
    folder, name, weights = place
    net = likewise.network(f"zoo:{name}@{real_data / folder / weights}.safetensors")
    _, accuracy = evaluate(net, likewise.dataset("cifar10:test[:1000]"))
    assert round(1000 * accuracy) == RIGHT[place]


@pytest.mark.parametrize("place", sorted(OTHERS), ids=lambda place: place[2])
def test_the_other_published_networks_are_mostly_right(real_data: Path, place: tuple[str, str, str]) -> None:
    folder, name, weights = place
    net = likewise.network(f"zoo:{name}@{real_data / folder / weights}.safetensors")
    data = likewise.dataset("cifar10:test[:100]")
    with torch.inference_mode():
        right = int((net(data.inputs[:]).argmax(dim=1) == data.labels).sum())
    assert right >= 80  # each of them is right on more than 84 % of all
