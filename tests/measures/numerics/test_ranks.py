"""Ranks of correlations."""

import numpy as np
import pytest
import scipy.stats

from likewise.measures.numerics.ranks import average_ranks


@pytest.mark.parametrize("kind", ["tied", "apart", "equal", "crowded", "last digits"])
def test_ranks_share_their_mean_among_ties(kind: str) -> None:
    rng, size = np.random.default_rng(0), 30_000
    values = {
        "tied": rng.integers(-9, 10, size=size) / 9,
        "apart": rng.uniform(-1, 1, size=size),
        "equal": np.full(size, 0.3),
        "crowded": 0.5 + rng.permutation(size) * 2.0**-40,  # apart, but the same in their first 30 binary digits
        "last digits": np.repeat(rng.choice([-1, 1], size=size // 3) * 0.7, 3) + rng.uniform(-1, 1, size) * 1e-15,
    }[kind]
    expected = scipy.stats.rankdata(np.rint(values * 2.0**40))
    ranks = average_ranks(values.copy())
    assert ranks == pytest.approx(expected, abs=0)
