"""`likewise networks`: what networks there are."""

from __future__ import annotations

import json
from dataclasses import asdict
from fnmatch import fnmatch
from typing import Annotated

from typer import Argument, Option

from likewise.cli._facts import Row, rows
from likewise.cli._print import echo
from likewise.errors import UnknownNameError


def networks(
    pattern: Annotated[str, Argument(help="Such as 'resnet*' or 'timm:vit_*'; without one, the zoo.")] = "",
    as_json: Annotated[bool, Option("--json", help="For programs.")] = False,
) -> None:
    """List networks and their addresses."""
    echo(_list(pattern, as_json))
    if not pattern and not as_json:
        echo("More with a pattern: likewise networks 'timm:*' or 'torchvision:*'.", err=True)


def _list(pattern: str, as_json: bool) -> str:
    networks = _matching(pattern)
    if not networks:
        raise UnknownNameError(f"no network matches {pattern!r}. Leave the pattern out to see the zoo.")
    if as_json:
        return json.dumps(networks)
    width = max(len(row["address"]) for row in networks)
    return "\n".join(f"{row['address']:{width}}  {row['domain']:5}  {row['summary']}" for row in networks)


def _matching(pattern: str) -> list[Row]:
    if not pattern or pattern.startswith("zoo:"):
        return [row for row in rows("networks") if fnmatch(row["address"], pattern or "*")]
    from likewise.networks import list_networks  # asks timm and torchvision for names

    return [asdict(network) for network in list_networks(pattern)]
