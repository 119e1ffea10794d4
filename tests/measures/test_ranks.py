"""Ranks of correlations."""

import numpy as np
import pytest
import scipy.linalg
import scipy.stats


def test_ranks_share_their_mean_among_ties() -> None:
    from likewise.measures.ranks import average_ranks

    keys = np.empty(500, dtype=np.int64)
    values = np.random.default_rng(0).integers(-9, 10, size=500) / 9
    assert average_ranks(values.copy(), keys) == pytest.approx(scipy.stats.rankdata(values), abs=0)
    apart = np.random.default_rng(1).uniform(-1, 1, size=500)
    assert average_ranks(apart.copy(), keys) == pytest.approx(scipy.stats.rankdata(apart), abs=0)
    assert average_ranks(np.full(7, 0.3), keys[:7]) == pytest.approx(np.full(7, 4.0), abs=0)


def test_a_buffer_is_reused_but_never_by_two_callers_at_once() -> None:
    from likewise.measures.workspace import Workspace

    workspace = Workspace()
    with workspace.int_buffer(100) as first, workspace.int_buffer(50) as second:
        assert (first.size, second.size) == (100, 50)
        assert not np.shares_memory(first, second)
    with workspace.int_buffer(80) as again:
        assert np.shares_memory(first, again)
