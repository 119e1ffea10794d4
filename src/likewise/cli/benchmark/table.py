"""`likewise benchmark table`: results of runs as tables, ranks and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from likewise.cli._print import echo, refuse_unused


def table(
    runs: Annotated[list[Path], Argument(help="Folders of runs; those that differ in the seed are repetitions.")],
    grounding: Annotated[list[str] | None, Option(help="Only this one; may be repeated.")] = None,
    metric: Annotated[list[str] | None, Option(help="auprc, conformity, spearman; by default all.")] = None,
    variant: Annotated[str, Option(help="Form of the evaluation: published or resi.")] = "published",
    measure_variant: Annotated[str | None, Option(help="Form of the measures: published or resi.")] = None,
    ties: Annotated[
        str | None, Option(help="What equal values count as: conform (by default), half or violate.")
    ] = None,
    ranks: Annotated[bool, Option("--ranks", help="Ranks of measures over all cells.")] = False,
    accuracies: Annotated[Path | None, Option(help="Picture of accuracies by group.")] = None,
    inputs: Annotated[Path | None, Option(help="Picture of the inputs of every group of the first run.")] = None,
    truth: Annotated[
        Path | None, Option(help="Picture of the truth beside what each measure says, of the first run.")
    ] = None,
    data: Annotated[
        str | None, Option(help="Address of the data for --inputs and --truth, if it is not built in.")
    ] = None,
    out: Annotated[Path | None, Option(help="Write the table: .csv, .md, .tex or .txt.")] = None,
    plot: Annotated[Path | None, Option(help="Picture: heat maps, or ranks with --ranks.")] = None,
) -> None:
    """Print tables like the paper's. With chance levels, coverage and the validity of groups."""
    from likewise.benchmark.pictures import plot_inputs
    from likewise.benchmark.results.accuracies import plot_accuracies
    from likewise.benchmark.results.frame import Results
    from likewise.benchmark.results.ranks import ranks as rank
    from likewise.benchmark.results.tables import table as tabulate
    from likewise.benchmark.results.truth import plot_truth

    results = Results.load(*runs)
    if inputs is None and truth is None:
        refuse_unused({"--data": data}, "without --inputs or --truth")

    def draw() -> None:
        """Pictures that a run may not have come after what it has."""
        if accuracies is not None:
            plot_accuracies(results, accuracies)
        if truth is not None:
            plot_truth(runs[0], truth, grounding=grounding[0] if grounding else None, data=data)
        if inputs is not None:
            plot_inputs(runs[0], inputs, data=data)

    if ranks:
        refuse_unused({"--metric": metric, "--ties": ties, "--out": out}, "beside --ranks")
        ranking = rank(results.only(grounding=grounding), variant=variant, measure_variant=measure_variant)
        if plot is not None:
            ranking.plot(plot)
        echo(str(ranking))
        draw()
        return
    cells = tabulate(
        results, grounding, metric=metric, variant=variant, measure_variant=measure_variant, ties=ties or "conform"
    )
    if out is not None:
        cells.save(out)
    if plot is not None:
        cells.plot(plot)
    echo(str(cells))
    draw()
