"""`likewise measures`: the table of facts, or the recipe of one measure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

from typer import Argument, Option

from likewise.cli._facts import measure_row, rows
from likewise.cli._print import echo, refuse_unused


def measures(
    name: Annotated[str | None, Argument(help="A measure: prints its recipe.")] = None,
    family: Annotated[str | None, Option(help="Only this family.")] = None,
    as_json: Annotated[bool, Option("--json", help="For programs.")] = False,
) -> None:
    """List the measures with their facts, or explain one."""
    if name is not None:
        refuse_unused({"--family": family}, "beside the name of one measure")
    echo(_all(family, as_json) if name is None else _one(name, as_json))


def _one(name: str, as_json: bool) -> str:
    row = next((row for row in rows("measures") if row["name"] == name), None)
    if row is None:  # an alias, a name with options, or none
        from likewise.measures import get

        row = measure_row(get(name))
    return json.dumps({"name": row["name"], **row["facts"]}, ensure_ascii=False) if as_json else str(row["recipe"])


def _all(family: str | None, as_json: bool) -> str:
    listed = [row for row in rows("measures") if family in (None, row["family"])]
    if not listed:
        from likewise.measures import names

        names(family)  # says which families there are
    if as_json:
        facts = [{"name": row["name"], "family": row["family"], **row["facts"]} for row in listed]
        return json.dumps(facts, ensure_ascii=False, indent=1)
    header = ("measure", "in ReSi", "family", "larger is", "range", "symmetric", "ignores")
    cells = [(row["name"], row["abbreviation"], row["family"], *_cells(row["facts"])) for row in listed]
    return f"{table(header, cells)}\n\n{len(listed)} measures. `likewise measures NAME` prints a recipe."


def _cells(facts: dict[str, str]) -> tuple[str, ...]:
    return (facts["direction"].removeprefix("larger is "), facts["range"], facts["symmetric"], facts["ignores"])


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Columns as wide as their longest entry; plain text, so that it can be searched and piped."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (header, *rows)
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])
