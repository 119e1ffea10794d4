"""`likewise compare`: arrays or networks in, matrices, a table of scores and pictures out."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from likewise.cli._options import ONE_LAYER, seed_option, show_keywords, show_options
from likewise.cli._print import echo, refuse_unused
from likewise.cli._words import claim_out, groups, labels_of, measures_of, views

if TYPE_CHECKING:
    import pandas as pd

    from likewise.matrices.similarity import Comparison


@show_options(without=["store"], long=True, layers=ONE_LAYER)
def compare(
    files: Annotated[list[str], Argument(help="Files (FILE:KEY picks an array); networks with --data.")],
    measure: Annotated[list[str] | None, Option("--measure", "-m", help="Names, keys ('jaccard[k=5]'), sets.")] = None,
    out: Annotated[Path | None, Option(help="Folder for matrices, frame, pictures and the store.")] = None,
    calibrate: Annotated[bool, Option("--calibrate", help="Add nulls, calibrated scores, p and q.")] = False,
    within_classes: Annotated[bool, Option("--within-classes", help="Chance within classes; needs labels.")] = False,
    intervals: Annotated[bool, Option("--intervals", help="Add intervals over inputs.")] = False,
    inputs: Annotated[bool, Option("--inputs", help="Find the inputs that networks differ on; needs --out.")] = False,
    labels: Annotated[str | None, Option(help="File of a class per input, array or text; --data has its own.")] = None,
    clusters: Annotated[str | None, Option(help="File with the clip or group of every input, array or text.")] = None,
    series: Annotated[bool, Option("--series", help="Inputs are one series in the order of time.")] = False,
    memory: Annotated[str | None, Option(help="The most to hold at a time, like 4GB.")] = None,
    seed: Annotated[int, seed_option("For measures that draw at random.")] = 0,
    as_json: Annotated[bool, Option("--json", help="For programs.")] = False,
    **show: Any,
) -> None:
    """Compare networks by activations and answers to the same inputs."""
    from likewise._base.files import write_whole
    from likewise._base.names import csv_text
    from likewise.comparison.compare import compare as run
    from likewise.comparison.influence import INPUTS, influence
    from likewise.errors import InputError
    from likewise.views.show import ENGINE

    if inputs and out is None:
        raise InputError("--inputs keeps a file. Say where, as in --out runs/first.")
    calibrate = calibrate or within_classes
    if not (calibrate or intervals):
        refuse_unused({"--clusters": clusters, "--series": series}, "without --calibrate or --intervals")
    store = claim_out(out, "scores.csv", "matrices.png")
    things, names = views(files, show["data"], memory), measures_of(measure, "cka-debiased")
    options = show_keywords(show, things) | {"store": store, "memory": memory, "seed": seed}
    within = groups(within_classes, labels, show["data"])
    together = {"clusters": None if clusters is None else labels_of(clusters), "series": series}
    null = {"calibrate": calibrate, "within": within, "intervals": intervals}
    comparison = run(things, names, **options, **null, **together)
    if inputs and out is not None:
        here = {name: value for name, value in options.items() if name not in ENGINE}
        influence(things, list(comparison), **here).save(out / INPUTS)
    frame = comparison.to_frame()
    if out is not None:
        comparison.save(out / "matrices")
        write_whole(out / "scores.csv", csv_text(frame, index=False).encode())
        comparison.plot(out / "matrices.png")
    for note in comparison.notes():
        echo(note, err=True)
    if as_json:
        echo(json.dumps(json.loads(frame.to_json(orient="records"))))
        return
    _print(comparison, frame)
    if out is not None:
        echo(f"\nwritten to {out}: matrices.png, scores.csv, matrices/")


def _print(comparison: Comparison, frame: pd.DataFrame) -> None:
    for name, matrix in comparison.items():
        echo(f"\n{name}  (larger is {matrix.larger_is})")
        echo(matrix.table(".4f", get_terminal_size().columns))
        echo("".join(f"{line}\n" for line in matrix.legend()), nl=False)
        for pair, reason in list(matrix.reasons.items())[:3]:
            echo(f"undefined for {pair[0]}, {pair[1]}: {reason}", err=True)
    if "p" in frame or "low" in frame:
        echo("\n" + comparison.numbers().to_string(index=False))
