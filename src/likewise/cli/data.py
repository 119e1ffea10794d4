"""`likewise data`: what data there is."""

from __future__ import annotations

import json
from fnmatch import fnmatch
from typing import Annotated

from typer import Argument, Option

from likewise.cli._facts import rows
from likewise.cli._print import echo
from likewise.errors import UnknownNameError


def data(
    pattern: Annotated[str, Argument(help="Such as 'cifar*'; without one, all.")] = "*",
    as_json: Annotated[bool, Option("--json", help="For programs.")] = False,
) -> None:
    """List datasets, their splits and what they are."""
    echo(_list(pattern, as_json))


def _list(pattern: str, as_json: bool) -> str:
    sources = [row for row in rows("data") if fnmatch(row["name"], pattern)]
    if not sources:
        raise UnknownNameError(f"no data matches {pattern!r}. Leave the pattern out to see all.")
    if as_json:
        return json.dumps([{key: row[key] for key in ("name", "domain", "splits")} for row in sources])
    lines = ((f"{row['name']}{':PATH' * row['needs_path']}", ", ".join(row["splits"]), row) for row in sources)
    return "\n".join(f"{name:20}  {row['domain']:5}  {splits:22}  {row['summary']}" for name, splits, row in lines)
