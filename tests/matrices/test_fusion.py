"""Measures fused into one: by plain loops over pairs, and the groups that all measures see together."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest

from likewise.analysis import agreement, fuse
from likewise.errors import InputError, UnknownNameError
from likewise.matrices.similarity import SimilarityMatrix

NAMES = [f"n{i}" for i in range(7)]


def matrix(seed: int, larger_is: str = "more alike", symmetric: bool = True) -> SimilarityMatrix:
    values = np.random.default_rng(seed).normal(size=(7, 7))
    return SimilarityMatrix(NAMES, values + values.T if symmetric else values, f"m{seed}", larger_is)


def ranks_by_loop(one: SimilarityMatrix) -> dict[tuple[str, str], float]:
    """The share of the other pairs that a pair is more alike than; equal ones count half."""
    sign = 1 if one.larger_is == "more alike" else -1
    alike = {(a, b): sign * (one[a, b] + one[b, a]) / 2 for a, b in combinations(NAMES, 2)}
    alike = {pair: value for pair, value in alike.items() if value == value}
    return {
        pair: sum(0.5 * (other <= value) + 0.5 * (other < value) for k, other in alike.items() if k != pair)
        / (len(alike) - 1)
        for pair, value in alike.items()
    }


def test_ranks_are_those_of_a_plain_loop() -> None:
    several = [matrix(0), matrix(1, "less alike"), matrix(2, symmetric=False)]
    fused, ranks = fuse(several), [ranks_by_loop(one) for one in several]
    for pair in combinations(NAMES, 2):
        assert fused[pair] == pytest.approx(sum(rank[pair] for rank in ranks) / 3, abs=1e-12)
        assert fused[pair] == fused[pair[::-1]]
    assert fused.about["fused"] == ["m0", "m1", "m2"]


def test_weights_are_those_of_a_weighted_mean_and_leave_out_who_is_not_named() -> None:
    several = {one.measure: one for one in (matrix(0), matrix(1), matrix(2))}
    fused, ranks = fuse(several, weights={"m0": 3, "m2": 1}), [ranks_by_loop(one) for one in several.values()]
    for pair in combinations(NAMES, 2):
        assert fused[pair] == pytest.approx((3 * ranks[0][pair] + ranks[2][pair]) / 4, abs=1e-12)
    assert fused.about["fused"] == ["m0", "m2"]


def test_an_undefined_pair_is_fused_from_the_others_if_most_of_them_are_defined() -> None:
    values = matrix(0).values.copy()
    values[0, 1] = values[1, 0] = np.nan
    holed = SimilarityMatrix(NAMES, values, "holed", "more alike")
    one, two = matrix(1), matrix(2)
    ranks = [ranks_by_loop(other) for other in (one, two)]
    assert fuse([holed, one, two])["n0", "n1"] == pytest.approx((ranks[0]["n0", "n1"] + ranks[1]["n0", "n1"]) / 2)
    assert np.isnan(fuse([holed, one])["n0", "n1"])  # half of them is not most
    assert np.isfinite(fuse([holed, one])["n0", "n2"])


def test_matrices_are_matched_by_the_names_of_networks() -> None:
    one, two = matrix(0), matrix(1)
    assert np.array_equal(fuse([one, two]).values, fuse([one, two.reordered(NAMES[::-1])]).values)


def network_fusion_by_loop(several: list[SimilarityMatrix]) -> np.ndarray:
    """Wang et al. 2014, equations 1 to 8, with single sums."""
    m, near = len(NAMES), 5
    full, local = [], []
    for one in several:
        ranks = ranks_by_loop(one)
        d = [[0.0 if a == b else 1 - ranks[min(a, b), max(a, b)] for b in NAMES] for a in NAMES]
        mean = [sum(sorted(d[i][j] for j in range(m) if j != i)[:near]) / near for i in range(m)]
        w = [[np.exp(-(d[i][j] ** 2) / (0.5 * (mean[i] + mean[j] + d[i][j]) / 3)) for j in range(m)] for i in range(m)]
        full.append(halves(w))
        rows = []
        for i in range(m):
            nearest = sorted((j for j in range(m) if j != i), key=lambda j, row=w[i]: -row[j])[:near]
            total = sum(w[i][j] for j in nearest)
            rows.append([w[i][j] / total if j in nearest else 0.0 for j in range(m)])
        local.append(rows)
    for _ in range(10):
        spread = []
        for v in range(len(several)):
            mean = [
                [sum(full[o][i][j] for o in range(len(full)) if o != v) / (len(full) - 1) for j in range(m)]
                for i in range(m)
            ]
            moved = np.array(local[v]) @ np.array(mean) @ np.array(local[v]).T
            spread.append(halves(((moved + moved.T) / 2).tolist()))
        full = spread
    return sum(np.array(one) for one in full) / len(full)


def halves(w: list[list[float]]) -> list[list[float]]:
    m = len(w)
    totals = [sum(w[i][j] for j in range(m) if j != i) for i in range(m)]
    return [[0.5 if i == j else w[i][j] / (2 * totals[i]) for j in range(m)] for i in range(m)]


def test_network_fusion_orders_pairs_as_a_plain_loop() -> None:
    several = [matrix(0), matrix(1, "less alike"), matrix(2)]
    fused, loop = fuse(several, "snf"), network_fusion_by_loop(several)
    loop = (loop + loop.T) / 2
    pairs = list(combinations(range(7), 2))
    order = np.argsort([loop[i, j] for i, j in pairs])
    assert [fused.values[pairs[k]] for k in order] == pytest.approx(np.linspace(0, 1, len(pairs)))


@pytest.mark.parametrize(("how", "gain"), [("ranks", 0.1), ("snf", 0.0)])
def test_groups_that_noisy_measures_see_are_seen_better_together(how: str, gain: float) -> None:
    draw = np.random.default_rng(0)
    names = [f"{group}{i}" for group in "abc" for i in range(5)]
    truth = np.array([[1.0 * (one[0] == other[0]) for other in names] for one in names])

    def noisy(number: int) -> SimilarityMatrix:
        noise = draw.normal(size=truth.shape)
        return SimilarityMatrix(names, truth + (noise + noise.T) / 2, f"noisy {number}", "more alike")

    several = [noisy(number) for number in range(8)]
    whole = SimilarityMatrix(names, truth, "truth", "more alike")
    alone = max(float(agreement(one, whole, permutations=1, resamples=1)) for one in several)
    assert float(agreement(fuse(several, how), whole, permutations=1, resamples=1)) > alone + gain


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: fuse([matrix(0)]), "1 measures are given, and several are fused. Give two or more."),
        (
            lambda: fuse([SimilarityMatrix(["a", "b"], np.eye(2), "x", "more alike")] * 2),
            "pairs are ranked, and 2 networks have one. Give three or more.",
        ),
        (
            lambda: fuse([matrix(0), SimilarityMatrix(list("abcdefg"), np.eye(7), "x", "more alike")]),
            "'m0' and 'x' are of different networks. Compare the same ones.",
        ),
        (
            lambda: fuse([matrix(0), matrix(1)], weights={"m3": 1}),
            "no matrix is of 'm3'. Weigh those given.",
        ),
        (
            lambda: fuse([matrix(0), matrix(1)], weights={"m0": -1}),
            "weights are numbers of at least 0, one of them above. Give such numbers.",
        ),
        (
            lambda: fuse([matrix(0), matrix(1)], weights={"m0": "1"}),
            "weights are numbers of at least 0, one of them above. Give such numbers.",
        ),
        (
            lambda: fuse([matrix(0), matrix(1)], "snf", weights={"m0": 1}),
            "weights are of ranks, and this is a fusion by 'snf'. Leave them out.",
        ),
    ],
)
def test_what_cannot_be_fused_is_refused(call, sentence: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        call()


def test_another_fusion_is_refused() -> None:
    with pytest.raises(
        UnknownNameError, match=r"^no fusion named 'rank'. Did you mean 'ranks'\? Choose 'ranks' or 'snf'.$"
    ):
        fuse([matrix(0), matrix(1)], "rank")
