"""Products of float32 activations are taken in float32, and lose nothing that shows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import likewise
from likewise.errors import UndefinedError
from likewise.measures import get
from likewise.measures.representation import Representation

N, D = 1500, 64


def activations(seed: int, *, mean: float = 0.0, scale: float = 1.0) -> np.ndarray:
    shared = np.random.default_rng(0).normal(size=(N, D))
    rng = np.random.default_rng(seed)
    values = np.maximum(shared @ rng.normal(size=(D, D)) / 8 + 0.5 * rng.normal(size=(N, D)), 0)
    return (scale * (values + mean)).astype(np.float32)


@pytest.mark.parametrize("name", ["cka", "cka-debiased"])
@pytest.mark.parametrize(("mean", "scale"), [(0, 1), (1e3, 1), (0, 1e-30), (0, 1e30), (0, 1e-12), (3e4, 1e9)])
def test_single_precision_agrees_with_double(name: str, mean: float, scale: float) -> None:
    x, y = activations(1, mean=mean, scale=scale), activations(2, mean=-mean)
    wide = get(name)(x.astype(np.float64), y.astype(np.float64))
    assert get(name)(x, y) == pytest.approx(wide, abs=3e-7)


def test_large_float32_activations_are_multiplied_in_float32_and_small_ones_are_not() -> None:
    large = Representation(likewise.Activations(activations(1)))
    small = Representation(likewise.Activations(activations(1)[:100]))
    given = Representation(likewise.Activations(activations(1).astype(np.float64)))
    huge = Representation(likewise.Activations(activations(1, scale=1e25)))
    assert large.single[0].dtype == torch.float32
    assert large.single[0].shape == (N, D)
    for rep in (small, given, huge):
        assert not rep.single[0].numel()


@pytest.mark.parametrize("name", ["cka", "cka-debiased"])
def test_a_network_with_itself_scores_one_in_single_precision(name: str) -> None:
    x = activations(1)
    assert get(name)(x, x.copy()) == pytest.approx(1, abs=1e-9)
    assert get(name)(x, 4 * x) == pytest.approx(1, abs=1e-9)
    assert get(name)(x, x) <= 1


def test_a_constant_float32_network_is_refused_for_its_rounding_too() -> None:
    x = np.full((N, D), 1e6, dtype=np.float32)
    x[:, 0] += np.float32(0.06)
    with pytest.raises(UndefinedError, match=r"'x' is constant: all 1500 rows are the same"):
        get("cka")(x, activations(1))


def test_what_a_confounder_leaves_is_computed_in_double_precision() -> None:
    x, y = activations(1), activations(2)
    with pytest.raises(UndefinedError, match="the confounder explains all of one side"):
        get("cka-deconfounded", confounder=x)(x, y)
    wide = [v.astype(np.float64) for v in (x, y, activations(3))]
    expected = get("cka-deconfounded", confounder=wide[2])(*wide[:2])
    found = get("cka-deconfounded", confounder=activations(3))(x, y)
    assert found == pytest.approx(expected, abs=1e-9)
