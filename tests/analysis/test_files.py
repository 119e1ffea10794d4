"""Matrices and tables as people keep them, and as they come damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import likewise
from likewise import analysis
from likewise.errors import InputError, LikewiseError
from likewise.transfer.matrix import TransferMatrix
from tests.analysis.helpers import families, run_folder
from tests.conftest import refused


def test_saved_matrices_are_read(tmp_path: Path) -> None:
    given, _ = families((3, 3))
    for name in ("m.safetensors", "m.npz"):
        found = analysis.read_matrix(given.save(tmp_path / name))
        assert np.array_equal(found.values, given.values)
        assert found.measure == "made"


def test_a_square_csv_is_read_whatever_the_order_of_its_rows(tmp_path: Path) -> None:
    given, _ = families((3, 3), larger_is="less alike")
    given.to_frame().iloc[::-1].to_csv(tmp_path / "apart.csv")
    found = analysis.read_matrix(tmp_path / "apart.csv", larger_is="less alike")
    assert (found.names, found.measure, found.larger_is) == (given.names, "apart", "less alike")
    np.testing.assert_allclose(found.values, given.values)
    given.to_frame().to_csv(tmp_path / "apart.tsv", sep="\t")
    np.testing.assert_allclose(analysis.read_matrix(tmp_path / "apart.tsv").values, given.values)


@pytest.mark.parametrize("point", [",", "."])
def test_a_csv_separated_by_semicolons_is_read(tmp_path: Path, point: str) -> None:
    (tmp_path / "m.csv").write_text(";a;b;c\na;1;.5;.2\nb;.5;1;.1\nc;.2;.1;1\n".replace(".", f"0{point}"))
    assert analysis.read_matrix(tmp_path / "m.csv")["a", "b"] == 0.5


def test_numbers_serve_as_names(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(",10,20,30\n10,1,.5,.2\n20,.5,1,.1\n30,.2,.1,1\n")
    assert analysis.read_matrix(tmp_path / "m.csv")["10", "20"] == 0.5


def test_folders_of_runs_are_read(tmp_path: Path) -> None:
    run, given, answers = run_folder(tmp_path / "run")
    found = analysis.read_matrix(run)
    assert isinstance(found, TransferMatrix)
    assert np.array_equal(found.values, given.values)
    assert found.answers is not None
    assert np.array_equal(found.answers.logits, answers.logits)
    (run / "answers.safetensors").unlink()
    assert np.array_equal(analysis.read_matrix(run).values, given.values)


def test_of_a_folder_with_one_matrix_it_is_read(tmp_path: Path) -> None:
    given, _ = families((3, 3))
    likewise.Comparison({"cka": given}).save(tmp_path / "out" / "matrices")
    assert np.array_equal(analysis.read_matrix(tmp_path / "out").values, given.values)


def test_a_table_has_its_networks_first(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("network,stem,norm\na,7s2,BN\nb,4s4,LN\n")
    table = analysis.read_table(tmp_path / "t.csv")
    assert table.loc["b"].to_dict() == {"stem": "4s4", "norm": "LN"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "m.csv",
            ",a,b\na,1,2\n",
            "{path} is no square matrix: it has 1 rows and 2 columns, and their names are to be the same. Put the "
            "names of the networks into the first row and the first column.",
        ),
        (
            "m.csv",
            ",a,b\na,1,x\nb,2,1\n",
            "{path} has entries that are no numbers (could not convert string to float: 'x'). Repair them, or leave "
            "them empty.",
        ),
        ("m.csv", "network\na\n", "{path} is an empty table. Give one row per network, with its name first."),
        ("m.csv", None, "there is no file {path}. Check the path."),
        (
            "m.safetensors",
            "nothing",
            "{path} holds no similarity matrix. Give a file that SimilarityMatrix.save wrote.",
        ),
    ],
    ids=["square", "text", "empty", "absent", "damaged"],
)
def test_what_is_no_matrix_is_said(tmp_path: Path, name: str, content: str | None, message: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    assert refused(lambda: analysis.read_matrix(path), LikewiseError) == message.format(path=path)


def test_an_empty_file_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "t.csv").touch()
    assert refused(lambda: analysis.read_table(tmp_path / "t.csv")) == (
        f"{tmp_path / 't.csv'} is no table (No columns to parse from file). Give a CSV file with the networks in its "
        "first column."
    )


def test_of_a_folder_with_several_matrices_one_is_to_be_named(tmp_path: Path) -> None:
    given, _ = families((3, 3))
    for name in ("a", "b"):
        given.save(tmp_path / f"{name}.safetensors")
    with pytest.raises(InputError) as error:
        analysis.read_matrix(tmp_path)
    first, second = (str(tmp_path / f"{name}.safetensors") for name in "ab")
    assert str(error.value) == (f"{tmp_path} holds several matrices, {first!r}, {second!r}. Give the file of one.")
    (tmp_path / "none").mkdir()
    assert (
        refused(lambda: analysis.read_matrix(tmp_path / "none"))
        == f"{tmp_path / 'none'} holds no matrix. Give the file of one."
    )
