"""Ranks of correlations."""

import numpy as np
import pytest
import scipy.linalg
import scipy.stats


def test_ranks_share_their_mean_among_ties() -> None:
    from likewise.measures.ranks import average_ranks

    values = np.random.default_rng(0).integers(-9, 10, size=500) / 9
    assert average_ranks(values.copy()) == pytest.approx(scipy.stats.rankdata(values), abs=0)
    apart = np.random.default_rng(1).uniform(-1, 1, size=500)
    assert average_ranks(apart.copy()) == pytest.approx(scipy.stats.rankdata(apart), abs=0)
    assert average_ranks(np.full(7, 0.3)) == pytest.approx(np.full(7, 4.0), abs=0)
