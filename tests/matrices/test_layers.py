"""A matrix of layers: its file, its picture, and the folder it is written to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from likewise.errors import InputError, StoreError
from likewise.matrices.layers import LayerMatrix


@pytest.fixture
def matrix() -> LayerMatrix:
    values = [[1.0, 0.25, 0.5], [0.125, 0.0, float("nan")]]
    return LayerMatrix("a", "b@x/w", ["p", "q"], ["r", "s", "t"], values, "cka", {"seed": "0"})


def test_a_matrix_comes_back_from_its_file(matrix: LayerMatrix, tmp_path: Path) -> None:
    matrix.save(tmp_path / "m.safetensors")
    again = LayerMatrix.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.values, matrix.values)
    assert (again.a, again.b, again.rows, again.columns) == (
        "a",
        "b@x/w",
        ["p", "q"],
        ["r", "s", "t"],
    )
    assert (again.measure, again.about) == ("cka", {"seed": "0"})


def test_a_file_that_holds_no_matrix_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(b"something else")
    with pytest.raises(StoreError) as caught:
        LayerMatrix.load(path)
    assert str(caught.value) == (f"{path} holds no layer matrix. Give a file that LayerMatrix.save wrote.")


def test_every_layer_needs_a_name() -> None:
    with pytest.raises(InputError) as caught:
        LayerMatrix("a", "b", ["p"], ["r"], [[1.0, 2.0]], "cka")
    assert str(caught.value) == ("1 rows and 1 columns were named for values of shape (1, 2). Name every layer once.")


def test_the_picture_shows_every_layer_and_the_short_names(matrix: LayerMatrix) -> None:
    axes = matrix.plot().axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["p", "q"]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["r", "s", "t"]
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("a", "b@w")


def test_a_folder_gets_numbers_table_and_picture(matrix: LayerMatrix, tmp_path: Path) -> None:
    paths = matrix.write(tmp_path / "new")
    assert [path.name for path in paths] == [
        "layerwise.safetensors",
        "layerwise.csv",
        "layerwise.png",
    ]
    assert paths[1].read_text().splitlines()[1] == "p,1.0,0.25,0.5"
    assert paths[2].read_bytes().startswith(b"\x89PNG")


def test_reasons_come_back_from_a_file(tmp_path: Path) -> None:
    matrix = LayerMatrix("a", "b", ["p"], ["q"], [[float("nan")]], "cka", {}, {("p", "q"): "dead"})
    matrix.save(tmp_path / "m.safetensors")
    assert LayerMatrix.load(tmp_path / "m.safetensors").reasons == {("p", "q"): "dead"}
