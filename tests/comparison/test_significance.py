"""Nulls, calibrated scores and intervals."""

import numpy as np
import pytest
import torch

import likewise
from likewise import measures
from likewise.comparison.significance import PERMUTATIONS, false_discovery, share_beyond, two_sided
from likewise.matrices.score import LEVEL
from likewise.measures.pair import Pair
from likewise.measures.registry import MEASURES, select
from likewise.measures.representation import Representation
from likewise.measures.resampling import Permuted, Subset
from likewise.measures.workspace import Workspace
from likewise.views import Activations

SEEDS = 20
DRAWING = ("ridge-predictivity", "rtd")  # measures that draw among the inputs
SIMILARITIES = [
    m.name for m in MEASURES if m.info.on == "representation" and m.info.similarity and not m.missing_options
]


def noise(seed, n=100, d=512):
    return np.random.default_rng(seed).normal(size=(2, n, d))


def related(n=80, d=12):
    rng = np.random.default_rng(3)
    hidden = rng.normal(size=(n, 5))
    return [np.maximum(hidden @ rng.normal(size=(5, d)) + 0.5 * rng.normal(size=(n, d)), 0) for _ in range(3)]


def test_debiased_cka_of_noise_is_about_zero() -> None:
    for seed in range(SEEDS):
        assert abs(measures.cka_debiased(*noise(seed))) < 0.03


def test_the_known_baselines_of_noise_are_what_they_are() -> None:
    x, y = noise(0)
    assert measures.cka(x, y) == pytest.approx(0.84, abs=0.01)
    assert measures.distance_correlation(x, y) == pytest.approx(0.98, abs=0.01)
    assert measures.linear_regression(x, y) == pytest.approx(1.0, abs=1e-9)
    assert measures.aligned_cosine(x, y) == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize("name", SIMILARITIES)
def test_calibrated_scores_of_noise_are_about_zero(name) -> None:
    """Nine in ten of twenty seeds at most 0.05; slow measures get fewer permutations."""
    shuffles = 19 if name in ("ridge-predictivity", "pwcca", "hard-correlation") else 39
    scores = [likewise.calibrate(*noise(seed), name, permutations=shuffles).calibrated for seed in range(SEEDS)]
    assert sum(score <= 0.05 for score in scores) >= 0.9 * SEEDS


@pytest.mark.parametrize("name", ["cka", "procrustes", "jaccard", "rsa", "pwcca"])
def test_related_networks_are_told_from_noise(name) -> None:
    x, y, _ = related()
    result = likewise.calibrate(x, y, name, permutations=99)
    assert result.p == pytest.approx(1 / 100)
    assert result.calibrated > 0.1
    assert result.value == measures.get(name)(x, y)


def test_an_identical_network_is_calibrated_to_one() -> None:
    x, _, _ = related()
    assert likewise.calibrate(x, 2 * x, "cka", permutations=19).calibrated == pytest.approx(1)


def test_the_same_seed_gives_the_same_null() -> None:
    x, y, _ = related()
    first, again, other = (likewise.calibrate(x, y, "cka", permutations=9, seed=s).null_mean for s in (1, 1, 2))
    assert first == again != other


def test_a_whole_matrix_is_calibrated_at_once() -> None:
    views = dict(zip("abc", related(), strict=True))
    result = likewise.calibrate(views, measure="cka", permutations=19)
    assert result.calibrated.shape == (3, 3)
    frame = result.to_frame()
    assert len(frame) == 6
    assert (frame.calibrated > 0.2).all()
    alone = likewise.calibrate(views["a"], views["b"], "cka", permutations=19)
    assert result.value[0, 1] == pytest.approx(alone.value)


def test_compare_adds_the_null_to_the_frame() -> None:
    views = dict(zip("abc", related(), strict=True))
    frame = likewise.compare(views, ["cka", "jaccard"], calibrate=True).to_frame()
    assert {"null_mean", "null_quantile", "calibrated", "p"} <= set(frame.columns)
    apart = frame[frame.a != frame.b]
    assert (apart.calibrated > 0).all()
    assert (apart.null_mean < apart.value).all()


def test_a_pair_is_told_apart_from_pairs() -> None:
    a, b, c = related()
    for views, counted in (
        ({"a": a, "b": b}, "over 1 pair, from 20"),
        ({"a": a, "b": b, "c": c}, "over 3 pairs, from 20"),
    ):
        assert counted in str(likewise.compare(views, "cka", calibrate=20))


@pytest.mark.parametrize("measure", [m for m in select(["all", "resi"]) if m.name != "rtd"], ids=lambda m: m.key)
def test_resampling_by_index_equals_computing_anew(measure) -> None:
    x, y, _ = related()
    workspace = Workspace()
    a, b = (Representation(Activations(v), workspace) for v in (x, y))
    measure.score(Pair(a, b))
    rng = np.random.default_rng(0)
    order = torch.from_numpy(rng.permutation(80))
    half = order[:40].sort().values
    shuffled = measure.score(Pair(a, Permuted(b, order)))
    assert shuffled == pytest.approx(measure(x, y[order]), rel=1e-9, abs=1e-9)
    if measure.name in DRAWING:  # with the folds of the whole: see the next test
        return
    drawn = measure.score(Pair(Subset(a, half), Subset(b, half)))
    assert drawn == pytest.approx(measure(x[half], y[half]), rel=1e-9, abs=1e-9)


def test_a_part_of_the_inputs_keeps_the_chance_of_the_whole() -> None:
    rep = Representation(Activations(related(n=30)[0]))
    rows = np.array([0, 2, 3, 5, 8, 13, 21, 29])
    part = Subset(rep, torch.from_numpy(rows))
    assert list(rows[part.random_order(7)]) == [i for i in rep.random_order(7) if i in rows]
    for own, whole in zip(part.random_sets(9, 4, 1), rep.random_sets(9, 4, 1), strict=True):
        assert list(rows[own]) == [i for i in whole if i in rows]
    assert part.batches(10) == [(0, 5), (5, 6), (6, 8)]
    assert list(part.random_sets(30, 4, 1)[0]) == list(range(8))


def test_labels_are_shuffled_with_the_side_they_belong_to() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, size=200)
    logits = [np.eye(4)[labels] + rng.normal(size=(200, 4)) for _ in range(2)]
    kappa = measures.get("error-consistency", labels=labels)
    result = likewise.calibrate(*logits, kappa, permutations=50)
    assert result.value == kappa(*logits)
    assert abs(result.null_mean) < 0.05


@pytest.mark.parametrize("symmetric", [True, False])
def test_the_false_discovery_rate_is_that_of_benjamini_and_hochberg(symmetric) -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(size=(5, 5)) ** 2
    p = (p + p.T) / 2 if symmetric else p
    p[0, 1] = p[1, 0] = np.nan
    np.fill_diagonal(p, np.nan)
    q = false_discovery(p, symmetric=symmetric)
    i, j = np.nonzero(~np.isnan(p) & (np.triu(np.ones((5, 5)), 1) > 0 if symmetric else True))
    order = np.argsort(p[i, j])
    scaled = p[i, j][order] * len(i) / np.arange(1, len(i) + 1)
    expected = [min(1, min(scaled[k:])) for k in range(len(i))]  # from the largest p down
    assert q[i[order], j[order]] == pytest.approx(expected)
    if symmetric:
        assert np.array_equal(q, q.T, equal_nan=True)


def test_one_in_twenty_strangers_at_most_is_told_apart() -> None:
    """By the rule alone: a value and its null drawn alike."""
    rng = np.random.default_rng(0)
    info = measures.get("cka").info
    draws = rng.normal(size=(4000, PERMUTATIONS + 1))
    found = []
    for value, *null in draws:
        more, less = two_sided(value, np.array(null), info)
        found.append(min(1.0, 2 * min(more, less)) <= LEVEL)
    assert np.mean(found) == pytest.approx(0.04, abs=0.01)  # two ranks of a hundred on either side


def test_a_constant_null_is_no_verdict() -> None:
    more, less = two_sided(0.5, np.full(99, 0.5), measures.get("cka").info)
    assert (more, less) == (1.0, 1.0)


def twins(count=20, n=100):
    """Unrelated networks, but the second is the first, rotated, with a tenth of noise."""
    rng = np.random.default_rng(0)
    networks = rng.normal(size=(count, n, 16))
    rotation = np.linalg.qr(rng.normal(size=(16, 16)))[0]
    networks[1] = networks[0] @ rotation + 0.1 * networks[1]
    return dict(zip(map(str, range(count)), networks, strict=True))


def test_a_twin_among_twenty_networks_is_found_by_two_hundred_shuffles() -> None:
    matrix = likewise.compare(twins(), "cka", calibrate=True)
    assert matrix.extra["p"][0, 1] == matrix.extra["p"][1, 0] == pytest.approx(1 / (1 + 190 * 200))
    assert matrix.extra["q"][0, 1] < 0.01
    assert matrix.about["null"] == "p below 0.055 from the shuffles of all 190 pairs, standardised"


def test_small_p_come_from_the_shuffles_of_all_pairs_and_large_ones_from_those_of_their_own() -> None:
    """By plain loops: every shuffle in standard deviations from the mean of the others of its pair."""
    rng = np.random.default_rng(0)
    nulls, values = rng.normal(size=(30, 5, 5)) ** 3, 2 + rng.normal(size=(5, 5)) ** 2
    p = share_beyond(values, nulls, np.full((5, 5), 1e-9), symmetric=False)
    pairs = [(i, j) for i in range(5) for j in range(5) if i != j]
    pooled = []
    for i, j in pairs:
        for k in range(30):
            others = np.delete(nulls[:, i, j], k)
            pooled.append((nulls[k, i, j] - others.mean()) / others.std(ddof=1))
    for i, j in pairs:
        beyond = (nulls[:, i, j] >= values[i, j]).sum()
        score = (values[i, j] - nulls[:, i, j].mean()) / nulls[:, i, j].std(ddof=1)
        common = (1 + (np.array(pooled) >= score).sum()) / (1 + len(pooled))
        assert p[i, j] == pytest.approx((1 + beyond) / 31 if beyond >= 10 else min(common, 11 / 31))


def test_a_pair_alone_and_a_constant_null_have_only_their_own_shuffles() -> None:
    rng = np.random.default_rng(0)
    nulls, values = rng.normal(size=(30, 4, 4)), np.full((4, 4), 9.0)
    nulls[:, 0, 1] = nulls[:, 1, 0] = 9.0
    p = share_beyond(values, nulls, np.full((4, 4), 1e-9), symmetric=False)
    assert p[0, 1] == p[1, 0] == 1.0
    assert p[2, 3] == pytest.approx(1 / (1 + 10 * 30))
    x, y, _ = related()
    alone = likewise.compare({"x": x, "y": y}, "linear-regression", calibrate=30)
    assert alone.extra["p"][0, 1] == pytest.approx(1 / 31)
    assert alone.about["null"] == ""
