"""`likewise layerwise`: two networks, layer by layer, as numbers and as a picture."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated

import typer

from likewise.cli._words import by_network, one_by_network


def layerwise(
    a: Annotated[str, typer.Argument(help="Address of a network, such as zoo:resnet20@a.pt.")],
    data: Annotated[str, typer.Option(help="Address of the data, such as cifar10:test[:2000].")],
    b: Annotated[str | None, typer.Argument(help="Another network; without one, a itself.")] = None,
    measure: Annotated[str, typer.Option(help="Any measure of `likewise measures`.")] = ("cka-debiased"),
    layers: Annotated[
        list[str] | None, typer.Option(help="Names or globs, all or blocks; or NETWORK:NAME. May be repeated.")
    ] = None,
    head: Annotated[
        list[str] | None, typer.Option(help="The classifier, if it cannot be found; or NETWORK:LAYER.")
    ] = None,
    reduce: Annotated[str | None, typer.Option(help="How maps and tokens become rows; flatten, mean for text.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Inputs in one batch; debiased CKA takes 512.")] = None,
    seed: Annotated[int, typer.Option(help="Draws the order of the inputs.")] = 0,
    device: Annotated[str | None, typer.Option(help="Such as cuda:0.")] = None,
    dtype: Annotated[str | None, typer.Option(help="Precision: float32, or float16, bfloat16 by autocast.")] = None,
    store: Annotated[Path | None, typer.Option(help="Folder to stream views to.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the matrix and its picture.")] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="For spreadsheets; --out keeps one too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Compare every layer of a network with every layer of another."""
    import likewise
    from likewise.networks.names import named_networks

    networks = named_networks([a] if b is None else [a, b])
    matrix = likewise.layerwise(
        a,
        b,
        data,
        measure=measure,
        layers=by_network(layers, networks) or "blocks",
        head=one_by_network(head, "--head", networks),
        reduce=reduce,
        batch_size=batch_size,
        seed=seed,
        device=device,
        dtype=dtype,
        store=store,
    )
    if out is not None:
        for path in matrix.write(out):
            typer.echo(str(path), err=True)
    for (row, column), reason in list(matrix.reasons.items())[:3]:
        typer.echo(f"undefined for {row}, {column}: {reason}", err=True)
    for (row, column), reason in list(matrix.saturated.items())[:3]:
        typer.echo(f"saturated for {row}, {column}: {reason}", err=True)
    if as_json:
        values = [[None if value != value else value for value in row] for row in matrix.values]
        facts = {"rows": matrix.rows, "columns": matrix.columns, "values": values}
        typer.echo(json.dumps({"measure": matrix.measure, **facts}))
    elif as_csv:
        typer.echo(matrix.to_frame().to_csv(float_format="%.4f"), nl=False)
    else:
        typer.echo(f"{matrix.measure}  (larger is {matrix.larger_is}): {matrix.a} down, {matrix.b} across")
        typer.echo(matrix.table(".3f", get_terminal_size().columns))
    for note in matrix.notes():
        typer.echo(note, err=True)
