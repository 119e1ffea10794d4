"""`likewise diff`: what changed between two networks, and whether it stays within limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from likewise.cli._words import thresholds


def diff(
    a: Annotated[str, typer.Argument(help="Address of a network, such as zoo:resnet20@a.safetensors.")],
    b: Annotated[str, typer.Argument(help="Address of the changed one.")],
    data: Annotated[str, typer.Option(help="What to show both, like cifar10:test[:1000].")],
    fail_under: Annotated[
        list[str] | None, typer.Option(help="MEASURE=VALUE: exit with 1 if it is less. May be repeated.")
    ] = None,
    fail_over: Annotated[
        list[str] | None, typer.Option(help="MEASURE=VALUE: exit with 1 if it is more. May be repeated.")
    ] = None,
    layers: Annotated[list[str] | None, typer.Option(help="Names or globs; else all layers. May be repeated.")] = None,
    head: Annotated[str | None, typer.Option(help="The classifier, if it cannot be found.")] = None,
    reduce: Annotated[str | None, typer.Option(help="How maps and tokens become rows; flatten, mean for text.")] = None,
    transfer: Annotated[
        int | None, typer.Option(help="Inputs to attack; 0 for none. Else 100 if images are small.")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(help="Inputs shown at a time; else as many as fit.")] = None,
    device: Annotated[str | None, typer.Option(help="Such as cuda:0.")] = None,
    seed: Annotated[int, typer.Option(help="Draws the order of the inputs and the start of attacks.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for diff.md, diff.json and diff.png.")] = None,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="For a pull request.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Say what changed between two networks. Looks at layers, answers, classes and attacks, and gives a verdict."""
    import likewise

    change = likewise.diff(
        a,
        b,
        data,
        layers=layers,
        head=head,
        reduce=reduce,
        transfer=transfer,
        fail_under=thresholds(fail_under, "--fail-under"),
        fail_over=thresholds(fail_over, "--fail-over"),
        batch_size=batch_size,
        device=device,
        seed=seed,
    )
    if out is not None:
        for path in change.write(out):
            typer.echo(str(path), err=True)
    if as_json:
        typer.echo(json.dumps(change.to_dict()))
    else:
        typer.echo(change.to_markdown() if as_markdown else str(change), nl=not as_markdown)
    for failure in change.failures:
        typer.echo(f"likewise: {failure}", err=True)
    if not change.ok:
        raise typer.Exit(1)
