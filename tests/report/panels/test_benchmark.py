"""The panel of a benchmark: ranks of measures, beside the paper's."""

from __future__ import annotations

from pathlib import Path

import pytest

from likewise.benchmark.results.paper import paper_results
from likewise.benchmark.results.ranks import ranks
from likewise.report import read_runs
from likewise.report.page import contents
from tests.report.helpers import unpacked


def test_a_benchmark_is_shown_with_the_ranks_of_the_paper(tmp_path: Path) -> None:
    paper_results().save(tmp_path)
    shown = next(panel for panel in contents(read_runs(tmp_path)).panels if panel.id == "benchmark").data
    rows = ranks(paper_results(), variant="resi").summary()
    domain = rows["domain"].iloc[0]
    mean = rows[rows["domain"] == domain].set_index("label")["mean"]
    for name, own, published in zip(shown["measures"], shown["ranks"], shown["paper"], strict=True):
        assert own == pytest.approx(mean[name], rel=1e-3)
        assert published == own
    assert shown["ranks"] == sorted(shown["ranks"])
    assert unpacked(shown["values"]).shape == (len(shown["measures"]), len(shown["groundings"]))
