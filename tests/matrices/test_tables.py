"""Tables that fit a terminal, whatever networks are called and however many they are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from likewise._base.names import short_names
from likewise.matrices.layers import LayerMatrix
from likewise.matrices.similarity import Comparison, SimilarityMatrix
from likewise.matrices.tables import fit_width


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["lenet,seed=0", "mlp,seed=0"], ["lenet,seed=0", "mlp,seed=0"]),  # short enough
        (
            ["vit_tiny_patch16_224,pretrained=false", "vit_tiny_patch16_224"],
            ["vit_tiny_patch16_224,pretrained=false", "vit_tiny_patch16_224"],
        ),
        (
            ["vit_tiny_patch16_224,pretrained=false", "vit_tiny_patch16_224,pretrained=false#2"],
            ["vit_tiny_patch16_224", "vit_tiny_patch16_224#2"],
        ),
        (["hf:/data/models/one/gpt2", "hf:/data/models/two/llama"], ["gpt2", "llama"]),
        (
            ["hf:/data/models/one/gpt2", "hf:/data/models/two/gpt2"],
            ["hf:/data/models/one/gpt2", "hf:/data/models/two/gpt2"],
        ),
        (["vit_tiny_patch16_224,seed=0 ~ b,seed=0", "c"], ["vit_tiny_patch16_224,seed=0 ~ b,seed=0", "c"]),
        (["trained for a long time, then pruned", "b"], ["trained for a long time, then pruned", "b"]),
    ],
)
def test_options_and_folders_are_shown_where_they_tell_names_apart(names: list[str], shown: list[str]) -> None:
    assert short_names(names) == shown


def matrix(names: list[str]) -> SimilarityMatrix:
    values = np.random.default_rng(0).random((len(names), len(names)))
    return SimilarityMatrix(names, values)


def test_long_names_across_become_the_numbers_beside_the_names() -> None:
    names = [f"{name}_patch16_224" for name in ("vit_tiny", "vit_small", "vit_base", "vit_large")]
    lines = matrix(names).table(".4f").splitlines()
    assert lines[0].split() == ["1", "2", "3", "4"]
    assert [line.split()[:2] for line in lines[1:]] == [[name, str(i)] for i, name in enumerate(names, start=1)]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("length", [2, 15, 30, 60])
@pytest.mark.parametrize("count", [3, 12, 40])
@pytest.mark.parametrize("width", [80, 120])
def test_a_table_of_any_names_fits_and_holds_every_number_once(length: int, count: int, width: int) -> None:
    names = [f"{i:02d}".ljust(length, "x") for i in range(count)]
    made = matrix(names)
    text = made.table(".4f", width)
    assert max(map(len, text.splitlines())) <= width
    numbers = [word for word in text.split() if word.startswith("0.")]
    assert sorted(numbers) == sorted(f"{value:.4f}" for value in made.values.ravel())
    assert all(name in text for name in names)


def test_names_of_columns_that_are_not_those_of_rows_are_listed_below() -> None:
    columns = [f"model.encoder.layers.{i}" for i in range(9)]
    made = LayerMatrix("a", "b", ["stem", "body"], columns, np.ones((2, 9)), "cka")
    lines = made.table(".3f").splitlines()
    assert lines[0].split() == [str(i) for i in range(1, 10)]
    assert lines[3:] == [f"{i}  {name}" for i, name in enumerate(columns, start=1)]


def test_a_frame_keeps_the_names_of_its_axes() -> None:
    frame = pd.DataFrame([["1"]], pd.Index(["cka"], name="measure"), pd.Index(["a ~ b"], name="pair"))
    assert fit_width(frame).splitlines() == ["pair    a ~ b", "measure", "cka         1"]


def test_files_and_frames_keep_names_in_full() -> None:
    names = ["vit_tiny_patch16_224,pretrained=false", "resnet18,pretrained=false"]
    made = matrix(names)
    assert "pretrained" not in str(made)
    assert "pretrained" not in str(Comparison({"cka": made, "rsa": made}))
    assert list(made.to_frame().columns) == list(made.names) == names
    assert set(made.to_frame(long=True)["a"]) == set(names)
