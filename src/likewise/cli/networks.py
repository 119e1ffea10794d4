"""`likewise networks`: what networks there are."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from likewise._base.declarations import read_declarations


def networks(
    pattern: Annotated[str, typer.Argument(help="Such as 'resnet*' or 'timm:vit_*'; without one, the zoo.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """List networks and their addresses."""
    of_zoo = not pattern or pattern.startswith("zoo:")  # others ask timm and torchvision for names
    text = read_declarations(lambda: _list(pattern, as_json)) if of_zoo else _list(pattern, as_json)
    typer.echo(text)
    if not pattern and not as_json:
        typer.echo("More with a pattern: likewise networks 'timm:*' or 'torchvision:*'.", err=True)


def _list(pattern: str, as_json: bool) -> str:
    from likewise.errors import UnknownNameError
    from likewise.networks import list_networks

    networks = list_networks(pattern)
    if not networks:
        raise UnknownNameError(f"no network matches {pattern!r}. Leave the pattern out to see the zoo.")
    if as_json:
        return json.dumps([asdict(one) for one in networks])
    width = max(len(one.address) for one in networks)
    return "\n".join(f"{one.address:{width}}  {one.domain:5}  {one.summary}" for one in networks)
