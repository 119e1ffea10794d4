"""`likewise benchmark sweep`: vary the options of measures over the stored views of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from likewise.cli._print import echo


def sweep(
    run: Annotated[Path, Argument(help="The folder of a run.")],
    measure: Annotated[list[str], Option(help="With values per option: 'jaccard[k=5,10,20]'; may be repeated.")],
    variant: Annotated[str, Option(help="Form of the evaluation: published or resi.")] = "published",
    data: Annotated[str | None, Option(help="Address of the run's data, where it is not built in.")] = None,
    out: Annotated[Path | None, Option(help="Write the table: .csv, .md, .tex or .txt.")] = None,
) -> None:
    """Evaluate a measure over values of its options. Nothing is trained."""
    from likewise.benchmark.results.tables import table
    from likewise.benchmark.sweeps import sweep

    results = table(sweep(run, measure, data=data).main(), variant=variant)
    if out is not None:
        results.save(out)
    echo(str(results))
