"""`likewise layerwise`: two networks, layer by layer, as numbers and as a picture."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Any

from typer import Argument, Option

from likewise.cli._options import ROWS, seed_option, show_keywords, show_options
from likewise.cli._print import echo, refuse_unused
from likewise.cli._words import claim_out, labels_of


@show_options(
    without=["data"],
    long=True,
    layers="Names or globs, all or blocks; or NETWORK:NAME. May be repeated.",
    reduce=ROWS,
    batch_size="Inputs in one batch; debiased CKA takes 512.",
)
def layerwise(
    a: Annotated[str, Argument(help="Address of a network, such as zoo:resnet20@a.pt.")],
    data: Annotated[str, Option(help="Address of the data, such as cifar10:test[:2000].")],
    b: Annotated[str | None, Argument(help="Another network; without one, a itself.")] = None,
    measure: Annotated[str, Option(help="Any measure of `likewise measures`.")] = "cka-debiased",
    calibrate: Annotated[bool, Option("--calibrate", help="Compare the most alike layers with chance.")] = False,
    clusters: Annotated[str | None, Option(help="File with the clip or group of every input, array or text.")] = None,
    series: Annotated[bool, Option("--series", help="Inputs are one series in the order of time.")] = False,
    seed: Annotated[int, seed_option("Draws the order of the inputs, and shuffles.")] = 0,
    memory: Annotated[str | None, Option(help="The most to hold at a time, like 4GB.")] = None,
    out: Annotated[Path | None, Option(help="Folder for the matrix and its picture.")] = None,
    as_csv: Annotated[bool, Option("--csv", help="For spreadsheets; --out keeps one too.")] = False,
    as_json: Annotated[bool, Option("--json", help="For programs.")] = False,
    **show: Any,
) -> None:
    """Compare every layer of a network with every layer of another."""
    import likewise
    from likewise._base.names import csv_text
    from likewise.networks.names import named_networks

    if not calibrate:
        refuse_unused({"--clusters": clusters, "--series": series}, "without --calibrate")
    claim_out(out, "layerwise.csv", "layerwise.png")
    networks = named_networks([a] if b is None else [a, b])
    together = {"clusters": None if clusters is None else labels_of(clusters), "series": series}
    options = {"seed": seed, "memory": memory, **together, **show_keywords(show, networks, several=True)}
    matrix = likewise.layerwise(a, b, data, measure=measure, calibrate=calibrate, **options)
    if out is not None:
        for path in matrix.write(out):
            echo(str(path), err=True)
    for (row, column), reason in list(matrix.reasons.items())[:3]:
        echo(f"undefined for {row}, {column}: {reason}", err=True)
    for (row, column), reason in list(matrix.saturated.items())[:3]:
        echo(f"saturated for {row}, {column}: {reason}", err=True)
    if as_json:
        grids = {"values": matrix.values, **matrix.extra}
        lists = {name: [[None if x != x else x for x in row] for row in grid.tolist()] for name, grid in grids.items()}
        facts = {"measure": matrix.measure, "rows": matrix.rows, "columns": matrix.columns, **lists}
        facts |= {key: matrix.about[key] for key in ("accuracies",) if key in matrix.about}
        maximum = {name: None if fact != fact else fact for name, fact in matrix.maximum.items()}
        echo(json.dumps({**facts, "maximum": maximum} if calibrate else facts))
    elif as_csv:
        echo(csv_text(matrix.to_frame(), float_format="%.4f"), nl=False)
    else:
        echo(f"{matrix.measure}  (larger is {matrix.larger_is}): {matrix.a} down, {matrix.b} across")
        echo(matrix.table(".3f", get_terminal_size().columns))
        echo("".join(f"{line}\n" for line in matrix.legend()), nl=False)
    for note in matrix.notes():
        echo(note, err=True)
