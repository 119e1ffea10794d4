"""`likewise teacher`: which network of a run a student should learn from, and how weak the evidence is."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Any

from typer import Argument, Option

from likewise.cli._options import seed_option
from likewise.cli._print import echo, refuse_unused


def teacher(
    run: Annotated[Path, Argument(help="The folder of a run, a saved matrix, or a square CSV.")],
    student: Annotated[str, Option(help="The network that is to learn, or one like it, by its name.")],
    teachers: Annotated[list[str] | None, Option("--teacher", help="A network to choose from; by default all.")] = None,
    families: Annotated[Path | None, Option(help="CSV of networks and families; by default those found.")] = None,
    outcomes: Annotated[Path | None, Option(help="CSV of teachers and accuracies of their students: regret.")] = None,
    distance: Annotated[bool, Option("--distance", help="A larger number in a CSV is less alike.")] = False,
    seed: Annotated[int, seed_option("Draws the null of the families.")] = 0,
    as_json: Annotated[bool, Option("--json", help="For programs.")] = False,
) -> None:
    """Advise a teacher for a student. It is of another family, and unlike it."""
    from likewise.analysis import pick_teacher, read_matrix
    from likewise.analysis.files import CSV

    if run.suffix.lower() not in CSV:
        refuse_unused({"--distance": distance}, "on a saved matrix, which knows what a larger number means")
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
        echo(json.dumps(pick.record()))
        return
    echo(str(pick))
    table = pick.candidates.dropna(axis=1, how="all").rename_axis(None)
    echo("\n" + table.to_string(float_format="{:.4g}".format, line_width=get_terminal_size().columns))


def _column(path: Path) -> dict[str, Any]:
    """The second column of a table, by the first."""
    from likewise.analysis import read_table

    column = read_table(path).iloc[:, 0]
    return {str(name): value for name, value in column.items()}
