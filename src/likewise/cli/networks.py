"""`likewise networks`: what networks there are."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer


def networks(
    pattern: Annotated[
        str, typer.Argument(help="Such as 'resnet*' or 'timm:vit_*'; without one, the zoo.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """List networks and their addresses."""
    from likewise.errors import UnknownNameError
    from likewise.networks import listed

    found = listed(pattern)
    if not found:
        raise UnknownNameError(
            f"no network matches {pattern!r}. Leave the pattern out to see the zoo."
        )
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in found]))
        return
    width = max(len(one.address) for one in found)
    for one in found:
        typer.echo(f"{one.address:{width}}  {one.domain:5}  {one.summary}")
