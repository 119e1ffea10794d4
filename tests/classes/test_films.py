"""Films of a training: pages and GIFs of its matrices."""

from __future__ import annotations

import base64
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from likewise import classes
from likewise.classes import Inspector
from likewise.errors import InputError
from tests.classes.helpers import NAMES, ORDER, TEN, drawn, hollow, refusals, refused, reported, warned, watched


def film_of(page: Path) -> dict[str, Any]:
    text = page.read_text(encoding="utf-8")
    (found,) = re.findall(r"^const data = (.*);$", text, flags=re.MULTILINE)
    return json.loads(found)


def frames(film: dict[str, Any], size: int) -> np.ndarray:
    stored = np.frombuffer(base64.b64decode(film["frames"]["data"]), np.uint8)
    return stored.reshape(film["frames"]["count"], size, size)


def entries(film: dict[str, Any], size: int, power: int = 1) -> np.ndarray:
    """The numbers that the bytes of a film stand for, NaN for undefined ones."""
    low, high = (film["frames"][end] ** (1 / power) for end in ("low", "high"))
    steps = frames(film, size).astype(float)
    return np.where(steps == 0, np.nan, low + (steps - 1) / 254 * (high - low)) ** power


test_an_error_is_a_sentence = refusals(
    (lambda: classes.animate(Inspector(3), "film.html"), "no epoch was reported yet, so there is nothing to animate.")
)


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
