"""Families and maps of matrices whose structure is known."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

import likewise
from likewise import analysis
from likewise.analysis.family_evidence import family_p, level, rand_index
from likewise.transfer.matrix import TransferMatrix
from tests.analysis.helpers import families, matrix, run_folder
from tests.conftest import refused


def test_distances_of_features_are_sorted_by_family() -> None:
    given, groups = families((4, 4, 4))
    found = analysis.clusters(given, 3, method="spectral")
    apart = found.distances()
    assert list(apart.names) == [name for group in found.groups() for name in group]
    for a in (0, 5):
        for b in (3, 11):
            one, other = (found.features[found.names.index(apart.names[at])] for at in (a, b))
            assert apart.values[a, b] == pytest.approx(
                sum((x - y) ** 2 for x, y in zip(one, other, strict=True)) ** 0.5
            )
    same = np.kron(np.eye(3), np.ones((4, 4))) > 0
    assert apart.values[same].mean() < 0.5 * apart.values[~same].mean()
    assert len(groups) == 3


@pytest.mark.parametrize("larger_is", ["more alike", "less alike"])
def test_families_that_were_put_in_are_found(larger_is: str) -> None:
    given, groups = families((4, 3, 5), larger_is=larger_is)
    found = analysis.clusters(given, 3)
    assert sorted(map(sorted, found.groups())) == sorted(map(sorted, groups))
    assert [len(group) for group in found.groups()] == [5, 4, 3]  # the largest first
    assert found.stability == 1
    assert found.features.shape == (12, 3)


def test_how_many_families_there_are_is_found() -> None:
    given, groups = families((5, 5, 5, 5))
    assert analysis.clusters(given).k == len(groups)


@pytest.mark.parametrize("larger_is", ["more alike", "less alike"])
def test_another_order_of_networks_gives_the_same_families(larger_is: str) -> None:
    given, _ = families((4, 3, 5), larger_is=larger_is)
    order = np.random.default_rng(1).permutation(given.names).tolist()
    one, other = analysis.clusters(given, 3), analysis.clusters(given.reordered(order), 3)
    assert sorted(map(sorted, one.groups())) == sorted(map(sorted, other.groups()))


@pytest.mark.parametrize("larger_is", ["more alike", "less alike"])
def test_a_new_network_is_put_where_it_is_most_alike(larger_is: str) -> None:
    given, groups = families((4, 3, 5), larger_is=larger_is)
    found = analysis.clusters(given, 3)
    for group in groups:
        left = found.without(group[0])
        label = found.labels[found.names.index(group[0])]
        assert left.assign({name: given[group[0], name] for name in left.names}) == label


@pytest.mark.parametrize("how", ["tsne", "mds", "spectral"])
def test_alike_networks_are_near_on_a_map(how: str) -> None:
    given, groups = families((6, 6))
    places = dict(zip(given.names, analysis.embed(given, how), strict=True))
    centre = [np.mean([places[name] for name in group], axis=0) for group in groups]
    for own, group in enumerate(groups):
        for name in group:
            away = [np.linalg.norm(places[name] - middle) for middle in centre]
            assert int(np.argmin(away)) == own


def test_a_map_of_plane_points_is_those_points() -> None:
    points = np.random.default_rng(0).normal(size=(6, 2))
    apart = np.linalg.norm(points[:, None] - points, axis=2)
    given = matrix(apart, larger_is="less alike")
    places = analysis.embed(given, "mds")
    np.testing.assert_allclose(np.linalg.norm(places[:, None] - places, axis=2), apart, atol=1e-10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: analysis.clusters(families((3, 3))[0], 9),
            "6 networks cannot be put into 9 families. Choose 1 to 6.",
        ),
        (
            lambda: analysis.clusters(families((3, 3))[0], 6, method="spectral"),
            "6 networks cannot be put into 6 families. Choose 2 to 5.",
        ),
        (
            lambda: analysis.clusters(families((3, 3))[0], method="ward"),  # type: ignore[arg-type]
            "no method named 'ward'. Choose 'average' or 'spectral'.",
        ),
        (
            lambda: analysis.clusters(matrix(np.eye(1))),
            "SimilarityMatrix('made', 1 networks) has 1 network, too few to compare pairs. Give two or more.",
        ),
        (
            lambda: analysis.clusters(matrix([[1, 2, np.nan], [2, 1, 3], [np.nan, 3, 1]])),
            "SimilarityMatrix('made', 3 networks, 2 undefined) has no score for 'n0' and 'n2'. Leave one of them out: "
            "matrix.reordered([...]) with the names to keep.",
        ),
        (
            lambda: analysis.clusters(families((3, 3))[0], 1.5),  # type: ignore[arg-type]
            "k must be a whole number of at least 0, got 1.5.",
        ),
        (
            lambda: analysis.clusters(np.eye(3)),  # type: ignore[arg-type]
            "a similarity matrix is needed, and an array of shape (3, 3) was given. Give that of one measure "
            "(comparison['cka']), or likewise.SimilarityMatrix(names, values).",
        ),
        (
            lambda: analysis.embed(families((3, 3))[0], "pca"),
            "no map named 'pca'. Choose 'tsne', 'mds' or 'spectral'.",
        ),
        (
            lambda: analysis.clusters(families((3, 3))[0], 2).assign({"n0": 1.0}),
            "the row has no score for 'n1'. Give one for each of 6 networks.",
        ),
    ],
    ids=["too many", "too many features", "method", "too few", "undefined", "number", "array", "map", "row"],
)
def test_what_cannot_be_is_said(call: object, message: str) -> None:
    assert refused(call) == message  # type: ignore[operator]


SIZES = {"4 + 1": (4, 1), "3 + 2": (3, 2), "6 + 5 + 1": (6, 5, 1), "8 + 7 + 5": (8, 7, 5), "20 + 20 + 10": (20, 20, 10)}


def planted(
    sizes: tuple[int, ...], seed: int, larger_is: str = "more alike"
) -> tuple[likewise.SimilarityMatrix, np.ndarray]:
    """Families with scores of 3.3 within and 2.2 between, and noise of 0.3."""
    draw = np.random.default_rng(seed)
    labels = draw.permutation(np.repeat(np.arange(len(sizes)), sizes))
    noise = np.triu(draw.normal(scale=0.3, size=(len(labels), len(labels))), 1)
    alike = np.where(labels[:, None] == labels, 3.3, 2.2) + noise + noise.T
    np.fill_diagonal(alike, 4.6)
    return matrix(alike if larger_is == "more alike" else 4.6 - alike, larger_is=larger_is), labels


@pytest.mark.parametrize("larger_is", ["more alike", "less alike"])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_planted_families_are_found_at_their_number(sizes: tuple[int, ...], larger_is: str) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    scores = []
    for seed in range(10 if sum(sizes) < 20 else 3):
        given, labels = planted(sizes, seed, larger_is)
        scores.append(metrics.adjusted_rand_score(labels, analysis.clusters(given, len(sizes)).labels))
    assert np.mean(scores) >= 0.95


@pytest.mark.parametrize("sizes", list(SIZES.values())[2:], ids=list(SIZES)[2:])
def test_how_many_planted_families_there_are_is_found(sizes: tuple[int, ...]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    for seed in range(3):
        given, labels = planted(sizes, seed)
        found = analysis.clusters(given)
        assert metrics.adjusted_rand_score(labels, found.labels) == 1
        assert found.p <= 0.01
        assert found.stability > 0.9


@pytest.mark.parametrize("sizes", list(SIZES.values())[:2], ids=list(SIZES)[:2])
def test_families_of_five_networks_are_found(sizes: tuple[int, ...]) -> None:
    indices = []
    for seed in range(40):
        given, labels = planted(sizes, seed)
        indices.append(rand_index(labels, np.array(analysis.clusters(given).labels)))
    assert np.mean(indices) >= 0.8  # 0.87 of many zoos, less what 40 draws vary


def test_five_unrelated_networks_are_one_family() -> None:
    ones = [analysis.clusters(planted((5,), seed)[0]) for seed in range(40)]
    assert sum(found.k == 1 for found in ones) >= 34  # 90 % would be 36, less what 40 draws vary
    counts = f"; for so few networks up to {level(5):.2g} counts)"
    assert all(counts in found.verdict for found in ones)


def test_equal_scores_are_compared_with_their_places_alone() -> None:
    labels = np.array([0, 0, 0, 1, 1])
    alike = (labels[:, None] == labels).astype(float)
    ways = [alike[np.ix_(order, order)] for order in map(list, permutations(range(5)))]
    rare = len({tuple(way[np.triu_indices(5, 1)]) for way in ways}) / math.comb(10, 4)  # 10 of 210
    assert family_p(alike, shuffles=1999) == pytest.approx(rare, abs=0.015)


def test_a_network_far_from_all_others_hides_no_families() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    for seed in range(3):
        given, labels = planted((6, 5, 1), seed)
        values = np.array(given.values)
        alone = int(np.flatnonzero(labels == 2)[0])
        values[alone] = values[:, alone] = 0.2
        found = analysis.clusters(matrix(values))
        assert metrics.adjusted_rand_score(labels, found.labels) == 1


def test_unrelated_networks_are_one_family() -> None:
    one = [analysis.clusters(planted((12,), seed)[0]) for seed in range(20)]
    assert sum(found.k == 1 for found in one) >= 18
    alone = next(found for found in one if found.k == 1)
    assert np.isnan(alone.stability)
    assert alone.spread(0)["to_others"] is None
    assert alone.verdict.startswith(
        "one family of 12 networks by made (larger is more alike); scores are not more grouped"
    )


@pytest.mark.parametrize("skewed", [False, True], ids=["rows differ", "scores are skewed"])
def test_neither_rows_nor_tails_make_families(skewed: bool) -> None:
    ones = 0
    for seed in range(20):
        draw = np.random.default_rng(seed)
        level = np.zeros(12) if skewed else draw.normal(scale=0.3, size=12)
        noise = np.triu(draw.exponential(0.3, size=(12, 12)) if skewed else draw.normal(scale=0.1, size=(12, 12)), 1)
        ones += analysis.clusters(matrix(level[:, None] + level + noise + noise.T)).k == 1
    assert ones >= 16  # 90 % would be 18, less what 20 draws vary


def test_the_alike_pair_of_three_networks_stays_together() -> None:
    given = matrix([[1, 0.68, 0.0], [0.68, 1, 0.05], [0.0, 0.05, 1]])
    found = analysis.clusters(given, 2)
    assert found.groups() == [["n0", "n1"], ["n2"]]
    assert str(found).splitlines()[1:] == ["family 0: n0, n1", "family 1, alone: n2"]
    auto = analysis.clusters(given)
    assert (auto.k, auto.groups()) == (1, [["n0", "n1", "n2"]])
    assert auto.verdict == (
        "one family of 3 networks by made (larger is more alike); fewer than 5 networks are too few to tell whether "
        "there are several families"
    )


@pytest.mark.parametrize(("k", "groups"), [("auto", [["n0", "n1"]]), (1, [["n0", "n1"]]), (2, [["n0"], ["n1"]])])
def test_two_networks_are_families_too(k: int, groups: list[list[str]]) -> None:
    assert analysis.clusters(matrix([[1, 0.2], [0.2, 1]]), k).groups() == groups


def test_what_is_less_alike_within_is_never_called_a_family() -> None:
    # the pair that average linkage leaves over: 0.3 to each other, 0.5 to the other three
    alike = np.full((5, 5), 0.5)
    alike[:3, :3], alike[3, 4], alike[4, 3] = 0.9, 0.3, 0.3
    labels = (0, 0, 0, 1, 1)
    found = replace(analysis.clusters(matrix(alike), 2), labels=labels)
    assert found.spread(1) == pytest.approx({"within": 0.3, "to_others": 0.5})
    assert (found.title(0), found.title(1)) == ("family 0", "no family, no more alike than to others")
    for seed in range(5):
        auto = analysis.clusters(planted((3, 3), seed)[0])
        assert all(auto.title(label).startswith("family") for label in range(auto.k))


def test_stability_falls_where_families_depend_on_single_networks_or_inputs() -> None:
    clear, vague = planted((6, 5, 1), 0)[0], planted((12,), 0)[0]
    assert analysis.clusters(clear, 3).stability > 0.95
    assert analysis.clusters(vague, 3).stability < 0.8
    assert np.isnan(analysis.clusters(clear, 3).input_stability)
    for reach, least, most in ((0.1, 0.95, 1.0), (3.0, -0.2, 0.6)):
        extra = {"low": clear.values - reach, "high": clear.values + reach}
        assert least <= analysis.clusters(replace(clear, extra=extra), 3).input_stability <= most


def test_a_cut_of_equal_scores_is_not_called_stable() -> None:
    found = analysis.clusters(matrix(np.full((6, 6), 0.5)), 3)
    assert np.isnan(found.stability)
    assert "agree" not in found.verdict


def test_stability_over_inputs_comes_from_the_attacks_themselves(tmp_path: Path) -> None:
    _, made, answers = run_folder(tmp_path)
    found = analysis.clusters(made)
    assert found.k == 3
    assert found.input_stability > 0.9
    assert "inputs drawn anew" in found.verdict
    at_random = np.random.default_rng(0).integers(0, 5, size=made.predictions.shape)
    noise = TransferMatrix.of(answers, at_random)
    assert analysis.clusters(noise, 3).input_stability < 0.5


def test_agreement_of_partitions_is_the_adjusted_rand_index() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    draw = np.random.default_rng(0)
    for one, other in draw.integers(0, 4, size=(20, 2, 12)):
        assert rand_index(one, other) == pytest.approx(metrics.adjusted_rand_score(one, other))
    assert rand_index(np.zeros(5, dtype=int), np.zeros(5, dtype=int)) == 1


def test_an_object_answers_in_a_line() -> None:
    found = analysis.clusters(planted((6, 5, 1), 0)[0])
    assert repr(found) == "Clusters(3 families of 12 networks by 'made', p = 0.002)"


def test_the_room_is_there_by_name() -> None:
    assert likewise.analysis is analysis


@pytest.mark.parametrize("by_matrix", [False, True])
def test_the_matrix_is_drawn_by_family_beside_a_map(by_matrix: bool, tmp_path: Path) -> None:
    given, _ = families((4, 3, 5))
    found = analysis.clusters(given, 3)
    figure = analysis.plot_families(given if by_matrix else found, tmp_path / "families.png")
    assert (tmp_path / "families.png").stat().st_size > 10_000
    heat, places = figure.axes[:2]
    order = [name for group in found.groups() for name in group]
    assert [label.get_text() for label in heat.get_yticklabels()] == order
    drawn = np.ma.filled(heat.images[0].get_array(), np.nan)
    wanted = given.reordered(order).values
    off = ~np.eye(12, dtype=bool)
    assert np.array_equal(drawn[off], wanted[off])
    assert np.isnan(np.diag(drawn)).all()
    assert [len(part.get_offsets()) for part in places.collections] == [5, 4, 3]
    assert sorted(text.get_text() for text in places.texts) == sorted(given.names)


@pytest.mark.parametrize("count", [2, 3])
def test_few_networks_are_drawn_too(count: int) -> None:
    places = analysis.plot_families(matrix(np.eye(count))).axes[1]
    assert sorted(text.get_text() for text in places.texts) == [f"n{i}" for i in range(count)]


def test_many_networks_are_named_by_their_family() -> None:
    given, _ = families((15, 15, 15))
    heat, places = analysis.plot_families(analysis.clusters(given, 3), how="mds").axes[:2]
    assert [label.get_text() for label in heat.get_yticklabels()] == ["family 0", "family 1", "family 2"]
    assert not places.texts
    assert places.get_title() == "map (mds), stability 1.00"
