"""Ensembles by number of families, where families err alike and where they do not."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from likewise import analysis
from likewise.analysis.cluster_ensembles import _from_clusters, _trend
from likewise.analysis.ensembles import random_subsets
from tests.analysis.helpers import zoo
from tests.conftest import refused


def test_members_of_more_families_leave_less_error() -> None:
    _, answers, family = zoo((6, 6, 6), n=500)
    table = analysis.errors_by_clusters(answers, family, (2, 3), samples=300)
    assert table[["size", "families"]].to_numpy().tolist() == [
        [2, "1"],
        [2, "2"],
        [2, "random"],
        [3, "1"],
        [3, "2"],
        [3, "3"],
        [3, "random"],
    ]
    for size, rows in table[table.families != "random"].groupby("size"):
        assert rows.reduction.is_monotonic_increasing, size
        assert rows.error.is_monotonic_decreasing
        assert rows.all_wrong.is_monotonic_decreasing
        assert rows.gain_high.iloc[0] < 0 < rows.gain_low.iloc[-1]
        assert (rows.p < 0.05).all()
    assert ((table.reduction_low < table.reduction) & (table.reduction < table.reduction_high)).all()


def test_means_are_those_of_all_such_ensembles() -> None:
    _, answers, family = zoo((3, 2, 3), n=60)
    table = analysis.errors_by_clusters(answers, family, (2,), samples=2000).set_index("families")
    pairs = list(combinations(answers.names, 2))
    mixed = [analysis.error_reduction(answers, pair) for pair in pairs if family[pair[0]] != family[pair[1]]]
    every = [analysis.error_reduction(answers, pair) for pair in pairs]
    assert table.reduction["random"] == pytest.approx(np.mean(every), abs=0.01)
    assert table.all_wrong["random"] == pytest.approx(
        np.mean([len(analysis.all_wrong(answers, pair)) / 60 for pair in pairs]), abs=0.01
    )
    # two of three families are drawn, then one member of each: a pair counts by how small its families are
    sizes = {0: 3, 1: 2, 2: 3}
    weights = [1 / (sizes[family[a]] * sizes[family[b]]) for a, b in pairs if family[a] != family[b]]
    assert table.reduction["2"] == pytest.approx(np.average(mixed, weights=weights), abs=0.01)


@pytest.mark.parametrize(("k", "size"), [(1, 3), (2, 3), (3, 3), (2, 5), (4, 6)])
def test_each_family_drawn_has_a_member_and_no_other_has(k: int, size: int) -> None:
    labels = np.array([0, 0, 0, 0, 0, 1, 1, 1, 2, 3, 3])
    subsets = _from_clusters(labels, k, size, 500, np.random.default_rng(0))
    assert all(len(set(row)) == size and len(set(labels[row])) == k for row in subsets.tolist())
    assert len({tuple(sorted(row)) for row in subsets.tolist()}) > 5
    assert set(labels[subsets].ravel()) == ({0, 1} if (k, size) == (1, 3) else {0, 1, 2, 3})


def test_families_that_say_nothing_of_errors_are_rarely_called_telling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likewise.analysis.cluster_ensembles.PERMUTATIONS", 49)
    draw = np.random.default_rng(1)
    subsets = random_subsets(12, 3, 60, draw)
    own = draw.normal(size=12)  # members share in the reductions, so subsets are not independent
    reductions = own[subsets].mean(axis=1)
    small = [_trend(draw.permutation(np.arange(12) % 3), subsets, reductions, draw) <= 0.1 for _ in range(300)]
    assert 0.05 <= np.mean(small) <= 0.15


def test_too_few_families_leave_rows_without_samples() -> None:
    _, answers, family = zoo((3, 3), n=100)
    table = analysis.errors_by_clusters(answers, family, (3, 4), samples=50).set_index(["size", "families"])
    assert table.loc[(3, "3"), "samples"] == table.loc[(4, "1"), "samples"] == 0
    assert np.isnan(table.loc[(4, "1"), ["reduction", "gain", "gain_low", "error", "all_wrong"]].astype(float)).all()
    assert table.loc[(4, "2"), "samples"] == 50


def test_clusters_serve_as_families_and_the_seed_decides() -> None:
    given, answers, family = zoo((3, 3, 3), n=60)
    found = analysis.errors_by_clusters(answers, analysis.clusters(given, 3), (2,), samples=20)
    assert found.equals(analysis.errors_by_clusters(answers, family, (2,), samples=20))
    assert not found.equals(analysis.errors_by_clusters(answers, family, (2,), samples=20, seed=1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sizes": (1,)}, "12 networks have no ensemble of 1. Choose sizes from 2 to 12."),
        ({"sizes": (13,)}, "12 networks have no ensemble of 13. Choose sizes from 2 to 12."),
        ({"samples": 0}, "samples is 0. Give at least 1."),
        ({"clusters": {"n0": 1}}, "no family is given for 'n1'. Give one for each of 12 networks."),
    ],
    ids=["one", "many", "samples", "family"],
)
def test_what_cannot_be_drawn_is_said(change: dict[str, object], message: str) -> None:
    _, answers, family = zoo()
    assert refused(lambda: analysis.errors_by_clusters(answers, **{"clusters": family, **change})) == message  # type: ignore[arg-type]
