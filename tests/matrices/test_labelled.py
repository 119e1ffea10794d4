"""What all matrices with names share: one kind of file, rows and pairs by name, text, HTML and pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

from likewise._base.sealed import verify
from likewise.classes import ClassSimilarity
from likewise.errors import StoreError, UnknownNameError, quoted_list
from likewise.matrices.labelled import Labelled, distances, leaf_order
from likewise.matrices.layers import LayerMatrix
from likewise.matrices.similarity import Comparison, SimilarityMatrix
from likewise.matrices.tables import fit_width

GOLDEN = Path(__file__).parents[1] / "golden" / "matrices"
NAN = float("nan")
MADE: dict[str, Labelled] = {
    "similarity": SimilarityMatrix(
        ["a", "b"],
        [[0, 2], [2, NAN]],
        "procrustes[x=1]",
        "less alike",
        reasons={("b", "b"): "it is constant."},
        extra={"q": np.array([[NAN, 0.01], [0.01, NAN]])},
        about={"n": 20, "permutations": 9},
        saturated={("a", "b"): "too wide."},
        bounds=(0, None),
        aliases=("OrthProc",),
    ),
    "layers": LayerMatrix(
        "zoo:a",
        "zoo:b@x/w",
        ["p"],
        ["r", "s"],
        [[1, NAN]],
        "cka",
        {"seed": "0"},
        {("p", "s"): "dead."},
        {},
        "more alike",
    ),
    "classes": ClassSimilarity([[1, 0.5], [0.5, 1]], ["cat", "dog"], "weights", None, ["n02121620", None], {"x": 1}),
}


def parts(matrix: Labelled) -> dict[str, Any]:
    return json.loads(json.dumps({**matrix.metadata(), "axes": [list(names) for names in matrix.axes]}))


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("ending", ["", ".safetensors", ".npz", ".v2"])
def test_a_file_gives_back_all_that_was_saved(tmp_path: Path, kind: str, ending: str) -> None:
    matrix = MADE[kind]
    path = matrix.save(tmp_path / f"m{ending}")
    assert path.name == f"m{ending}" + (".safetensors" if ending in ("", ".v2") else "")
    for again in (type(matrix).load(path), type(matrix).load(tmp_path / f"m{ending}")):
        np.testing.assert_array_equal(again.values, matrix.values)
        assert parts(again) == parts(matrix)
        assert str(again) == str(matrix)


def test_extra_grids_come_back_as_arrays(tmp_path: Path) -> None:
    found = SimilarityMatrix.load(MADE["similarity"].save(tmp_path / "m"))
    np.testing.assert_array_equal(found.extra["q"], [[NAN, 0.01], [0.01, NAN]])
    assert (found.bounds, found.aliases) == ((0, None), ("OrthProc",))


@pytest.mark.parametrize("kind", MADE)
def test_files_are_safetensors_of_one_form_with_a_checksum(tmp_path: Path, kind: str) -> None:
    path = MADE[kind].save(tmp_path / "m")
    assert set(verify(path, required=True)) == {"facts"}
    with safe_open(path, framework="numpy") as file:
        assert set(file.metadata()) == {"facts", "checksum", "sealed"}
        assert json.loads(file.metadata()["facts"])["matrix"] == MADE[kind].KIND
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(StoreError) as caught:
        type(MADE[kind]).load(path)
    name = type(MADE[kind]).__name__
    assert str(caught.value) == f"{path} holds no {MADE[kind].KIND}. Give a file that {name}.save wrote."


def test_a_matrix_of_another_kind_is_refused(tmp_path: Path) -> None:
    for ending in (".safetensors", ".npz"):
        path = MADE["classes"].save(tmp_path / f"m{ending}")
        with pytest.raises(StoreError) as caught:
            SimilarityMatrix.load(path)
        assert str(caught.value) == f"{path} holds no similarity matrix. Give a file that SimilarityMatrix.save wrote."
    with pytest.raises(StoreError, match="holds no layer matrix"):
        LayerMatrix.load(GOLDEN / "classes.safetensors")


# Files of earlier versions


def test_a_comparison_of_an_earlier_version_is_read() -> None:
    found = Comparison.load(GOLDEN / "comparison")
    assert list(found) == ["mean-cca", "procrustes"]
    matrix = found["procrustes"]
    assert matrix.names == ("a", "b", "wide", "dead")
    assert matrix.larger_is == "less alike"
    assert matrix["a", "b"] == pytest.approx(0.6329791291951369, abs=0)
    assert np.isnan(matrix.values[3]).all()
    assert matrix.reasons["a", "dead"].startswith("'dead' is constant: all 20 rows are the same")
    assert set(found["mean-cca"].saturated) == {("a", "wide"), ("wide", "a"), ("b", "wide"), ("wide", "b")}
    assert sorted(matrix.extra) == ["calibrated", "null_mean", "null_quantile", "p", "p_less", "q"]
    assert matrix.extra["p"][0, 1] == 0.1
    assert matrix.about["permutations"] == 9
    assert "SimilarityMatrix('procrustes', 4 networks, 7 undefined), larger is less alike" in str(matrix)


def test_layers_of_an_earlier_version_are_read() -> None:
    found = LayerMatrix.load(GOLDEN / "layers.safetensors")
    assert (found.a, found.b, found.rows, found.columns) == ("zoo:a", "zoo:b@x/w", ["p", "q"], ["r", "s", "t"])
    np.testing.assert_array_equal(found.values, [[1.0, 0.25, 0.5], [0.125, 0.0, NAN]])
    assert (found.measure, found.about, found.larger_is) == ("mean-cca", {"seed": "0"}, "")
    assert (found.reasons, found.saturated) == ({("q", "t"): "it is constant."}, {("p", "r"): "too wide."})


def test_classes_of_an_earlier_version_are_read() -> None:
    found = ClassSimilarity.load(GOLDEN / "classes.safetensors")
    np.testing.assert_array_equal(found.values, [[1, 0.9, 0.1], [0.9, 1, NAN], [0.1, NAN, 1]])
    assert (found.classes, found.short) == (("cat", "dog", "ship"), "CCSM-test")
    assert (found.wnids, found.about) == (("n02121620", None, "n04194289"), {"samples": 12})


def test_a_newer_file_takes_the_place_of_one_of_an_earlier_version(tmp_path: Path) -> None:
    found = Comparison.load(GOLDEN / "comparison")
    Comparison({}).save(tmp_path)
    (tmp_path / "mean-cca.npz").write_bytes((GOLDEN / "comparison" / "mean-cca.npz").read_bytes())
    changed = {"mean-cca": found["mean-cca"].reordered(["dead", "wide", "b", "a"])}
    assert Comparison.load(Comparison(changed).save(tmp_path))["mean-cca"].names == ("dead", "wide", "b", "a")


# Names, text and order


@pytest.mark.parametrize("kind", MADE)
def test_rows_and_pairs_are_found_by_name(kind: str) -> None:
    matrix = MADE[kind]
    rows, columns = matrix.axes
    assert matrix[rows[0]] == {name: matrix[rows[0], name] for name in columns if name != "s"} | (
        {"s": pytest.approx(NAN, nan_ok=True)} if "s" in columns else {}
    )
    with pytest.raises(UnknownNameError) as caught:
        matrix["nobody", columns[0]]
    assert str(caught.value) == f"no {matrix.LABEL} named 'nobody'. Choose from {quoted_list(rows)}."


@pytest.mark.parametrize("kind", MADE)
def test_text_and_html_hold_every_name_and_the_reasons_of_marks(kind: str) -> None:
    matrix = MADE[kind]
    for text in (str(matrix), matrix._repr_html_()):
        assert all(name in text for names in matrix.axes for name in names)
        assert ("† saturated: too wide." in text) == (kind == "similarity")
    assert repr(matrix) in str(matrix)


def test_of_a_large_matrix_only_what_is_shown_is_written() -> None:
    values = np.arange(900.0).reshape(30, 30)
    matrix = SimilarityMatrix([f"n{i}" for i in range(30)], values)
    assert str(matrix).split("\n", 1)[1] == fit_width(matrix.grid(), most=20)
    assert (matrix.grid(whole=False) == "").to_numpy().sum() == 900 - 400


def test_alike_names_are_put_side_by_side_whichever_way_a_measure_runs() -> None:
    values = np.array([[1, 0.1, 0.9, 0.1], [0.1, 1, 0.1, 0.8], [0.9, 0.1, 1, 0.2], [0.1, 0.8, 0.2, 1]])
    for scores, larger_is in ((values, "more alike"), (1 - values, "less alike")):
        order = leaf_order(list("abcd"), distances(scores, larger_is))
        assert order == SimilarityMatrix(list("abcd"), scores, larger_is=larger_is).order()
        assert {frozenset(order[:2]), frozenset(order[2:])} == {frozenset("ac"), frozenset("bd")}
