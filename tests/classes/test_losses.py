"""Class similarity as a loss: its values by the indices and by loops, its gradients by finite differences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import likewise
from likewise import classes
from likewise.classes import from_weights
from likewise.classes.losses import alignment, step, wsi
from likewise.errors import UnknownNameError
from tests.classes.helpers import cosine_loop, matrix, refusals

REFERENCE = matrix(7, 3)


def weights(seed: int = 0, count: int = 7, width: int = 4) -> torch.Tensor:
    rows = np.random.default_rng(seed).normal(size=(count, width))
    return torch.tensor(rows, dtype=torch.float64, requires_grad=True)


def alignment_loop(rows: list[list[float]], reference: list[list[float]], metric: str) -> float:
    """One minus the alignment, pair by pair."""
    c = len(rows)
    pairs = [(i, j) for i in range(c) for j in range(c) if i != j]
    ours, wanted = [cosine_loop(rows[i], rows[j]) for i, j in pairs], [reference[i][j] for i, j in pairs]
    ours, wanted = ([(v - min(side)) / (max(side) - min(side)) for v in side] for side in (ours, wanted))
    if metric == "pearson":
        ours, wanted = ([v - sum(side) / len(side) for v in side] for side in (ours, wanted))
    dot = sum(a * b for a, b in zip(ours, wanted, strict=True))
    return 1 - dot / math.sqrt(sum(a * a for a in ours) * sum(b * b for b in wanted))


@pytest.mark.parametrize("metric", ["cosine", "pearson"])
def test_the_loss_is_one_minus_the_alignment(metric: str) -> None:
    for seed in range(5):
        rows = weights(seed)
        loss = float(alignment(rows, REFERENCE, metric).detach())
        assert loss == pytest.approx(alignment_loop(rows.tolist(), REFERENCE.values.tolist(), metric), abs=1e-12)
        index = float(classes.alignment(from_weights(rows.detach().numpy()), REFERENCE, metric))
        assert loss == pytest.approx(1 - index, abs=1e-9)


@pytest.mark.parametrize("count", [7, 30])
def test_wsi_is_the_index_of_its_name(count: int) -> None:
    for seed in range(5):
        rows = weights(seed, count)
        index = classes.wsi(from_weights(rows.detach().numpy()))
        assert [float(wsi(rows, end).detach()) for end in ("mean", "max", "min")] == pytest.approx(list(index))


TERMS = {
    "cosine": lambda rows: alignment(rows, REFERENCE),
    "pearson": lambda rows: alignment(rows, REFERENCE, "pearson"),
    "mean": wsi,
    "max": lambda rows: wsi(rows, "max"),
    "min": lambda rows: wsi(rows, "min"),
}


@pytest.mark.parametrize("name", TERMS)
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    rows, term = weights(1), TERMS[name]
    term(rows).backward()
    assert rows.grad is not None
    near = 1e-6
    for i in range(7):
        for j in range(4):
            with torch.no_grad():
                ahead, behind = rows.clone(), rows.clone()
                ahead[i, j] += near
                behind[i, j] -= near
                slope = float(term(ahead) - term(behind)) / (2 * near)
            assert float(rows.grad[i, j]) == pytest.approx(slope, abs=1e-7), (i, j)


def vector(rows: torch.Tensor) -> torch.Tensor:
    return rows.sum(dim=1)


def trained(*args: Any, **options: Any) -> torch.nn.Module:
    options = {"epochs": 5, "lr": 0.05, "batch_size": 32, "progress": False} | options
    return likewise.train("zoo:mlp,hidden=16", "digits:train[:200]", *args, **options).net


def test_a_step_trains_on_cross_entropy_and_so_much_of_the_term() -> None:
    target = matrix(10, 5)
    aligned = {
        strength: float(
            classes.alignment(from_weights(trained(step=step(lambda w: alignment(w, target), strength))), target)
        )
        for strength in (0.0, 5.0)
    }
    assert aligned[5.0] > aligned[0.0] + 0.05
    plain, with_nothing = trained(), trained(step=step(wsi, 0.0))
    for name, value in plain.state_dict().items():
        assert torch.equal(value, with_nothing.state_dict()[name]), name


test_an_error_is_a_sentence = refusals(
    (
        lambda: alignment(weights(), REFERENCE, "pearsn"),
        "no metric of a loss named 'pearsn'. Did you mean 'pearson'? There are cosine, pearson.",
        UnknownNameError,
    ),
    (
        lambda: alignment(weights(), matrix(5, 0)),
        "7 classes need a reference of shape (7, 7), got (5, 5). Give one over the same classes.",
    ),
    (
        lambda: alignment(weights(), torch.ones(7, 7)),
        "the reference is constant or has undefined classes, so nothing can be aligned with it.",
    ),
    (
        lambda: alignment(torch.zeros(7, 4, requires_grad=True), REFERENCE),
        "all pairs of classes are equally similar, as of weights of zero or of two classes, so their alignment is "
        "undefined. Start the classifier from random weights, of three classes at least.",
    ),
    (
        lambda: wsi(torch.zeros(1, 3)),
        "weights are one row per class, for two classes at least, got (1, 3). Give (classes, width).",
    ),
    (lambda: wsi(weights(), "top"), "end is 'top'. Give 'mean', 'max' or 'min'."),
    (lambda: wsi(weights(), "max", 0.3), "quantile is 0.3. Give one from 0.5 to 1."),
    (lambda: wsi(weights(), "max", "most"), "quantile is 'most'. Give one from 0.5 to 1."),
    (
        lambda: wsi(torch.ones(3, 2, dtype=torch.long)),
        "weights are of torch.int64, which has no gradient. Give floating-point numbers.",
    ),
    (
        lambda: alignment(weights(), "cifar10"),
        "the reference is of type str, not an array. Pass an array, a tensor, a data frame or a list of rows.",
    ),
    (lambda: step(0.5), "the term is 0.5. Give a function of the weights, such as losses.wsi."),
    (lambda: step(wsi, math.nan), "strength is nan. Give a number."),
    (
        lambda: trained(step=step(vector)),
        "the term gave an array of shape (10). Let it give one number, as a tensor without dimensions.",
    ),
    (
        lambda: step(wsi, augment="flp"),
        "no augmentation named 'flp'. Did you mean 'flip'? There are flip, crop, resized-crop, cutout, noise, "
        "rotation, blur, jitter, perspective, affine.",
    ),
)
