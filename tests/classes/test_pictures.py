"""Pictures, films and the command: what they show is what they were made from."""

from __future__ import annotations

import base64
import json
import math
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from PIL import Image

from likewise import classes
from likewise.classes import Inspector, from_confusion, from_weights, from_wordnet, ranks
from likewise.data import Data
from likewise.errors import InputError
from tests.classes.helpers import (
    IMAGES,
    NAMES,
    NET,
    ORDER,
    TEN,
    TEXTS,
    drawn,
    hollow,
    refusals,
    refused,
    reported,
    warned,
    watched,
)

GREY = "#dddddd"


def panels(figure: Figure) -> list[Axes]:
    """The axes that hold something, scales left out."""
    return [axis for axis in figure.axes if axis.axison and axis.get_label() != "<colorbar>"]


def shown(axis: Axes) -> np.ndarray:
    """What an image holds, NaN where it is masked."""
    return np.ma.filled(axis.images[0].get_array(), np.nan)


def texts(labels: Any) -> list[str]:
    return [label.get_text() for label in labels]


@pytest.mark.parametrize("epochs", [2, 3, 40])
def test_curves_have_whole_epochs(epochs: int) -> None:
    frame = pd.DataFrame({"accuracy": np.linspace(0, 1, epochs)}, index=pd.Index(range(epochs), name="epoch"))
    (axis,) = panels(classes.curves({"": frame}))
    assert all(tick == int(tick) for tick in axis.get_xticks())


@pytest.fixture(scope="module")
def three() -> dict[str, classes.ClassSimilarity]:
    mixed = TEN.only(sorted(TEN.classes, reverse=True))
    table = np.random.default_rng(0).integers(1, 9, (10, 10))
    return {
        "weights": from_weights(drawn(10, 4), TEN.classes),
        "mistakes": from_confusion(table, classes=TEN.classes),
        "meaning": mixed,
    }


EPOCHS = pd.Index([0, 1, 2], name="epoch")


def frames(film: dict[str, Any], size: int) -> np.ndarray:
    stored = np.frombuffer(base64.b64decode(film["frames"]["data"]), np.uint8)
    return stored.reshape(film["frames"]["count"], size, size)


test_an_error_is_a_sentence = refusals(
    (lambda: classes.animate(Inspector(3), "film.html"), "no epoch was reported yet, so there is nothing to animate."),
    (lambda: classes.histogram({}), "there are no templates to draw. Give at least one."),
    (lambda: classes.matrices({}), "there is no matrix to draw. Give at least one."),
    (
        lambda: classes.curves({"": pd.DataFrame({"loss": [1.0]})}, columns=["accurcy"]),
        "none of the curves asked for was reported. See inspector.curves().columns.",
    ),
    (
        lambda: classes.mistakes(IMAGES, [0, 1, 2], NET),
        "no image of 'three' is misclassified: there is nothing to show.",
    ),
    (lambda: classes.mistakes(IMAGES, [0, 1, 1], NET, count=0), "count is 0. Give at least 1."),
    (
        lambda: classes.mistakes(IMAGES, [0, 1], NET),
        "predictions must be 3 whole numbers from 0 to 2, got int64 of shape (2,). Give one class index per input.",
    ),
    (lambda: classes.mistakes(TEXTS, [0, 1, 1], NET), "'words' holds no images but text data. Give image data."),
    (
        lambda: classes.mistakes(IMAGES, [0, 1, 1], NET.only(["cat", "dog"])),
        "'three' has 3 classes and the similarity 2. Both must hold the same classes.",
    ),
)


def test_matrices_are_side_by_side_in_the_order_of_meaning(three: Any) -> None:
    figure = classes.matrices(three)
    left, middle, right = panels(figure)
    assert [axis.get_title() for axis in (left, middle, right)] == list(three)
    for axis, matrix in zip((left, middle, right), three.values(), strict=True):
        np.testing.assert_array_equal(shown(axis), hollow(matrix.only(ORDER).values))
        assert texts(axis.get_xticklabels()) == ORDER
        assert to_hex(axis.get_facecolor()) == GREY  # what is masked, the diagonal first of all
    assert texts(left.get_yticklabels()) == ORDER
    assert texts(middle.get_yticklabels()) == texts(right.get_yticklabels()) == [""] * 10
    assert len(figure.axes) == 6  # each has its scale


def test_borders_are_drawn_between_groups_of_kin(three: Any) -> None:
    groups = dict(zip(TEN.classes, TEN.groups(), strict=True))
    between = [i + 0.5 for i, (a, b) in enumerate(pairwise(ORDER)) if groups[a] != groups[b]]
    assert between == [5.5]  # six animals, four vehicles
    for axis in panels(classes.matrices(three)):
        across, up = ([float(line.get_data()[way][0]) for line in axis.get_lines()[1 - way :: 2]] for way in (1, 0))
        assert across == up == between


def test_many_classes_are_labelled_by_their_groups() -> None:
    hundred = from_wordnet("cifar100")
    (axis,) = panels(hundred.plot(title="SCSM"))
    groups = dict(zip(hundred.classes, hundred.groups(), strict=True))
    along = [groups[name] for name in hundred.order()]
    named = {group: [i for i, one in enumerate(along) if one == group] for group in along}
    labels = [group.partition(".")[0].replace("_", " ") for group in named]
    assert texts(axis.get_yticklabels()) == [x if x != "entity" else "other" for x in labels]
    assert list(axis.get_yticks()) == [(places[0] + places[-1]) / 2 for places in named.values()]
    assert texts(axis.get_xticklabels()) == []
    assert axis.get_title() == "SCSM"


def test_without_meanings_the_order_is_by_likeness_and_has_no_borders() -> None:
    matrix = from_weights(drawn(6, 3), list("abcdef"))
    (axis,) = panels(classes.matrices({"x": matrix}))
    assert texts(axis.get_xticklabels()) == matrix.order()
    assert list(axis.get_lines()) == []
    (axis,) = panels(classes.matrices({"x": matrix}, order=list("fedcba")))
    assert texts(axis.get_xticklabels()) == list("fedcba")
    np.testing.assert_array_equal(shown(axis), hollow(matrix.values[::-1, ::-1]))


def test_five_matrices_take_two_rows_and_leave_no_empty_frames() -> None:
    matrix = from_weights(drawn(4, 3))
    figure = classes.matrices({str(i): matrix for i in range(5)})
    assert texts(axis.title for axis in panels(figure)) == list("01234")
    assert sum(not axis.axison for axis in figure.axes) == 3


def test_undefined_classes_and_perfect_classifiers_can_be_drawn(tmp_path: Path) -> None:
    undefined = classes.ClassSimilarity(np.full((3, 3), np.nan))
    perfect = from_confusion(np.eye(3, dtype=int))
    figure = classes.matrices({"a": undefined, "b": perfect}, tmp_path / "new" / "both.png")
    left, right = panels(figure)
    assert np.isnan(shown(left)).all()
    assert np.nansum(shown(right)) == 0
    wide, high = figure.get_size_inches()
    with Image.open(tmp_path / "new" / "both.png") as picture:
        assert picture.size == (int(150 * wide), int(150 * high))


def test_curves_are_drawn_as_reported_with_chance_dotted() -> None:
    frame = pd.DataFrame(
        {"accuracy": [0.1, np.nan, 0.9], "nidm_errors": [0.4, 0.5, 0.6], "samples": [3.0, 2.0, 1.0]}, index=EPOCHS
    )
    figure = classes.curves({"": frame}, chance={"nidm_errors": 0.44})
    one, two = panels(figure)
    assert [one.get_title(), two.get_title()] == ["accuracy", "NIDM, errors only"]
    assert one.get_lines()[0].get_xydata().tolist() == [[0, 0.1], [2, 0.9]]
    line, dotted = two.get_lines()
    assert line.get_xydata().tolist() == [[0, 0.4], [1, 0.5], [2, 0.6]]
    assert (dotted.get_linestyle(), list(dotted.get_ydata())) == (":", [0.44, 0.44])
    assert (one.get_xlabel(), two.get_xlabel()) == ("epoch", "epoch")
    assert figure.legends == []
    (only,) = panels(classes.curves({"": frame}, columns=["samples"]))
    assert only.get_title() == "samples"


def test_the_legend_names_every_network_in_its_colour() -> None:
    plain = pd.DataFrame({"wsi_mean": [0.1, 0.2, 0.3]}, index=EPOCHS)
    frames = {"small": plain, "wide": plain.assign(accuracy=0.5), "deep": plain + 1}
    figure = classes.curves(frames)
    (legend,) = figure.legends
    assert texts(legend.get_texts()) == ["small", "wide", "deep"]
    colours = dict(zip(frames, (line.get_color() for line in legend.get_lines()), strict=True))
    assert len(set(colours.values())) == 3
    accuracy, mean = panels(figure)
    assert [(line.get_label(), line.get_color()) for line in accuracy.get_lines()] == [
        ("wide", colours["wide"])  # in the first panel there is only one of them
    ]
    assert {line.get_label(): line.get_color() for line in mean.get_lines()} == colours


def test_an_inspectors_plot_has_its_chance_levels() -> None:
    inspector = watched(epochs=2)
    drawn_levels = {
        axis.get_title(): [line.get_ydata()[0] for line in axis.get_lines() if line.get_linestyle() == ":"]
        for axis in panels(inspector.plot())
    }
    chance = inspector.chance()
    assert drawn_levels["SAI(NCSM, SCSM) cosine"] == [chance["sai_ncsm_scsm"]]
    assert drawn_levels["WIDM, errors only"] == [pytest.approx(8 / 18)]  # (c - 2) / (2 (c - 1))
    assert drawn_levels["accuracy"] == []


@pytest.mark.parametrize("channels", [1, 3])
def test_the_most_and_the_least_reasonable_mistakes_are_shown(channels: int) -> None:
    draw = np.random.default_rng(0)
    n, count = 120, 6
    truth = np.arange(n) % 10
    answers = np.where(np.arange(n) % 3 == 0, truth, draw.integers(0, 10, n))
    grey = torch.arange(n).float().div(n).view(n, 1, 1, 1).expand(n, channels, 4, 4)
    data = Data("greys", "image", grey.clone(), truth, TEN.classes)
    figure = classes.mistakes(data, answers, TEN, count=count)
    rank = ranks(TEN)
    found: list[list[float]] = []
    pairs: list[list[tuple[int, int]]] = []
    for row in (figure.axes[:count], figure.axes[count:]):
        indices = [round(float(np.asarray(axis.images[0].get_array()).max()) * n) for axis in row]
        for axis, i in zip(row, indices, strict=True):
            assert truth[i] != answers[i]
            told = f"{TEN.classes[truth[i]]}\n→ {TEN.classes[answers[i]]}"
            assert texts(axis.texts) == [told]
            assert axis.images[0].get_array().shape == ((4, 4, 3) if channels == 3 else (4, 4))
        pairs.append([(truth[i], answers[i]) for i in indices])
        found.append([rank[pair] for pair in pairs[-1]])
    every = {(t, a) for t, a in zip(truth, answers, strict=True) if t != a}
    assert found[0] == sorted(rank[pair] for pair in every)[:count]
    assert found[1] == sorted((rank[pair] for pair in every), reverse=True)[:count]
    assert max(found[0]) <= min(found[1])
    assert len(set(pairs[0])) == len(set(pairs[1])) == count
    assert figure.axes[0].get_title(loc="left") == "most reasonable"
    assert figure.axes[count].get_title(loc="left") == "least reasonable"


def test_a_pair_comes_again_only_when_all_pairs_were_shown() -> None:
    truth, answers = [0, 0, 0, 1], [1, 1, 1, 0]
    data = Data("two", "image", torch.rand(4, 1, 3, 3), truth, ("a", "b", "c"))
    similarity = from_weights(drawn(3, 4), data.classes)
    figure = classes.mistakes(data, answers, similarity, count=5)
    for row in (figure.axes[:5], figure.axes[5:]):
        said = [texts(axis.texts) for axis in row]
        assert sorted(said[:2]) == [["a\n→ b"], ["b\n→ a"]]
        assert said[2:] == [["a\n→ b"], ["a\n→ b"], []]


def test_a_histogram_counts_the_mistakes() -> None:
    draw = np.random.default_rng(0)
    rows, labels = draw.normal(size=(60, 3)) + 1, draw.integers(0, 3, 60)
    found = classes.templates(rows, labels, draw.integers(0, 3, 60))
    (axis,) = panels(classes.histogram({"early": found, "late": found}))
    said = f"{found.mistakes} mistakes"
    assert texts(axis.get_legend().get_texts()) == [f"early: {said}", f"late: {said}"]
    outline = axis.patches[0].get_xy()  # up and down again at every step
    assert outline[1:-1:2, 1].sum() == pytest.approx(found.mistakes)
    assert outline[:, 0].min() == pytest.approx(found.cosines.min())


def test_mistakes_are_ranked_by_the_rows_of_their_own_classes() -> None:
    rows = np.random.default_rng(0).normal(size=(4, 3))
    names = ("cat", "dog", "newt", "ship")
    data = Data("few", "image", torch.rand(4, 1, 3, 3), [0, 1, 2, 3], names)
    turned = from_weights(rows, names).only(names[::-1])
    expected = classes.mistakes(data, [1, 2, 3, 0], from_weights(rows, names), count=4)
    found = classes.mistakes(data, [1, 2, 3, 0], turned, count=4)

    def said(figure: Any) -> list[str]:
        return [text.get_text() for axis in figure.axes for text in axis.texts]

    assert said(found) == said(expected)
    other = from_weights(rows, ["cat", "dog", "newt", "boat"])
    assert refused(InputError, lambda: classes.mistakes(data, [1, 2, 3, 0], other)) == (
        "the similarity NCSM has no class that is surely 'ship'; it has 'cat', 'dog', 'newt' and 1 "
        "more. Classes are matched by WordNet id or by name, never by position: name them as it does, "
        "or give one WordNet id per class."
    )


def film_of(page: Path) -> dict[str, Any]:
    text = page.read_text(encoding="utf-8")
    (found,) = re.findall(r"^const data = (.*);$", text, flags=re.MULTILINE)
    return json.loads(found)


def test_a_film_shows_epochs_that_were_counted_where_there_are_any(tmp_path: Path) -> None:
    watch = classes.Inspector(3)
    watch.report(np.eye(3), epoch=0)
    assert film_of(classes.animate(watch, tmp_path / "start.html"))["epochs"] == [0]
    watch.update([0, 1, 2, 2], [0, 1, 2, 1])
    watch.report(np.eye(3) + 0.1)
    film = film_of(classes.animate(watch, tmp_path / "film.html"))
    assert (film["epochs"], len(film["films"])) == ([1], 2)


def entries(film: dict[str, Any], size: int, power: int = 1) -> np.ndarray:
    """The numbers that the bytes of a film stand for, NaN for undefined ones."""
    low, high = (film["frames"][end] ** (1 / power) for end in ("low", "high"))
    steps = frames(film, size).astype(float)
    return np.where(steps == 0, np.nan, low + (steps - 1) / 254 * (high - low)) ** power


def test_a_film_holds_the_matrices_of_every_epoch(tmp_path: Path) -> None:
    inspector = watched(3, features=True)
    page = classes.animate(inspector, tmp_path / "new" / "film.html", title="Ten", seconds=0.2)
    film = film_of(page)
    assert (film["title"], film["epochs"], film["seconds"]) == ("Ten", [1, 2, 3], 0.2)
    assert (film["classes"], film["size"], film["borders"]) == (ORDER, 10, [0.6])
    assert [part["title"] for part in film["films"]] == [
        "weights (NCSM)",
        "mistakes (CCSM)",
        "features (TNCSM)",
        "meaning (WordNet)",
    ]
    for part, kind in zip(film["films"], ("weights", "confusion", "features"), strict=False):
        power = 2 if kind == "confusion" else 1  # most mistakes are rare, so their roots are kept
        truth = np.stack([hollow(inspector.matrices(n)[kind].only(ORDER).values) for n in (1, 2, 3)])
        step = (np.nanmax(truth) - np.nanmin(truth)) / 254
        np.testing.assert_allclose(entries(part, 10, power), truth, rtol=0, atol=power * step + 1e-4)
        assert frames(part, 10).max() == 255
        assert part["frames"]["high"] == round(float(np.nanmax(truth)), 4)
    still = entries(film["films"][3], 10)
    np.testing.assert_allclose(still, [hollow(TEN.only(ORDER).values)], rtol=0, atol=2e-3)
    assert film["colours"][0] == [68, 1, 84]
    assert len(film["colours"]) == 256


def test_a_film_has_the_curves_and_their_chance(tmp_path: Path) -> None:
    inspector = watched(3)
    film = film_of(classes.animate(inspector, tmp_path / "film.html", epochs=[1, 3]))
    curves = inspector.curves()
    assert film["epochs"] == [1, 3]
    assert film["curves"]["accuracy"] == curves["accuracy"].loc[[1, 3]].round(5).tolist()
    assert film["curves"]["WSI max"] == curves["wsi_max"].loc[[1, 3]].round(5).tolist()
    assert film["chance"]["WIDM, errors only"] == round(8 / 18, 5)
    assert frames(film["films"][0], 10).shape == (2, 10, 10)


@pytest.mark.parametrize("title", ["</script><b>é", "<!--<script>"])
def test_a_title_neither_ends_nor_opens_a_script(tmp_path: Path, title: str) -> None:
    page = classes.animate(watched(1), tmp_path / "film.html", title=title)
    assert film_of(page)["title"] == title
    text = page.read_text(encoding="utf-8")
    assert (text.count("<script>"), text.count("</script>"), text.count("<!--")) == (1, 1, 0)


def test_many_classes_are_averaged_down(tmp_path: Path) -> None:
    inspector = Inspector(250)
    inspector.update(np.arange(250), np.arange(250))
    inspector.report(drawn(250, 6))
    film = film_of(classes.animate(inspector, tmp_path / "film.html"))
    order = film["classes"]
    matrix = inspector.matrices(1)["weights"]
    assert (film["size"], order, film["borders"]) == (200, matrix.order(), [])
    values = hollow(matrix.only(order).values)
    cuts = [(math.floor(i * 1.25), math.floor((i + 1) * 1.25)) for i in range(200)]
    found = entries(film["films"][0], 200)[0]
    for i, j in [*np.random.default_rng(0).integers(0, 200, (300, 2)), (3, 3), (199, 199)]:
        block = values[slice(*cuts[i]), slice(*cuts[j])]
        assert found[i, j] == pytest.approx(np.nanmean(block), abs=5e-3)
    assert np.isnan(found[0, 0])  # one class alone has nothing but its diagonal
    assert cuts[0] == (0, 1)


def test_a_film_of_undefined_matrices_is_grey(tmp_path: Path) -> None:
    inspector = Inspector(3)
    inspector.update([0, 1, 2], [0, 1, 2])
    with pytest.warns(UserWarning, match=r"^the similarity of '0', '1', '2' is undefined: "):
        inspector.report(np.zeros((3, 2)))
    film = film_of(classes.animate(inspector, tmp_path / "film.html"))
    assert frames(film["films"][0], 3).max() == 0
    with Image.open(classes.animate(inspector, tmp_path / "film.gif")) as picture:
        colours = {c: n for n, c in picture.convert("RGB").getcolors(1 << 20)}
    assert colours[221, 221, 221] > 10_000
    assert film["curves"]["WSI max"] == [None]


def test_a_gif_has_a_picture_an_epoch_in_one_order_and_on_one_scale(tmp_path: Path) -> None:
    inspector = watched(3, 5)
    path = classes.animate(inspector, tmp_path / "film.gif", seconds=0.2)
    orders = [inspector.matrices(n)["weights"].order() for n in (1, 2, 3)]
    assert orders[0] != orders[1]  # without meanings, the first epoch says it for all
    with Image.open(path) as film:
        assert film.n_frames == 3
        pauses, pictures = [], []
        for number in range(3):
            film.seek(number)
            pauses.append(film.info["duration"])
            pictures.append(np.asarray(film.convert("L"), dtype=float))
    assert pauses == [200, 200, 800]  # it rests at the end
    wide = pictures[0].shape[1]
    for picture in pictures[1:]:
        gaps = np.abs(picture - pictures[0])[40:]
        assert gaps[:, : wide // 20].max() < 40  # the names of the classes stay where they are
        assert gaps[:, -wide // 16 :].max() < 40  # and so does the scale
        assert gaps.max() > 100


def test_a_film_ends_in_html_or_gif(tmp_path: Path) -> None:
    inspector = reported(None)
    assert refused(InputError, classes.animate, inspector, tmp_path / "film.mp4") == (
        "film.mp4 must end in .html or .gif."
    )
    assert refused(InputError, classes.animate, inspector, tmp_path / "film.gif", epochs=[9]) == (
        "epoch 9 was not kept. There are: 1, 2."
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["html", "gif"])
def test_epochs_without_a_matrix_make_no_film(tmp_path: Path, ending: str) -> None:
    inspector = Inspector(NAMES)
    warned(inspector.report)
    assert refused(InputError, classes.animate, inspector, tmp_path / f"film.{ending}") == (
        "these epochs have no matrix in common, so there is nothing to animate."
    )


def test_several_seeds_are_a_mean_in_a_band_from_the_least_to_the_largest() -> None:
    seeds = [pd.DataFrame({"accuracy": values}, index=EPOCHS) for values in ([0.1, 0.2, 0.6], [0.3, 0.4, 0.9])]
    (axis,) = panels(classes.curves({"net": seeds}))
    assert axis.get_lines()[0].get_xydata() == pytest.approx(np.array([[0, 0.2], [1, 0.3], [2, 0.75]]))
    (band,) = axis.collections
    corners = {(round(x, 6), round(y, 6)) for x, y in band.get_paths()[0].vertices}
    assert corners == {(0, 0.1), (1, 0.2), (2, 0.6), (0, 0.3), (1, 0.4), (2, 0.9)}


def test_joint_panels_hold_sai_beside_loss_rate_and_fooling_rate(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "accuracy": [0.1, 0.5, 0.9],
            "sai_ncsm_scsm": [0.6, 0.8, 0.7],
            "loss": [np.nan, 2.0, 1.0],
            "validation_loss": [np.nan, 3.0, 2.0],
            "lr": [np.nan, 0.1, 0.01],
            "fooling_rate": [np.nan, 0.2, np.nan],
            "errors": [90.0, 50.0, 10.0],
        },
        index=EPOCHS,
    )
    figure = classes.joint(frame, tmp_path / "joint.png", chance={"sai_ncsm_scsm": 0.63})
    assert (tmp_path / "joint.png").stat().st_size > 0
    titled = [axis for axis in panels(figure) if axis.get_title()]
    assert [axis.get_title() for axis in titled] == [
        "accuracy and losses",
        "SAI(NCSM, SCSM), loss and learning rate",
        "SAI(NCSM, SCSM) and fooling rate",
        "number of mistakes",
    ]
    held = {
        axis.get_title(): [
            (line.get_label(), line.get_ydata().tolist())
            for other in figure.axes
            if other.get_position().x0 == axis.get_position().x0 and other.get_position().y0 == axis.get_position().y0
            for line in other.get_lines()
            if line.get_linestyle() != ":"
        ]
        for axis in titled
    }
    (losses,) = [axis for axis in panels(figure) if axis.get_ylabel() == "loss, validation_loss"]  # on one scale
    assert [line.get_label() for line in losses.get_lines()] == ["loss", "validation_loss"]
    sai = ("sai_ncsm_scsm", [0.6, 0.8, 0.7])
    assert held["SAI(NCSM, SCSM), loss and learning rate"] == [sai, ("loss", [2.0, 1.0]), ("lr", [0.1, 0.01])]
    assert held["SAI(NCSM, SCSM) and fooling rate"] == [sai, ("fooling_rate", [0.2])]
    assert held["number of mistakes"] == [("errors", [90.0, 50.0, 10.0])]
    dotted = [line.get_ydata()[0] for line in titled[1].get_lines() if line.get_linestyle() == ":"]
    assert dotted == [0.63]


test_what_cannot_be_drawn_of_seeds_and_panels_is_a_sentence = refusals(
    (
        lambda: classes.curves({"net": []}),
        "'net' has no curves to draw. Give at least one frame of inspector.curves().",
    ),
    (
        lambda: classes.curves({"net": [1, 2]}),
        "'net' needs a data frame of curves, got int. Give inspector.curves().",
    ),
    (
        lambda: classes.joint(pd.Series([1.0])),
        "joint needs a data frame of curves, got Series. Give inspector.curves().",
    ),
    (
        lambda: classes.joint(pd.DataFrame({"samples": [1.0]})),
        "none of the curves of the joint panels was reported. See inspector.curves().columns.",
    ),
)
