"""Families and maps of matrices whose structure is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import likewise
from likewise import analysis
from tests.analysis.helpers import families, matrix
from tests.conftest import refused


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
            "6 networks cannot be put into 9 families. Choose 2 to 5.",
        ),
        (
            lambda: analysis.clusters(matrix(np.eye(2))),
            "SimilarityMatrix('made', 2 networks) has 2 networks, too few to compare pairs. Give three or more.",
        ),
        (
            lambda: analysis.clusters(matrix([[1, 2, np.nan], [2, 1, 3], [np.nan, 3, 1]])),
            "SimilarityMatrix('made', 3 networks, 2 undefined) has no score for 'n0' and 'n2'. Leave one of them out: "
            "matrix.reordered([...]) with the names to keep.",
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
    ids=["too many", "too few", "undefined", "map", "row"],
)
def test_what_cannot_be_is_said(call: object, message: str) -> None:
    assert refused(call) == message  # type: ignore[operator]


def test_the_room_is_there_by_name() -> None:
    assert likewise.analysis is analysis


def test_the_matrix_is_drawn_by_family_beside_a_map(tmp_path: Path) -> None:
    given, _ = families((4, 3, 5))
    found = analysis.clusters(given, 3)
    figure = analysis.plot_families(found, tmp_path / "families.png")
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


def test_many_networks_are_named_by_their_family() -> None:
    given, _ = families((15, 15, 15))
    heat, places = analysis.plot_families(analysis.clusters(given, 3), how="mds").axes[:2]
    assert [label.get_text() for label in heat.get_yticklabels()] == ["family 0", "family 1", "family 2"]
    assert not places.texts
    assert places.get_title() == "map (mds), stability 1.00"
