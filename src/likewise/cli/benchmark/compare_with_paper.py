"""`likewise benchmark compare-with-paper`: results of runs beside the paper's figures, and its claims."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from likewise.cli._print import echo


def compare_with_paper(
    runs: Annotated[list[Path], Argument(help="Folders of runs; those that differ in the seed are repetitions.")],
    measure_variant: Annotated[str, Option(help="Form of the measures: resi or published.")] = "resi",
    out: Annotated[Path | None, Option(help="CSV with one row per measure of each cell.")] = None,
) -> None:
    """Compare a run with the paper. Differences and rank correlations per cell, then the paper's claims."""
    from likewise.benchmark.results.claims import check_claims
    from likewise.benchmark.results.frame import Results
    from likewise.benchmark.results.paper import compare_with_paper

    results = Results.load(*runs)
    comparison = compare_with_paper(results, measure_variant=measure_variant)
    if out is not None:
        comparison.save(out)
    mean = comparison.by_grounding().to_string(index=False, float_format="%.2f", na_rep="–")
    echo(f"{comparison}\n\nMean over networks:\n{mean}\n\nThe paper's claims, by cells run with its settings:")
    for verdict in check_claims(results, measure_variant=measure_variant):
        echo(str(verdict))
