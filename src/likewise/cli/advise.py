"""`likewise advise`: which measure to take for a question, and on what evidence."""

from __future__ import annotations

import json
from typing import Annotated

from typer import Option

from likewise.cli._print import echo, refuse_unused


def advise(
    domain: Annotated[str, Option(help="graph, language or vision.")],
    question: Annotated[str, Option(help="accuracy, outputs, labels, shortcut, augmentation, layers, family or all.")],
    n: Annotated[int | None, Option("--n", help="How many inputs: adds power and cost.", min=2)] = None,
    d: Annotated[int | None, Option("--d", help="How many neurons; by default 512. Needs --n.", min=1)] = None,
    budget: Annotated[str | None, Option(help="CPU seconds for one pair: 10s, 500ms, 2min. Needs --n.")] = None,
    top: Annotated[int, Option(help="How many measures to show.", min=1)] = 10,
    as_json: Annotated[bool, Option("--json", help="For programs, with all evidence.")] = False,
) -> None:
    """Rank measures by benchmark results. They are the paper's and ours, with power and cost at n inputs."""
    from likewise.benchmark.results.advice import advise

    if n is None:
        refuse_unused({"--d": d}, "without --n")
    advice = advise(domain, question, n=n, d=512 if d is None else d, budget=budget, top=top)
    echo(json.dumps(advice.to_dict(), ensure_ascii=False) if as_json else str(advice))
