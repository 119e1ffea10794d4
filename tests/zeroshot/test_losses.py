"""DBI and AM as losses: equal to the metrics on the same soft labels, with the gradients of finite differences."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch

from likewise import zeroshot
from likewise.errors import InputError
from likewise.zeroshot import losses


def logits(rows: int = 12, classes: int = 4, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    draw = np.random.default_rng(seed)
    return torch.from_numpy(draw.normal(size=(rows, classes))), torch.from_numpy(np.arange(rows) % classes)


def others_by_loop(values: torch.Tensor, labels: torch.Tensor) -> list[list[float]]:
    out = []
    for row, label in zip(values.tolist(), labels.tolist(), strict=True):
        powers = [math.exp(value) for number, value in enumerate(row) if number != label]
        out.append([power / sum(powers) for power in powers])
    return out


def test_others_are_a_softmax_without_the_class() -> None:
    values, labels = logits()
    np.testing.assert_allclose(losses.others(values, labels).numpy(), others_by_loop(values, labels), rtol=1e-12)


def test_dbi_is_that_of_a_plain_loop_and_of_the_metric() -> None:
    values, labels = logits()
    soft = losses.others(values, labels)
    spreads = []
    for name in range(4):
        cloud = [row for row, label in zip(soft.tolist(), labels.tolist(), strict=True) if label == name]
        centre = [sum(column) / len(cloud) for column in zip(*cloud, strict=True)]
        square = sum(sum((one - other) ** 2 for one, other in zip(row, centre, strict=True)) for row in cloud)
        spreads.append(math.sqrt(square / len(cloud)))
    assert float(losses.dbi(soft, labels)) == pytest.approx(sum(spreads) / 4, rel=1e-12)
    metric = zeroshot.dbi([soft[labels == name].numpy() for name in range(4)])
    assert float(losses.dbi(soft, labels)) == pytest.approx(metric.mean, rel=1e-12)


def test_amalgam_is_that_of_a_plain_loop_and_of_the_metric() -> None:
    (values, labels), (second, _) = logits(), logits(seed=1)
    full, held_out = losses.others(values, labels), losses.others(second, labels)
    gaps = []
    for name in range(4):
        rows = [row for row, label in enumerate(labels.tolist()) if label == name]
        sums = [[sum(soft[row][k].item() for row in rows) for k in range(3)] for soft in (full, held_out)]
        gaps.append(sum(abs(one - other) for one, other in zip(*sums, strict=True)) / len(rows) / 2)
    assert float(losses.amalgam(full, held_out, labels)) == pytest.approx(sum(gaps) / 4, rel=1e-12)
    split = {str(name): (labels == name).numpy() for name in range(4)}
    metric = zeroshot.amalgam(
        {name: values[rows].numpy() for name, rows in split.items()},
        {name: held_out[rows].log().numpy() for name, rows in split.items()},
        answers="logits",
    )
    assert float(losses.amalgam(full, held_out, labels)) == pytest.approx(metric.normalised_mean, rel=1e-12)


def by_differences(function, values: torch.Tensor, step: float = 1e-6) -> np.ndarray:
    slopes = np.zeros(tuple(values.shape))
    for place in np.ndindex(*values.shape):
        ends = []
        for sign in (1, -1):
            moved = values.clone()
            moved[place] += sign * step
            ends.append(float(function(moved)))
        slopes[place] = (ends[0] - ends[1]) / (2 * step)
    return slopes


def test_gradients_are_those_of_finite_differences() -> None:
    (values, labels), (second, _) = logits(), logits(seed=1)
    held_out = losses.others(second, labels)
    for function in (
        lambda moved: losses.dbi(losses.others(moved, labels), labels),
        lambda moved: losses.amalgam(losses.others(moved, labels), held_out, labels),
        lambda moved: losses.amalgam(held_out, losses.others(moved, labels), labels),
    ):
        leaf = values.clone().requires_grad_()
        function(leaf).backward()
        np.testing.assert_allclose(leaf.grad.numpy(), by_differences(function, values), atol=1e-8)


def test_equal_samples_have_a_dbi_of_0_and_a_gradient_of_0() -> None:
    soft = torch.full((4, 3), 1 / 3, dtype=torch.float64, requires_grad=True)
    loss = losses.dbi(soft, torch.zeros(4, dtype=torch.long))
    loss.backward()
    assert loss.item() == 0
    assert torch.equal(soft.grad, torch.zeros(4, 3, dtype=torch.float64))


def test_what_is_not_a_number_stays_so() -> None:
    """A training that diverged is not taken for one whose samples agree."""
    assert math.isnan(float(losses.dbi(torch.full((4, 3), math.nan), torch.zeros(4, dtype=torch.long))))


def test_a_class_of_one_sample_is_left_out_of_dbi() -> None:
    soft = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.3, 0.7]])
    assert float(losses.dbi(soft, torch.tensor([0, 0, 1]))) == pytest.approx(math.sqrt(0.5))


def test_a_training_on_dbi_lowers_it() -> None:
    values, labels = logits(rows=40)
    leaf = values.clone().requires_grad_()
    before = losses.dbi(losses.others(values, labels), labels)
    optimiser = torch.optim.SGD([leaf], lr=20.0)
    for _ in range(30):
        optimiser.zero_grad()
        losses.dbi(losses.others(leaf, labels), labels).backward()
        optimiser.step()
    assert losses.dbi(losses.others(leaf.detach(), labels), labels) < 0.5 * before


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: losses.others(torch.zeros(2, 2), torch.tensor([0, 1])),
            "the logits are of 2 classes, and one is taken out. Give three classes or more.",
        ),
        (
            lambda: losses.others(torch.zeros(2, 3), torch.tensor([0, 3])),
            "labels go from 0 to 3, and the logits are of 3 classes. Give the number of each sample's class.",
        ),
        (
            lambda: losses.others(torch.zeros(3), torch.tensor([0, 1, 2])),
            "the logits are an array of shape (3). Give a tensor of numbers, (samples, classes).",
        ),
        (
            lambda: losses.dbi(torch.zeros(2, 3), torch.tensor([0, 1])),
            "no class has two samples in this batch, so nothing lies apart. Give larger batches.",
        ),
        (
            lambda: losses.dbi(torch.zeros(2, 3), torch.tensor([0.0, 1.0])),
            "the labels are an array of shape (2). Give one class number per sample, 2 of them.",
        ),
        (
            lambda: losses.amalgam(torch.zeros(2, 3), torch.zeros(2, 4), torch.tensor([0, 0])),
            "soft labels are (2, 3) by one network and (2, 4) by the other. Give those of the same samples, over the "
            "same classes.",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, sentence: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        call()
