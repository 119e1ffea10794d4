"""`likewise layers`: what layers a network has, and what they give."""

from __future__ import annotations

import json
from dataclasses import asdict
from fnmatch import fnmatchcase
from typing import Annotated

from typer import Argument, Option

from likewise.cli._print import echo


def layers(
    network: Annotated[str, Argument(help="Address of the network, such as timm:resnet18.")],
    pattern: Annotated[str, Argument(help="Such as 'layer1.*'; without one, all.")] = "*",
    data: Annotated[str | None, Option(help="Address of data to show it; by default random inputs are tried.")] = None,
    as_json: Annotated[bool, Option("--json", help="For programs.")] = False,
) -> None:
    """List the layers of a network. Names, shapes for one input, parameters; * marks the blocks."""
    import likewise
    from likewise.errors import UnknownNameError
    from likewise.views.hooks import nearest

    every = likewise.layers(network, data)
    matching = [layer for layer in every if fnmatchcase(layer.name, pattern)]
    if not matching:
        hint = nearest(pattern, [layer.name for layer in every])
        raise UnknownNameError(f"no layer of {network!r} matches {pattern!r}.{hint}")
    if as_json:
        echo(json.dumps([asdict(layer) for layer in matching]))
        return
    name, kind = (max(len(getattr(layer, key)) for layer in matching) for key in ("name", "kind"))
    for layer in matching:
        shape = "?" if layer.shape is None else " x ".join(map(str, layer.shape))
        mark = "*" if layer.block else " "
        row = f"{mark} {layer.name:{name}}  {layer.kind:{kind}}  {shape:>14}  {layer.parameters:>11,}"
        echo(row)
