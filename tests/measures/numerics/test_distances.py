"""Distances: their median, which sets the bandwidth of a Gaussian kernel."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from likewise.measures.numerics.distances import median_distance
from likewise.measures.representation import Representation
from likewise.measures.workspace import Workspace
from likewise.views import Activations


def one_hot(rng, n, c=10):
    return np.eye(c)[rng.integers(0, c, n)]


@pytest.mark.parametrize("memory", [10**9, 10**7], ids=["roomy", "tight"])
@pytest.mark.parametrize("n", [900, 902, 903])
@pytest.mark.parametrize("kind", ["apart", "classes", "an outlier", "two heaps"])
def test_the_median_distance_is_numpys(kind, n, memory) -> None:
    rng = np.random.default_rng(n)
    x = one_hot(rng, n) if kind == "classes" else rng.normal(size=(n, 3))
    if kind == "an outlier":
        x[7] += 1e6
    if kind == "two heaps":
        x[1::2] += 100
    workspace = Workspace(memory)
    assert workspace.keeps_squares(n) == (memory == 10**9)
    found = median_distance(Representation(Activations(x), workspace))
    assert found == pytest.approx(np.median(pdist(x)), rel=1e-7)


@pytest.mark.parametrize("memory", [10**9, 10**7], ids=["roomy", "tight"])
def test_the_median_of_as_many_equal_as_unequal_pairs_is_half_their_distance(memory) -> None:
    x = np.repeat(np.eye(2), [435, 465], axis=0)  # 435 · 465 = 202,275 of 900 · 899 / 2 = 404,550
    found = median_distance(Representation(Activations(x), Workspace(memory)))
    assert found == pytest.approx(2**0.5 / 2, abs=1e-7)
