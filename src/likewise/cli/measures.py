"""`likewise measures`: the table of facts, or the recipe of one measure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

import typer

from likewise._base.declarations import read_declarations

# of these, only modules that declare measures are read
ROOMS = ("wordnet", "data", "networks", "views", "comparison", "attacks", "classes", "transfer")


def measures(
    name: Annotated[str | None, typer.Argument(help="A measure: prints its recipe.")] = None,
    family: Annotated[str | None, typer.Option(help="Only this family.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """List the measures with their facts, or explain one."""
    without = tuple(f"likewise.{room}" for room in ROOMS)
    text = read_declarations(lambda: _all(family, as_json) if name is None else _one(name, as_json), without=without)
    typer.echo(text)


def _one(name: str, as_json: bool) -> str:
    from likewise import measures as known

    measure = known.get(name)
    if not as_json:
        return measure.explain()
    return json.dumps({"name": measure.name, **measure.facts()}, ensure_ascii=False)


def _all(family: str | None, as_json: bool) -> str:
    from likewise import measures as known
    from likewise.matrices.score import range_text

    found = [known.get(entry) for entry in known.names(family)]
    if as_json:
        rows = [{"name": m.name, "family": m.info.family, **m.facts()} for m in found]
        return json.dumps(rows, ensure_ascii=False, indent=1)
    header = ("measure", "in ReSi", "family", "larger is", "range", "symmetric", "ignores")
    rows_ = [
        (
            info.name,
            next((alias for alias in info.aliases if alias in known.RESI), ""),
            info.family,
            info.larger_is,
            range_text(info.bounds),
            "yes" if info.symmetric else "no",
            ", ".join(sorted(info.invariant_to)) or "nothing",
        )
        for info in (measure.info for measure in found)
    ]
    return f"{table(header, rows_)}\n\n{len(found)} measures. `likewise measures NAME` prints a recipe."


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Columns as wide as their longest entry; plain text, so that it can be searched and piped."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (header, *rows)
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])
