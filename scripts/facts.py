"""Write what the package ships of the facts that are declared beside its code.

`cli/facts.json` is what lists and `--help` print without torch; `measures/__init__.pyi` tells editors and type checkers
the options of every measure.

python scripts/facts.py
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path

from likewise import measures
from likewise.cli._facts import FILE, TABLES
from likewise.measures.registry import MEASURES

STUB = Path(measures.__file__).with_suffix(".pyi")
OUTSIDE = ("RESI", "get", "measure", "names", "register", "unregister")  # of the registry


def table() -> str:
    """The tables of `likewise.cli._facts` as JSON, one line per row."""
    tables = {name: ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows()) for name, rows in TABLES.items()}
    return "{\n" + ",\n".join(f'"{name}": [\n{rows}\n]' for name, rows in tables.items()) + "\n}\n"


def stub() -> str:
    """The names of `likewise.measures` with their types: each measure is called with its own options."""
    imports = {name: measures.__dict__[name].__module__ for name in measures.__all__ if name not in OUTSIDE}
    imports |= dict.fromkeys(OUTSIDE, "likewise.measures.registry")
    lines = [
        '"""What editors and type checkers know of the measures. Written by scripts/facts.py."""',
        "",
        "from typing import Any",
        "",
        *(f"from {imports[name]} import {name} as {name}" for name in sorted(imports, key=lambda n: (imports[n], n))),
        "",
        f"__all__ = {measures.__all__}".replace("'", '"'),
        "",
        "def __getattr__(name: str) -> Measure: ...",
    ]
    return "\n".join([*lines, *(line for measure in MEASURES for line in declaration(measure))]) + "\n"


def declaration(measure: measures.Measure) -> Iterator[str]:
    """A measure as the only object of a class, whose call has its options."""
    name = measure.name.replace("-", "_")
    kind = "_" + name.title().replace("_", "")
    keywords = ", ".join([*(written(option, measure) for option in measure.defaults), "reduce: str | None = None"])
    yield ""
    yield f"class {kind}(Measure):"
    yield f"    def __call__(self, x: Any, y: Any, *, {keywords}) -> float:  # type: ignore[override]"
    yield f'        """{measure.info.summary}"""'
    yield ""
    yield f"{name}: {kind}"


def written(option: str, measure: measures.Measure) -> str:
    """An option as it stands in the signature of the formula."""
    parameter = inspect.signature(measure.original).parameters[option]
    default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
    return f"{option}: {parameter.annotation}{default}"


FILES = {FILE: table, STUB: stub}

if __name__ == "__main__":
    for path, text in FILES.items():
        path.write_text(text(), "utf-8")
