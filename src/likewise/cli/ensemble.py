"""`likewise ensemble`: which networks of a run to put into an ensemble, what that is worth, and which measure tells."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated, cast

from typer import Argument, Option

from likewise.cli._options import seed_option
from likewise.cli._print import echo

if TYPE_CHECKING:
    import pandas as pd

    from likewise.transfer.logits import Answers


def ensemble(
    run: Annotated[Path, Argument(help="The folder that likewise transfer --out wrote.")],
    size: Annotated[int, Option(help="How many members.", min=1)] = 5,
    by_families: Annotated[
        bool, Option("--by-families", help="The error reduction by number of families too.")
    ] = False,
    seed: Annotated[int, seed_option("Draws the half of the inputs that the choice is made on.")] = 0,
    as_json: Annotated[bool, Option("--json", help="For programs.")] = False,
) -> None:
    """Pick the members of an ensemble. By accuracy and similarity, and tried on held-out inputs."""
    from likewise.analysis import clusters, errors_by_clusters, gain_predictors, pick_ensemble
    from likewise.errors import LikewiseError
    from likewise.transfer.matrix import load

    matrix = load(run)
    answers = cast("Answers", matrix.answers)  # a run has them
    pick = pick_ensemble(matrix, answers, size, seed=seed)
    predictors, reason = None, ""
    try:
        predictors = gain_predictors(matrix, answers, seed=seed)
    except LikewiseError as error:  # too few networks or errors to tell
        reason = str(error)
    families = clusters(matrix, seed=seed) if by_families else None
    table = None
    if families is not None and families.k > 1:
        sizes = range(2, min(max(size, 2), len(matrix)) + 1)
        table = errors_by_clusters(answers, families, sizes, seed=seed)
    if as_json:
        rows = [] if table is None else json.loads(table.to_json(orient="records", double_precision=15))
        record = pick.record() | {"predictors": {"undefined": reason} if predictors is None else predictors.record()}
        echo(json.dumps(record | ({"by_families": rows} if by_families else {})))
        return
    echo(str(pick))
    echo("\n" + (reason if predictors is None else str(predictors)))
    if families is not None:
        echo("\n" + textwrap.fill(families.verdict, get_terminal_size().columns))
    if table is not None:
        _print(table)


def _print(table: pd.DataFrame) -> None:
    table = table[table["samples"] > 0]  # of no ensemble there is nothing to say
    formatted = table.astype(object)
    for name in table.columns.drop(["size", "families", "samples"]):
        formatted[name] = table[name].map(("{:.3g}" if name == "p" else "{:.2%}").format)
    echo("\nerror reduction by number of families; gain over random members; p by permuting families")
    echo(formatted.to_string(index=False, line_width=get_terminal_size().columns))
