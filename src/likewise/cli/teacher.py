"""`likewise teacher`: which network of a run a student should learn from, and how weak the evidence is."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Any

import typer


def teacher(
    run: Annotated[Path, typer.Argument(help="The folder of a run, a saved matrix, or a square CSV.")],
    student: Annotated[str, typer.Option(help="The network that is to learn, or one like it, by its name.")],
    teachers: Annotated[
        list[str] | None, typer.Option("--teacher", help="A network to choose from; may be repeated. Else all others.")
    ] = None,
    families: Annotated[
        Path | None, typer.Option(help="CSV with networks and their families; else they are found in the matrix.")
    ] = None,
    outcomes: Annotated[
        Path | None, typer.Option(help="CSV with teachers and the accuracies of their students: gives the regret.")
    ] = None,
    distance: Annotated[bool, typer.Option("--distance", help="A larger number in a CSV is less alike.")] = False,
    seed: Annotated[int, typer.Option(help="Draws the starts of k-means.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Advise a teacher for a student. It is of another family, and unlike it."""
    from likewise.analysis import pick_teacher, read_matrix

    matrix = read_matrix(run, larger_is="less alike" if distance else "more alike")
    pick = pick_teacher(
        student,
        matrix,
        teachers=teachers or None,
        families=None if families is None else _column(families),
        answers=getattr(matrix, "answers", None),
        outcomes=None if outcomes is None else _column(outcomes),
        seed=seed,
    )
    if as_json:
        typer.echo(json.dumps(pick.record()))
        return
    typer.echo(str(pick))
    table = pick.candidates.dropna(axis=1, how="all").rename_axis(None)
    typer.echo("\n" + table.to_string(float_format="{:.4g}".format, line_width=get_terminal_size().columns))


def _column(path: Path) -> dict[str, Any]:
    """The second column of a table, by the first."""
    from likewise.analysis import read_table

    column = read_table(path).iloc[:, 0]
    return {str(name): value for name, value in column.items()}
