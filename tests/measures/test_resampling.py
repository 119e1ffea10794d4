"""Permuted rows and subsets stand on the scale of all."""

import numpy as np
import pytest
import torch

from likewise import measures
from likewise.measures.pair import Pair
from likewise.measures.representation import Representation
from likewise.measures.resampling import Permuted, Subset
from likewise.views import Activations

N = 24


def related():
    rng = np.random.default_rng(0)
    x = np.maximum(rng.normal(size=(N, 5)), -0.3)
    return x, x @ rng.normal(size=(5, 6)) + 0.3 * rng.normal(size=(N, 6))


@pytest.mark.parametrize("name", ["cka", "rsm-difference", "jaccard", "procrustes-size", "gulp"])
def test_shuffled_and_drawn_inputs_stand_on_the_scale_of_all(name) -> None:
    x, y = related()
    order = torch.from_numpy(np.random.default_rng(1).permutation(N))
    measure = measures.get(name)
    a, b = (Representation(Activations(v * s)) for v, s in ((x, 1e-170), (y, 1e-160)))
    measure.score(Pair(a, b))
    half = order[:14].sort().values
    for found, direct in (
        (Pair(a, Permuted(b, order)), (x * 1e-170, y[order] * 1e-160)),
        (Pair(Subset(a, half), Subset(b, half)), (x[half] * 1e-170, y[half] * 1e-160)),
    ):
        assert measure.score(found) == pytest.approx(measure(*direct), rel=1e-9)


def test_shuffled_single_precision_follows_the_shuffle_though_the_whole_was_never_asked_for() -> None:
    x = np.random.default_rng(0).normal(size=(400, 200)).astype(np.float32)
    order = torch.randperm(400, generator=torch.Generator().manual_seed(0))
    shuffled, whole = Permuted(Representation(Activations(x)), order), Representation(Activations(x))
    assert shuffled.single.shape == x.shape
    assert torch.equal(shuffled.single, whole.single[order])
    assert torch.equal(shuffled.single_squares, whole.single_squares[order])
