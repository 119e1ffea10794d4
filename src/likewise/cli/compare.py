"""`likewise compare`: files of activations in, matrices, frame and picture out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, cast

import typer


def compare(
    files: Annotated[list[str], typer.Argument(help="Files (FILE:KEY picks an array); networks with --data.")],
    measure: Annotated[list[str] | None, typer.Option("--measure", "-m", help="Names or sets of measures.")] = None,
    data: Annotated[str | None, typer.Option(help="What to show networks, like cifar10:test[:1000].")] = None,
    layers: Annotated[str, typer.Option(help="The layer to look at in each network.")] = "penultimate",
    out: Annotated[Path | None, typer.Option(help="Folder for matrices, frame, pictures and the store.")] = None,
    calibrate: Annotated[bool, typer.Option("--calibrate", help="Add nulls and calibrated scores.")] = False,
    reduce: Annotated[str | None, typer.Option(help="For tokens and maps: mean, cls, last, flatten, spatial.")] = None,
    batch_size: Annotated[int, typer.Option(help="Inputs shown to a network at a time.")] = 256,
    device: Annotated[str | None, typer.Option(help="Such as cuda:0.")] = None,
    memory: Annotated[str | None, typer.Option(help="The most to hold at a time, like 4GB.")] = None,
    seed: Annotated[int, typer.Option(help="For measures that draw at random.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:  # fmt: skip
    """Compare networks by their activations and answers on the same inputs."""
    from likewise.comparing import compare as run
    from likewise.errors import InputError
    from likewise.measures.workspace import parse_memory
    from likewise.networks.address import is_network
    from likewise.showing import named_networks
    from likewise.views.files import read_arrays

    if data is None:
        network = next((file for file in files if is_network(file)), None)
        if network is not None:
            raise InputError(
                f"{network} is a network: say what to show it, as in --data 'cifar10:test[:1000]'."
            )
    limit = None if memory is None else parse_memory(memory)
    views = read_arrays(files, memory=limit) if data is None else named_networks(files)
    measures = [name for word in measure or ["cka-debiased"] for name in word.split(",")]
    comparison = run(
        views, measures, data=data, layers=layers, reduce=cast(Any, reduce), store=out and out / "store",
        batch_size=batch_size, device=device, memory=memory, seed=seed, calibrate=calibrate,
    )  # fmt: skip
    frame = comparison.to_frame()
    if out is not None:
        comparison.save(out / "matrices")
        frame.to_csv(out / "scores.csv", index=False)
        comparison.plot(out / "matrices.png")
    if as_json:
        typer.echo(json.dumps(json.loads(frame.to_json(orient="records"))))
        return
    for name, matrix in comparison.items():
        typer.echo(f"\n{name}  (larger is {matrix.larger_is})")
        typer.echo(matrix.to_frame().to_string(float_format=lambda value: f"{value:.4f}"))
        for pair, reason in list(matrix.reasons.items())[:3]:
            typer.echo(f"undefined for {pair[0]}, {pair[1]}: {reason}", err=True)
    if calibrate:
        typer.echo("\n" + frame[frame.a < frame.b].to_string(index=False))
    if out is not None:
        typer.echo(f"\nwritten to {out}: matrices.png, scores.csv, matrices/")
