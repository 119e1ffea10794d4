"""Tables of results in text, Markdown, LaTeX and CSV, by hand-made results."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
import pytest

from likewise.benchmark.results.paper import paper_results
from likewise.benchmark.results.tables import table
from likewise.errors import InputError, UnknownNameError
from tests.benchmark.frames import results, row

TWO = results(
    [
        row(value=0.5, measure="cka"),
        row(value=0.75, measure="nbs"),
        row(value=0.25, measure="cka", network="gat", valid=False),
        row(value=None, measure="nbs", network="gat", valid=False, coverage=0.0),
    ]
)


def test_measures_are_rows_and_networks_columns() -> None:
    assert str(table(TWO)) == (
        "label randomisation, AUPRC, preset paper, cora; evaluated as in the paper's equations\n"
        "\n"
        "network   gcn gat †\n"
        "CKA      0.50  0.25\n"
        "nbs      0.75     –\n"
        "chance   0.17  0.17\n"
        "\n"
        "–: the measure is undefined there.\n"
        "† groups not valid: their networks do not behave as they were made to."
    )


def test_markdown_has_one_row_per_measure_and_the_best_in_bold() -> None:
    assert table(TWO).to_markdown() == (
        "**label randomisation, AUPRC, preset paper, cora; evaluated as in the paper's equations**\n"
        "\n"
        "| measure | gcn | gat † |\n"
        "| --- | ---: | ---: |\n"
        "| CKA | 0.50 | **0.25** |\n"
        "| nbs | **0.75** | – |\n"
        "| chance | 0.17 | 0.17 |\n"
        "\n"
        "–: the measure is undefined there.  \n"
        "† groups not valid: their networks do not behave as they were made to."
    )


def test_latex_is_a_table_of_booktabs() -> None:
    assert table(TWO).to_latex() == (
        "\\begin{table}[htb]\n"
        "\\caption{label randomisation, AUPRC, preset paper, cora; evaluated as in the paper's equations. --: the "
        "measure is undefined there. \\dag{} groups not valid: their networks do not behave as they were made to.}\n"
        "\\begin{tabular}{lrr}\n"
        "\\toprule\n"
        "network & gcn & gat \\dag{} \\\\\n"
        "\\midrule\n"
        "CKA & 0.50 & \\textbf{0.25} \\\\\n"
        "nbs & \\textbf{0.75} & -- \\\\\n"
        "\\midrule\n"
        "chance & 0.17 & 0.17 \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n"
        "\\end{table}\n"
    )


def test_csv_has_one_row_per_cell_with_all_that_is_known(tmp_path: Path) -> None:
    table(TWO).save(tmp_path / "t.csv")
    found = pd.read_csv(tmp_path / "t.csv")
    assert found["measure"].tolist() == ["cka", "cka", "nbs", "nbs"]
    assert found["label"].tolist() == ["CKA", "CKA", "nbs", "nbs"]
    assert found["network"].tolist() == ["gcn", "gat", "gcn", "gat"]
    assert found["value"].tolist()[:3] == [0.5, 0.25, 0.75]
    assert found["valid"].tolist() == [True, False, True, False]
    assert found["chance"].round(4).tolist() == [0.1667] * 4


@pytest.mark.parametrize(("ending", "start"), [(".md", "**label"), (".tex", "\\begin{table}"), (".txt", "label")])
def test_the_ending_says_how_it_is_written(tmp_path: Path, ending: str, start: str) -> None:
    path = tmp_path / f"t{ending}"
    table(TWO).save(path)
    assert path.read_text().startswith(start)
    assert path.read_text().endswith("\n")


def test_repetitions_are_a_mean_with_its_range() -> None:
    values = {0: 0.5, 1: 0.6, 2: 0.4}  # mean 0.5
    rows = [row(seed=seed, value=value) for seed, value in values.items()]
    rows += [row(seed=seed, measure="rsa", value=0.9 if seed else None, coverage=0.8) for seed in values]
    found = str(table(results(rows)))
    assert "CKA                    0.50 [0.40, 0.60]\n" in found
    assert "RSA     0.90 [0.90, 0.90] (2 of 3) (80%)\n" in found
    assert found.endswith(
        "Mean over 3 repetitions, [least, largest].\n"
        "–: the measure is undefined there.\n"
        "(%): the share of pairs on which the measure is defined, where not all."
    )


def test_both_forms_of_a_measure_are_told_apart() -> None:
    found = table(results([row(), row(measure_variant="resi", value=0.6)]))
    assert found.text().index.tolist() == ["CKA", "CKA[resi]", "chance"]
    assert table(results([row(measure_variant="resi")])).text().index.tolist() == ["CKA", "chance"]


def test_groundings_stand_side_by_side_in_the_order_of_the_registry() -> None:
    rows = [row(grounding="layers", metric="spearman"), row(), row(grounding="accuracy", metric="spearman")]
    found = table(results(rows))
    assert found.levels == ("grounding", "metric")
    assert found.columns == (
        ("accuracy difference", "Spearman"),
        ("label randomisation", "AUPRC"),
        ("layer monotonicity", "Spearman"),
    )


def test_the_rule_of_ties_is_said() -> None:
    rows = [row(metric="conformity", ties="conform", value=1.0), row(metric="conformity", ties="half", value=0.5)]
    assert table(results(rows)).title.endswith("; a tie conforms")
    half = table(results(rows), ties="half")
    assert half.title.endswith("; a tie conforms half")
    assert half.cells["value"].tolist() == [0.5]


def test_the_papers_table_9_comes_out() -> None:
    """Five cells by hand from the paper's table 9, and one of PWCCA, which it does not print."""
    found = table(paper_results().only(domain="graph"), "labels", variant="resi").values
    assert found.shape == (23, 18)
    assert found.loc["IMD", ("AUPRC", "Cora", "GraphSAGE")] == 0.97
    assert found.loc["2nd-Cos", ("AUPRC", "OGBN-Arxiv", "GCN")] == 0.99
    assert found.loc["UnifDiff", ("AUPRC", "Flickr", "GAT")] == 0.40
    assert found.loc["MagDiff", ("conformity", "Flickr", "GraphSAGE")] == 0.93
    assert found.loc["CKA", ("conformity", "Cora", "GCN")] == 0.55
    assert found.loc["PWCCA"].isna().all()


def test_a_heat_map_is_drawn_per_metric(tmp_path: Path) -> None:
    figure = table(paper_results().only(domain="graph"), "labels", variant="resi").plot(tmp_path / "heat.png")
    assert [axis.get_title() for axis in figure.axes if axis.get_title()] == ["AUPRC", "conformity"]
    assert (tmp_path / "heat.png").stat().st_size > 50_000


def test_one_run_is_one_map_with_a_column_per_grounding_and_metric(tmp_path: Path) -> None:
    of_one = paper_results().only(data="Cora", network="GCN")
    figure = table(of_one, variant="resi").plot(tmp_path / "heat.png")
    (axis, _) = figure.axes  # the map and its colours
    names = [label.get_text() for label in axis.get_xticklabels()]
    assert len(names) == 11
    assert names[:2] == ["accuracy difference, Spearman", "output difference, Spearman, JSD"]
    width, height = figure.get_size_inches()
    assert max(width, height) < 20


def test_names_and_notes_below_the_map_of_two_measures_are_in_the_picture() -> None:
    of_one = paper_results().only(data="Cora", network="GCN").frame
    two = of_one[of_one["measure"].isin(["cka", "jaccard"])].assign(valid=False)
    figure = table(results(two.to_dict("records")), variant="resi").plot()
    figure.draw_without_rendering()
    axis = figure.axes[0]
    assert axis.xaxis.label.get_text().startswith("† groups not valid")
    for text in (axis.xaxis.label, *axis.get_xticklabels(), axis.title):
        box = text.get_window_extent()
        assert figure.bbox.y0 <= box.y0
        assert box.y1 <= figure.bbox.y1


def test_csv_can_be_read_back() -> None:
    found = pd.read_csv(io.StringIO(table(TWO).to_csv()))
    assert list(found.columns) == [
        *("network", "label", "measure", "measure_variant", "value", "low", "high", "repetitions", "defined"),
        *("coverage", "chance", "valid"),
    ]


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(UnknownNameError) as unknown:
        table(TWO, "label")
    assert str(unknown.value) == "no grounding named 'label'. Did you mean 'labels'?"
    with pytest.raises(InputError) as error:
        table(TWO, "layers")
    assert str(error.value) == "no result has the grounding 'layers'. There are 'labels'."
    with pytest.raises(InputError) as error:
        table(TWO, variant="resi")
    assert str(error.value) == "there are no results in the form 'resi'. Choose another, or run the benchmark."
