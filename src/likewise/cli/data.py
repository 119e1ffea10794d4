"""`likewise data`: what data there is."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from likewise._base.declarations import read_declarations


def data(
    pattern: Annotated[str, typer.Argument(help="Such as 'cifar*'; without one, all.")] = "*",
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """List datasets, their splits and what they are."""
    typer.echo(read_declarations(lambda: _list(pattern, as_json)))


def _list(pattern: str, as_json: bool) -> str:
    from likewise.data import DATASETS
    from likewise.errors import UnknownNameError

    sources = [DATASETS.get(name) for name in DATASETS.names(pattern)]
    if not sources:
        raise UnknownNameError(f"no data matches {pattern!r}. Leave the pattern out to see all.")
    if as_json:
        return json.dumps([{"name": s.name, "domain": s.domain, "splits": s.splits} for s in sources])
    names = [f"{source.name}:PATH" if source.needs_path else source.name for source in sources]
    return "\n".join(
        f"{name:20}  {source.domain:5}  {', '.join(source.splits):22}  {source.summary}"
        for name, source in zip(names, sources, strict=True)
    )
