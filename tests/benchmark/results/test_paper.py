"""The paper's figures against cells read by eye, and ours beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from likewise import measures
from likewise.benchmark.results.frame import COLUMNS
from likewise.benchmark.results.paper import compare_with_paper, figures, paper_results, plain
from likewise.errors import InputError
from tests.benchmark.frames import results, row

BY_EYE = [  # table, domain, grounding, metric, data, network, measure, printed, value
    (7, "graph", "accuracy", "spearman", "Cora", "GAT", "AlignCos", "-0.37", -0.37),
    (7, "graph", "accuracy", "spearman", "OGBN-Arxiv", "GCN", "RSA", "0.56", 0.56),
    (8, "graph", "outputs", "spearman_disagreement", "Cora", "GCN", "OrthProc", "0.62", 0.62),
    (8, "graph", "outputs", "spearman_jsd", "Cora", "GCN", "AngShape", "0.70", 0.70),
    (9, "graph", "labels", "auprc", "Cora", "GraphSAGE", "IMD", "0.97", 0.97),
    (10, "graph", "shortcut", "conformity", "Cora", "GraphSAGE", "2nd-Cos", "0.97", 0.97),
    (11, "graph", "augmentation", "auprc", "Cora", "GCN", "LinReg", "0.94", 0.94),
    (12, "graph", "layers", "spearman", "OGBN-Arxiv", "GraphSAGE", "UnifDiff", "-0.45", -0.45),
    (13, "language", "layers", "conformity", "MNLI", "BERT", "AngShape", "0.99", 0.99),
    (13, "language", "layers", "spearman", "SST2", "BERT", "SVCCA", "0.64", 0.64),
    (13, "language", "outputs", "spearman_disagreement", "SST2", "BERT", "RSA", "0.52", 0.52),
    (14, "vision", "accuracy", "spearman", "ImageNet100", "ViT-B32", "PWCCA", "0.837", 0.837),
    (15, "vision", "outputs", "spearman_jsd", "ImageNet100", "ResNet18", "SoftCorr", "0.453", 0.453),
    (16, "vision", "labels", "conformity", "ImageNet100", "VGG19", "AlignCos", "0.453", 0.547),
    (17, "vision", "shortcut", "auprc", "ImageNet100", "ResNet101", "PWCCA", "0.648", 0.648),
    (18, "vision", "augmentation", "conformity", "ImageNet100", "ResNet18", "UnifDiff", "1.000", 0.0),
    (19, "vision", "layers", "spearman", "ImageNet100", "ResNet18", "ConcDiff", "-0.783", -0.783),
]
TABLE_3 = {  # rows of the paper's table 3, which repeats cells of the others: GraphSAGE, BERT on MNLI, ResNet18 by test
    "2nd-Cos": "-0.09 -0.26 -0.08 0.15 0.16 -0.13 0.42 0.39 0.71 1.00 0.59 1.00 0.92 0.44 0.78 0.96 0.94 0.55",
    "CKA": "0.37 0.18 0.36 0.58 0.30 0.30 0.66 0.75 1.00 1.00 0.59 1.00 0.75 0.48 0.90 0.89 0.99 0.87",
    "IMD": "0.37 -0.26 0.16 0.31 -0.39 -0.10 0.34 0.73 1.00 0.97 0.53 0.67 0.59 0.43 0.56 0.82 0.44 -0.00",
    "LinReg": "0.28 0.18 0.18 0.48 0.28 0.21 0.45 0.57 nan 0.61 0.46 0.99 0.81 0.24 0.94 1.00 0.66 0.55",
    "PWCCA": "nan 0.01 -0.02 nan 0.22 0.13 nan 0.65 nan nan 0.56 0.99 nan 0.18 0.90 nan 1.00 0.11",
    "UnifDiff": "0.01 0.14 -0.18 0.02 -0.02 -0.34 0.90 0.76 0.42 0.50 0.40 0.75 0.24 0.61 0.17 0.89 0.81 0.18",
}
TESTS = (
    *(("accuracy", "spearman"), ("outputs", "spearman_jsd"), ("labels", "auprc")),
    *(("shortcut", "auprc"), ("augmentation", "auprc"), ("layers", "spearman")),
)


@pytest.mark.parametrize("cell", BY_EYE, ids=lambda cell: f"table-{cell[0]}-{cell[6]}")
def test_a_cell_is_what_the_paper_prints(cell: tuple[Any, ...]) -> None:
    found = figures().set_index(["table", "domain", "grounding", "metric", "data", "network", "measure"])
    one = found.loc[(*cell[:6], measures.get(cell[6]).name)]
    assert (one["printed"], one["value"]) == cell[7:]


@pytest.mark.parametrize("name", TABLE_3)
def test_the_cells_of_table_3_are_those_of_the_others(name: str) -> None:
    found = figures().set_index(["grounding", "metric", "data", "network", "measure"])["value"]
    places = (("Flickr", "GraphSAGE"), ("MNLI", "BERT"), ("ImageNet100", "ResNet18"))
    ours = [found[(*test, *place, measures.get(name).name)] for test in TESTS for place in places]
    np.testing.assert_allclose(ours, [float(word) for word in TABLE_3[name].split()], atol=0.0101)


def test_every_cell_has_all_23_measures_and_what_is_not_printed_is_undefined() -> None:
    found = figures()
    assert len(found) == 198 * 23
    assert set(found["measure"]) == {m.name for m in measures.registry.select("resi")}
    missing = found[found["printed"] == ""]
    assert set(missing["measure"]) == {"pwcca"}
    assert set(missing["table"]) == {7, 8, 9, 10, 11, 12, 16}
    assert missing["value"].isna().all()


def test_undefined_layers_are_not_counted_as_conforming() -> None:
    found = figures().query("grounding == 'layers' and metric == 'conformity'")
    empty = found[found["value"].isna() & ~found["printed"].isin(["", "nan"])]
    assert sorted(zip(empty["network"], empty["measure"], empty["printed"], strict=True)) == [
        ("BERT", "rsm-difference", "1.00"),
        ("ViT-B32", "uniformity-difference", "0.000"),
        ("ViT-L32", "uniformity-difference", "0.000"),
    ]


def test_the_figures_come_as_results_with_their_chance() -> None:
    found = paper_results().frame
    assert tuple(found.columns) == COLUMNS
    auprc = found.query("metric == 'auprc'")
    assert sorted(auprc["chance"].round(3).unique()) == [0.167, 0.286]  # 10 of 60 pairs, 10 of 35 with two groups
    assert set(auprc[auprc["chance"] > 0.2]["data"]) == {"SST2"}
    assert set(found.query("metric == 'spearman'")["chance"]) == {0.0}


@pytest.mark.parametrize(
    ("ours", "paper"),
    [("zoo:sage", "GraphSAGE"), ("gcn", "GCN"), ("ogbn-arxiv", "OGBN-Arxiv"), ("timm:resnet18", "ResNet18")],
)
def test_names_of_both_sides_are_matched(ours: str, paper: str) -> None:
    assert plain(ours) == plain(paper)


def cell(shift: float, **changes: Any) -> list[dict[str, Any]]:
    """Our results on Cora with GCN by labels: the paper's AUPRC and a shift."""
    theirs = figures().query("table == 9 and data == 'Cora' and network == 'GCN' and metric == 'auprc'")
    defined = theirs.dropna(subset=["value"])
    same = {"variant": "resi", "measure_variant": "resi"}
    return [row(measure=one.measure, value=one.value + shift, **(same | changes)) for one in defined.itertuples()]


def test_difference_and_correlation_are_over_measures_with_ranges_over_repetitions() -> None:
    found = compare_with_paper(results(cell(0.05) + cell(0.1, seed=1) + cell(-0.02, seed=2)))
    one = found.cells.iloc[0]
    assert (one["measures"], one["repetitions"]) == (22, 3)
    assert one["difference"] == pytest.approx((0.05 + 0.1 + 0.02) / 3)
    assert (one["difference_low"], one["difference_high"]) == pytest.approx((0.02, 0.1))
    assert one["between"] == pytest.approx((0.05 + 0.07 + 0.12) / 3)
    assert one["correlation"] == pytest.approx(1.0)
    imd = found.rows.set_index("measure").loc["imd"]
    assert (imd["label"], imd["table"], imd["paper"]) == ("IMD", 9, 0.74)
    assert (imd["ours"], imd["ours_low"], imd["ours_high"]) == pytest.approx((0.74 + 0.13 / 3, 0.72, 0.84))
    assert "0.06 [0.02, 0.10]" in str(found)


def test_the_mean_over_networks_is_given_per_grounding() -> None:
    rows = cell(0.05)
    theirs = figures().query("table == 9 and data == 'Cora' and network == 'GAT' and metric == 'auprc'").dropna()
    rows += [row(measure=m.measure, network="zoo:gat", variant="resi", measure_variant="resi", value=m.value - 0.15)
             for m in theirs.itertuples()]  # fmt: skip
    found = compare_with_paper(results(rows)).by_grounding()
    assert found["difference"].tolist() == pytest.approx([0.1])
    assert found["networks"].tolist() == [2]


def test_chance_is_held_against_the_papers_correlations() -> None:
    """Of the paper's 22 correlations with accuracy there, -0.31, -0.30, -0.27 (twice) and 0.29 are beyond."""
    theirs = figures().query("table == 7 and data == 'Cora' and network == 'GCN'").dropna(subset=["value"])
    rows = [
        row(measure=m.measure, grounding="accuracy", metric="spearman", variant="resi", measure_variant="resi",
            value=0.0, low=-0.25, high=0.27)
        for m in theirs.itertuples()
    ]  # fmt: skip
    found = compare_with_paper(results(rows)).cells.iloc[0]
    assert found["by_chance"] == pytest.approx(17 / 22)
    assert np.isnan(found["correlation"])  # ours are all equal


def test_rows_are_written_as_csv(tmp_path: Any) -> None:
    compare_with_paper(results(cell(0.05))).save(tmp_path / "c.csv")
    found = pd.read_csv(tmp_path / "c.csv")
    assert len(found) == 22
    assert found["difference"].round(6).unique().tolist() == [0.05]


def test_what_cannot_be_compared_is_said() -> None:
    with pytest.raises(InputError) as error:
        compare_with_paper(results([row()]))
    assert str(error.value) == (
        "these results hold no measure in the form 'resi' by the evaluation 'resi', which the paper's tables were made "
        "with. Run the benchmark with --measures resi."
    )
    with pytest.raises(InputError) as error:
        compare_with_paper(results([row(data="digits", network="mlp", variant="resi", measure_variant="resi")]))
    assert str(error.value) == (
        "the paper has no figures for 'digits with mlp'. It has Cora, Flickr and OGBN-Arxiv with GCN, GraphSAGE and "
        "GAT, SST2 and MNLI with BERT, and ImageNet100."
    )
