"""Ranks of correlations."""

import numpy as np
import pytest
import scipy.linalg
import scipy.stats

from likewise.measures import ranks


@pytest.mark.parametrize("radix", [False, True])
@pytest.mark.parametrize("kind", ["tied", "apart", "equal", "crowded", "last digits"])
def test_ranks_share_their_mean_among_ties(kind: str, radix: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, size = np.random.default_rng(0), 30_000
    values = {
        "tied": rng.integers(-9, 10, size=size) / 9,
        "apart": rng.uniform(-1, 1, size=size),
        "equal": np.full(size, 0.3),
        "crowded": 0.5 + rng.permutation(size) * 2.0**-40,  # apart, but the same in their first 30 binary digits
        "last digits": np.repeat(rng.choice([-1, 1], size=size // 3) * 0.7, 3) + rng.uniform(-1, 1, size) * 1e-15,
    }[kind]
    expected = scipy.stats.rankdata(np.rint(values * 2.0**40))
    monkeypatch.setattr(ranks, "sorts_slowly", lambda: radix)
    assert size > ranks.FEW
    found = ranks.average_ranks(values.copy(), np.empty(size, dtype=np.int64))
    assert found == pytest.approx(expected, abs=0)


def test_numpy_is_not_asked_to_sort_on_zen_4(monkeypatch: pytest.MonkeyPatch) -> None:
    ask = ranks.sorts_slowly.__wrapped__
    said = "vendor_id\t: {}\ncpu family\t: {}\nmodel\t\t: 17\nflags\t\t: fpu avx2 {} sha_ni"
    for facts, expected in (
        (("AuthenticAMD", 25, "avx512f"), True),  # Zen 4
        (("AuthenticAMD", 25, "bmi2"), False),  # Zen 3
        (("AuthenticAMD", 26, "avx512f"), False),  # Zen 5
        (("GenuineIntel", 6, "avx512f"), False),
    ):
        monkeypatch.setattr(ranks, "processor", lambda facts=facts: said.format(*facts))
        assert ask() is expected


def test_a_buffer_is_reused_but_never_by_two_callers_at_once() -> None:
    from likewise.measures.workspace import Workspace

    workspace = Workspace()
    with workspace.int_buffer(100) as first, workspace.int_buffer(50) as second:
        assert (first.size, second.size) == (100, 50)
        assert not np.shares_memory(first, second)
    with workspace.int_buffer(80) as again:
        assert np.shares_memory(first, again)
