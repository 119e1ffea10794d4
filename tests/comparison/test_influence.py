"""Which inputs make networks unlike: held against scores of what is left, counted by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import likewise
from likewise.comparison.influence import Influence, influence, small_picture
from likewise.data import Data
from likewise.errors import InputError, StoreError


def views(n: int = 30) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(0)
    hidden = draw.normal(size=(n, 4))
    found = {name: hidden @ draw.normal(size=(4, 6)) + 0.2 * draw.normal(size=(n, 6)) for name in "abc"}
    found["b"][11] *= -3  # an input that b alone sees elsewhere
    return found


def test_an_input_that_one_network_moved_is_the_worst_of_its_pairs() -> None:
    found = influence(views(), ["cka", "procrustes", "pnka"], progress=False)
    assert found.how == ("left out", "left out", "pointwise")
    for measure in found.measures:
        assert found.worst("a", "b", measure)[0][0] == 11
        assert found.worst("b", "a", measure) == found.worst("a", "b", measure)


def test_what_an_input_does_is_the_score_with_it_minus_the_score_without() -> None:
    given = views()
    found = influence(given, ["cka", "procrustes"], most=30, progress=False)
    without = {name: np.delete(array, 11, axis=0) for name, array in given.items()}
    for measure, sign in (("cka", 1), ("procrustes", -1)):  # a distance is turned round: below 0 is worse
        change = likewise.compare(given["a"], given["b"], measure) - likewise.compare(
            without["a"], without["b"], measure
        )
        assert dict(found.worst("a", "b", measure))[11] == pytest.approx(sign * change, rel=1e-4)


def test_a_file_holds_everything(tmp_path: Path) -> None:
    images = Data(
        "images", "image", np.random.default_rng(0).random((30, 1, 8, 8)), list(range(30)), tuple(map(str, range(30)))
    )
    found = influence(views(), "cka", data=images, most=3, progress=False)
    again = Influence.load(found.save(tmp_path / "inputs.safetensors"))
    assert again.worst("a", "b", "cka") == found.worst("a", "b", "cka")
    assert again.classes == images.classes
    assert again.shown == found.shown
    assert again.pictures.shape == (len(found.shown), 8, 8, 1)
    row = found.shown[0]
    expected = (255 * images.inputs[row, 0]).round().byte().numpy()
    np.testing.assert_array_equal(again.pictures[0, :, :, 0], expected)


def test_texts_come_as_they_are() -> None:
    texts = Data("texts", "text", [f"text {i}" for i in range(30)])
    found = influence(views(), "pnka", data=texts, most=2, progress=False)
    assert found.texts == tuple(f"text {row}" for row in found.shown)


def test_large_pictures_are_made_small() -> None:
    import torch

    assert small_picture(torch.rand(3, 128, 256)).shape == (32, 64, 3)


def test_a_measure_of_networks_leaves_no_input_out() -> None:
    with pytest.raises(InputError) as error:
        influence(views(), "sat", progress=False)
    assert str(error.value) == "sat looks at networks, and single inputs are not left out of it. Choose another."


def test_data_of_another_length_is_refused() -> None:
    with pytest.raises(InputError) as error:
        influence(views(), "cka", data=Data("few", "text", ["a", "b"]), progress=False)
    assert str(error.value) == "the views are of 30 inputs and the data has 2. Give what they were shown."


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = influence(views(), "pnka", progress=False).save(tmp_path / "inputs.safetensors")
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(StoreError) as error:
        Influence.load(path)
    assert str(error.value) == (
        f"{path} does not say which inputs networks differ on, or it is damaged. Run again what wrote it."
    )


def test_intervals_of_a_comparison_are_those_of_bootstrap() -> None:
    given = views()
    matrix = likewise.compare(given, "cka", intervals=True, progress=False)
    expected = likewise.bootstrap(given, measure="cka", progress=False)
    np.testing.assert_allclose(matrix.extra["low"], expected.low)
    np.testing.assert_allclose(matrix.extra["high"], expected.high)
