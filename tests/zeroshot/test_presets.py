"""Presets: the schedules of the paper's code, epoch by epoch, and a test of minutes."""

from __future__ import annotations

import math
from typing import Any

import pytest

from likewise.errors import InputError
from likewise.zeroshot.presets import PAPER, SMALL, preset_of
from tests.helpers import sentence


def rates(name: str) -> list[float]:
    """The learning rate of every epoch, the first being 0."""
    settings = PAPER[name].settings
    return [
        settings.lr * (settings.schedule(epoch / settings.epochs) if callable(settings.schedule) else 1.0)
        for epoch in range(settings.epochs)
    ]


@pytest.mark.parametrize(
    ("name", "expected"),  # the first epoch of each learning rate, as the paper's code has them
    [
        ("lenet", {0: 0.01, 100: 0.005, 150: 0.001}),
        ("nin", {0: 0.05, 61: 0.01, 121: 0.002, 161: 0.0004}),
        ("allconv", {0: 1e-4}),
        ("resnet32-pre", {0: 0.1, 80: 0.01, 150: 0.001}),
        ("wideresnet", {0: 0.1, 61: 0.02, 121: 0.004, 161: 0.0008}),
        ("densenet", {0: 0.1, 76: 0.01, 151: 0.001}),
    ],
)
def test_learning_rates_are_those_of_the_papers_code(name: str, expected: dict[int, float]) -> None:
    found = rates(name)
    assert len(found) == 200
    current = 0.0
    for epoch, rate in enumerate(found):
        current = expected.get(epoch, current)
        assert rate == pytest.approx(current)


def test_capsules_are_trained_for_fifty_epochs_by_a_rate_that_decays() -> None:
    assert rates("capsnet") == pytest.approx([0.001 * math.exp(-epoch / 10) for epoch in range(50)])
    assert PAPER["capsnet"].options == {"reconstruction": 0.1}


@pytest.mark.parametrize(
    ("name", "optimiser", "decay"),
    [("lenet", "sgd", 2e-4), ("wideresnet", "sgd", 1e-3), ("allconv", "adam", 2e-4), ("capsnet", "adam", 0.0)],
)
def test_weight_decay_is_twice_the_papers_penalty(name: str, optimiser: str, decay: float) -> None:
    settings = PAPER[name].settings
    assert (settings.optimiser, settings.batch_size, settings.weight_decay) == (optimiser, 64, decay)
    assert settings.augment == ()


@pytest.mark.parametrize(
    ("network", "name"),
    [
        ("zoo:lenet", "lenet"),
        ("zoo:nin,width=48", "nin"),
        ("zoo:wideresnet16-8", "wideresnet"),  # by its alias
        ("zoo:mlp", "resnet32-pre"),  # what the paper did not train
        ("timm:test_vit", "resnet32-pre"),
        (lambda classes: None, "resnet32-pre"),
    ],
)
def test_a_network_is_trained_as_the_paper_trained_it_by_whichever_name(network: Any, name: str) -> None:
    assert preset_of("paper", network) is PAPER[name]
    assert preset_of("small", network) is SMALL


def test_an_unknown_preset_is_refused() -> None:
    assert sentence(InputError, preset_of, "papers", "zoo:lenet") == (
        "no preset named 'papers'. Did you mean 'paper'? Give paper or small."
    )
