"""Maps keep distances as well as two dimensions can."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.analysis.families import embed
from likewise.matrices.similarity import SimilarityMatrix
from likewise.report.panels.network_map import _majorized, _stress


def distances(count: int, seed: int = 0) -> np.ndarray:
    points = np.random.default_rng(seed).normal(size=(count, 6))
    return np.linalg.norm(points[:, None] - points[None], axis=-1)


@pytest.mark.parametrize("count", [3, 10, 70])
def test_a_map_is_as_good_as_that_of_scikit_learn(count: int) -> None:
    smacof = pytest.importorskip("sklearn.manifold").smacof
    apart = distances(count)
    start = np.random.default_rng(1).normal(size=(count, 2))
    ours = _majorized(apart, start, rounds=3000)
    theirs, _ = smacof(apart, init=start, n_init=1, max_iter=3000, eps=1e-12, normalized_stress=False)
    assert _stress(apart, ours) == pytest.approx(_stress(apart, theirs), rel=0.02, abs=1e-4)


def test_networks_of_one_family_are_not_drawn_upon_each_other() -> None:
    """Classical scaling projects three families of equal networks to three points."""
    labels = np.repeat(range(3), 4)
    alike = np.where(labels[:, None] == labels, 0.6, 0.0) + 0.4 * np.eye(12)
    matrix = SimilarityMatrix([f"n{i}" for i in range(12)], alike, measure="made", larger_is="more alike")
    apart, start = matrix.distances(), embed(matrix, "mds")
    moved = _majorized(apart, start)
    within = [np.linalg.norm(xy[0] - xy[1]) / np.linalg.norm(xy[0] - xy[4]) for xy in (start, moved)]
    assert within[0] < 0.01
    assert within[1] > 0.1  # in truth 0.4
    assert _stress(apart, moved) < 0.7 * _stress(apart, start)
