"""Pictures of soft labels and histograms: what they show is what was found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.spatial.distance import pdist

from likewise.errors import InputError
from likewise.zeroshot import ZeroShot, embed_soft_labels, plot_differences, plot_histograms, plot_maps
from tests.helpers import sentence
from tests.zeroshot.helpers import drawn

ODD = ("a$b", "_c", "ü & <d>", "x^2_y")


def points(axis: Axes) -> np.ndarray:
    return np.asarray(axis.collections[0].get_offsets())


def drawn_whole(figure: Figure, path: Path) -> None:
    """A formula that cannot be read shows only when it is drawn."""
    figure.savefig(path)
    assert path.stat().st_size > 5000


@pytest.mark.parametrize("how", ["isomap", "tsne"])
def test_a_map_has_one_panel_per_architecture_and_class_and_one_point_per_sample(how: str, tmp_path: Path) -> None:
    figure = plot_maps([drawn("one"), drawn("two")], tmp_path / "map.png", how=how)
    assert [len(points(axis)) for axis in figure.axes] == [12] * 8
    assert [axis.get_title() for axis in figure.axes[:4]] == list("abcd")
    assert [figure.axes[0].get_ylabel(), figure.axes[4].get_ylabel()] == ["one", "two"]
    assert (tmp_path / "map.png").read_bytes()[:4] == b"\x89PNG"


def test_panels_of_isomap_share_a_scale_so_that_a_wider_cloud_is_a_larger_dbi() -> None:
    wide = drawn("wide")
    close = tuple(0.25 / 3 + 0.75 / 3 + 0.01 * (part - 1 / 3) for part in wide.held_out[0])
    narrow = ZeroShot("narrow", wide.classes, wide.full, (close,))
    figure = plot_maps([wide, narrow])
    assert len({axis.get_xlim() for axis in figure.axes}) == 1
    spread = [np.sqrt((points(axis) ** 2).sum(axis=1).mean()) for axis in figure.axes]
    assert np.array(spread[4:]) == pytest.approx(0.01 * np.array(spread[:4]), rel=1e-6)


def test_isomap_keeps_the_distances_of_points_on_a_line() -> None:
    along = np.linspace(0, 1, 30)[:, None]
    rows = np.hstack([along, 1 - along, 0 * along])
    assert pdist(embed_soft_labels(rows)) == pytest.approx(pdist(rows), abs=1e-6)


def test_equal_soft_labels_share_a_place_and_few_places_keep_their_distances() -> None:
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    for how in ("isomap", "tsne"):
        at = embed_soft_labels(rows, how)
        assert at.mean(axis=0) == pytest.approx([0, 0])
        assert (at[0] == at[2]).all()
        assert np.linalg.norm(at[0] - at[1]) == pytest.approx(2**0.5)
    assert (embed_soft_labels(np.ones((5, 3))) == 0).all()


def test_answers_in_clusters_are_drawn_without_a_warning() -> None:
    draw = np.random.default_rng(0)
    rows = np.repeat(np.eye(3), 20, axis=0) + 1e-4 * draw.random((60, 3))
    assert embed_soft_labels(rows).shape == (60, 2)


def test_histograms_show_h_filled_and_h_prime_outlined_per_sample() -> None:
    result = drawn()
    seen, unseen = result.histograms()
    bars = [bar.get_height() for bar in plot_histograms(result).axes[1].patches]
    assert bars == pytest.approx([*np.nan_to_num(unseen[1]) / 12, *np.nan_to_num(seen[1]) / 12])
    gaps = [bar.get_height() for bar in plot_histograms(result, difference=True).axes[1].patches]
    assert gaps == pytest.approx(np.abs(np.nan_to_num(unseen[1]) - np.nan_to_num(seen[1])) / 12)


def test_the_mean_of_a_line_is_the_amalgam_metric() -> None:
    results = [drawn("one"), drawn("two")]
    axis = plot_differences(results).axes[0]
    for line, one in zip(axis.lines, results, strict=True):
        assert np.mean(line.get_ydata()) == pytest.approx(one.amalgam().mean)
        assert line.get_label() == f"{one.network}: AM {one.amalgam().mean:.4g}"


@pytest.mark.parametrize("plot", [plot_maps, plot_histograms, plot_differences])
def test_names_of_classes_and_networks_may_hold_anything(plot: object, tmp_path: Path) -> None:
    figure = plot([drawn("net_$1", ODD), drawn("_hidden$", ODD)])  # type: ignore[operator]
    drawn_whole(figure, tmp_path / "odd.png")


def test_what_cannot_be_drawn_is_refused_in_a_sentence() -> None:
    assert sentence(InputError, plot_maps, []) == (
        "no result is given, so there is nothing to draw. Give at least one."
    )
    assert sentence(InputError, plot_histograms, [drawn(), drawn(classes=tuple("abce"))]) == (
        "the results are of different classes. Draw those of one data set together."
    )
    assert sentence(InputError, plot_maps, drawn(), how="umap") == "no map named 'umap'. Choose 'isomap' or 'tsne'."
