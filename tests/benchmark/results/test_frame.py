"""Results of runs: read, joined, chosen from, and refused where they are damaged."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from likewise.benchmark.results.frame import COLUMNS, Results, label
from likewise.errors import InputError, MissingDataError
from tests.benchmark.frames import results as made
from tests.benchmark.frames import row, run

NETWORKS = [
    {"name": "gcn-0", "group": "clean", "groundings": "labels", "seed": 0, "accuracy": 0.75},
    {"name": "gcn-1", "group": "random", "groundings": "labels", "seed": 1, "accuracy": 0.2},
]


def test_a_run_is_read_with_its_networks(tmp_path: Path) -> None:
    folder = run(tmp_path / "a", [row(), row(measure="rsa", value=None, coverage=0.0, valid=None)], NETWORKS)
    found = Results.load(folder)
    assert tuple(found.frame.columns) == COLUMNS
    assert found.frame["value"].tolist()[0] == 0.5
    assert math.isnan(found.frame["value"][1])
    assert found.frame["valid"].tolist()[0] is True
    assert found.networks is not None
    assert found.networks["accuracy"].tolist() == [0.75, 0.2]
    assert found.networks["data"].tolist() == ["cora", "cora"]  # what all its results are of
    assert repr(found) == "Results(2 rows of 1 cells, 2 measures)"


def test_a_saved_run_reads_the_same(tmp_path: Path) -> None:
    found = made([row(value=1 / 3), row(measure="rsa", value=None, valid=False, ties="half")])
    again = Results.load(found.save(tmp_path).parent)
    pd.testing.assert_frame_equal(again.frame, found.frame)


def test_several_runs_become_one(tmp_path: Path) -> None:
    folders = [run(tmp_path / str(seed), [row(seed=seed)], NETWORKS) for seed in range(3)]
    found = Results.load(*folders)
    assert found.frame["seed"].tolist() == [0, 1, 2]
    assert found.networks is not None
    assert len(found.networks) == 6


def test_the_same_run_twice_is_refused(tmp_path: Path) -> None:
    one, two = run(tmp_path / "one", [row()]), run(tmp_path / "two", [row(), row(seed=1)])
    with pytest.raises(InputError) as error:
        Results.load(one, two)
    assert str(error.value) == (
        f"{one} and {two} hold the same result twice: cka by labels on cora with gcn and seed 0. Give each run once."
    )


def test_rows_are_chosen_by_their_values() -> None:
    found = made([row(), row(data="flickr"), row(data="flickr", measure="rsa")])
    assert len(found.only(data="flickr")) == 2
    assert len(found.only(data=["cora", "flickr"], measure="rsa")) == 1
    assert len(found.only(data=None)) == 3
    with pytest.raises(InputError) as error:
        found.only(data="arxiv")
    assert str(error.value) == "no result has the data 'arxiv'. There are 'cora', 'flickr'."
    with pytest.raises(InputError) as error:
        found.only(shape=3)
    assert str(error.value) == f"results have no column 'shape'. They have {', '.join(COLUMNS)}."


def test_a_form_is_chosen_with_one_rule_of_ties() -> None:
    rows = [row(metric="conformity", ties=ties) for ties in ("conform", "half", "violate")]
    found = made([*rows, row(metric="conformity", variant="resi", ties="violate"), row()])
    assert found.form().frame["ties"].fillna("none").tolist() == ["conform", "none"]
    assert found.form(ties="half").frame["ties"].fillna("none").tolist() == ["half", "none"]
    assert found.form("resi").frame["ties"].tolist() == ["violate"]
    with pytest.raises(InputError) as error:
        found.form("reference")
    assert str(error.value) == "no form named 'reference'. Choose 'published', 'resi'."
    with pytest.raises(InputError) as error:
        found.form(ties="none")
    assert str(error.value) == "ties are 'none'. Choose 'conform', 'half', 'violate'."


def test_the_main_metrics_are_those_the_paper_ranks_by() -> None:
    rows = [row(), row(metric="conformity")]
    rows += [row(grounding="layers", metric=metric) for metric in ("spearman", "conformity")]
    rows += [row(grounding="outputs", metric=metric) for metric in ("spearman_jsd", "spearman_disagreement")]
    kept = made(rows).main().frame
    assert list(zip(kept["grounding"], kept["metric"], strict=True)) == [
        ("labels", "auprc"),
        ("layers", "spearman"),
        ("outputs", "spearman_jsd"),
        ("outputs", "spearman_disagreement"),
    ]


def test_a_measure_is_shown_by_the_papers_abbreviation() -> None:
    assert label("second-order-cosine") == "2nd-Cos"
    assert label("mypkg.mod:fn") == "mypkg.mod:fn"


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError) as error:
        Results.load(tmp_path)
    assert str(error.value) == (
        f"{tmp_path} holds no results.csv, so it is no finished run. Give the folder of `likewise benchmark run --out`."
    )
    with pytest.raises(InputError) as error:
        Results.load()
    assert str(error.value) == "no run was given. Give the folder of one or more."


def damaged(tmp_path: Path, text: str) -> str:
    (tmp_path / "results.csv").write_text(text)
    with pytest.raises(InputError) as error:
        Results.load(tmp_path)
    return str(error.value)


def csv(*rows: dict[str, object]) -> str:
    return pd.DataFrame(list(rows))[list(COLUMNS)].to_csv(index=False)


def test_a_column_that_is_missing_is_named(tmp_path: Path) -> None:
    assert damaged(tmp_path, "domain,data\ngraph,cora\n") == (
        f"{tmp_path / 'results.csv'} has no column 'network'. Results have the columns {', '.join(COLUMNS)}."
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"value": "high"}, "has 'high' as value in row 2, which is no number. Repair it or run again."),
        ({"value": 1.5}, "has 1.5 as value in row 2, beyond -1 to 1. Repair it or run again."),
        ({"coverage": -0.5}, "has -0.5 as coverage in row 2, beyond 0 to 1. Repair it or run again."),
        ({"coverage": None}, "has no coverage in row 2. Repair it or run again."),
        ({"measure": None}, "has no measure in row 2. Repair it or run again."),
        ({"variant": "paper"}, "has 'paper' as variant in row 2. Choose 'published', 'resi'."),
        ({"valid": "perhaps"}, "has 'perhaps' as valid in row 2. Write true, false or nothing."),
    ],
)
def test_what_is_damaged_is_named_with_its_row(tmp_path: Path, changes: dict[str, object], sentence: str) -> None:
    text = csv(row(measure="rsa"), row(**changes))
    assert damaged(tmp_path, text) == f"{tmp_path / 'results.csv'} {sentence}"


def test_a_row_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    assert damaged(tmp_path, csv(row(), row(value=0.7))) == (
        f"{tmp_path / 'results.csv'} holds cka by labels and auprc twice, the second time in row 2. Run again."
    )


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(InputError, match=r"results\.csv is no table \(.*\)\. Run the benchmark again with --out"):
        Results.load(tmp_path)


def test_networks_without_their_columns_are_refused(tmp_path: Path) -> None:
    folder = run(tmp_path / "a", [row()], [{"name": "gcn-0", "group": "clean"}])
    with pytest.raises(InputError) as error:
        Results.load(folder)
    assert str(error.value) == (
        f"{folder / 'networks.csv'} has no column 'groundings'. It needs name, group, groundings, seed, accuracy."
    )
    folder = run(tmp_path / "b", [row()], [NETWORKS[0] | {"accuracy": "good"}])
    with pytest.raises(InputError) as error:
        Results.load(folder)
    assert str(error.value) == (
        f"{folder / 'networks.csv'} has 'good' as accuracy of 'gcn-0', which is no number. Run the benchmark again."
    )
