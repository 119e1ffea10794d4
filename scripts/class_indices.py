"""Write the table of class indices into docs/class-similarity.md.

    python scripts/class_indices.py

The table is made from the declarations in `likewise.classes.indices`; indices that read the same in another split or
of other matrices share a row.
"""

from __future__ import annotations

from pathlib import Path

from likewise.classes import INDICES

PAGE = Path(__file__).parent.parent / "docs" / "class-similarity.md"
HEADER = "| name | reads | chance |\n|---|---|---|\n"


def table() -> str:
    """One row per meaning, in the order of the declarations."""
    rows: dict[tuple[str, str], list[str]] = {}
    for entry in INDICES:
        rows.setdefault((entry.reads, entry.chance), []).append(f"`{entry.name}`")
    lines = [f"| {', '.join(names)} | {reads} | {chance} |\n" for (reads, chance), names in rows.items()]
    return HEADER + "".join(lines)


def updated(page: str) -> str:
    """The page with the table of today in place of the one it has."""
    before, _, rest = page.partition(HEADER)
    return before + table() + rest[rest.index("\n\n") + 1 :]


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
