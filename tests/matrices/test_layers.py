"""A matrix of layers: its file, its picture, and the folder it is written to."""

from __future__ import annotations

from pathlib import Path

import pytest

from likewise.errors import InputError, StoreError
from likewise.matrices.layers import LayerMatrix
from tests.helpers import sentence


@pytest.fixture
def matrix() -> LayerMatrix:
    values = [[1.0, 0.25, 0.5], [0.125, 0.0, float("nan")]]
    return LayerMatrix("a", "b@x/w", ["p", "q"], ["r", "s", "t"], values, "cka", {"seed": "0"})


def test_what_is_no_matrix_of_layers_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(b"something else")
    assert sentence(StoreError, LayerMatrix.load, path) == (
        f"{path} holds no layer matrix. Give a file that LayerMatrix.save wrote."
    )
    assert sentence(InputError, LayerMatrix, "a", "b", ["p"], ["r"], [[1.0, 2.0]], "cka") == (
        "1 rows and 1 columns were named for values of shape (1, 2). Name every layer once."
    )


def test_the_picture_shows_every_layer_and_the_short_names(matrix: LayerMatrix) -> None:
    axes = matrix.plot().axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["p", "q"]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["r", "s", "t"]
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("a", "b@w")


def test_a_folder_gets_numbers_table_and_picture(matrix: LayerMatrix, tmp_path: Path) -> None:
    paths = matrix.write(tmp_path / "new")
    assert [path.name for path in paths] == [f"layerwise.{kind}" for kind in ("safetensors", "csv", "png")]
    assert paths[1].read_text().splitlines()[1] == "p,1.0,0.25,0.5"
    assert paths[2].read_bytes().startswith(b"\x89PNG")
