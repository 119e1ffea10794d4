"""`likewise benchmark table` and `compare-with-paper` on folders as runs leave them."""

from __future__ import annotations

from pathlib import Path

import pytest

from likewise.benchmark.results.paper import figures
from likewise.cli.benchmark.compare_with_paper import compare_with_paper
from likewise.cli.benchmark.table import table
from likewise.errors import InputError, OptionError
from tests.benchmark.frames import row, run
from tests.cli.conftest import invoke

NETWORKS = [
    {"name": "a", "group": "clean", "groundings": "labels", "seed": 0, "accuracy": 0.8},
    {"name": "b", "group": "random", "groundings": "labels", "seed": 0, "accuracy": 0.2},
]


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    """Two repetitions on Cora with GCN: the paper's AUPRC by labels, 0.02 more in the second."""
    theirs = figures().query("table == 9 and data == 'Cora' and network == 'GCN' and metric == 'auprc'").dropna()
    forms = {"variant": "resi", "measure_variant": "resi"}
    return [
        str(
            run(
                tmp_path / str(seed),
                [row(measure=m.measure, value=m.value + 0.02 * seed, seed=seed, **forms) for m in theirs.itertuples()],
                NETWORKS,
            )
        )
        for seed in (0, 1)
    ]


def test_tables_are_printed_and_written(runs: list[str], tmp_path: Path) -> None:
    out, plot, points = tmp_path / "t.tex", tmp_path / "t.png", tmp_path / "points.png"
    given = ("--variant", "resi", "--out", str(out), "--plot", str(plot), "--accuracies", str(points))
    text = invoke(table, *runs, *given)
    assert text.startswith("label randomisation, preset paper, cora, gcn; evaluated as by the reference\n")
    assert "IMD       0.75 [0.74, 0.76]\n" in text
    assert "Mean over 2 repetitions, [least, largest].\n" in text
    assert out.read_text().startswith("\\begin{table}")
    assert min(plot.stat().st_size, points.stat().st_size) > 10_000


def test_ranks_are_printed(runs: list[str]) -> None:
    text = invoke(table, runs[0], "--variant", "resi", "--ranks")
    assert text.startswith("graph: ranks of 22 measures, 1 is best\n")
    assert text.splitlines()[2].split()[:2] == ["IMD", "1.00"]  # 0.74, the largest of table 9's column


def test_ours_stand_beside_the_papers_with_its_claims(runs: list[str], tmp_path: Path) -> None:
    text = invoke(compare_with_paper, *runs, "--out", str(tmp_path / "c.csv"))
    assert "0.01 [0.00, 0.02]" in text
    assert "\nThe paper's claims, by cells run with its settings:\ncannot tell  No measure outperforms" in text
    assert (
        (tmp_path / "c.csv").read_text().startswith("domain,data,network,grounding,metric,label,measure,table,paper,")
    )


def test_a_table_is_printed_before_a_picture_that_a_run_has_not(runs: list[str], tmp_path: Path, capsys) -> None:
    """These hold no networks, so their inputs cannot be drawn."""
    for option in ("--inputs", "--truth"):
        with pytest.raises(InputError, match="there is no file"):
            table([Path(runs[0])], variant="resi", **{option[2:]: tmp_path / "p.png"})
        assert "IMD       0.74\n" in capsys.readouterr().out


def test_data_without_what_reads_it_is_refused(runs: list[str]) -> None:
    with pytest.raises(OptionError) as error:
        table([Path(runs[0])], variant="resi", data="cora")
    assert str(error.value) == "--data has no effect without --inputs or --truth. Leave it out."
