"""`likewise samples`: two evaluations of lm-evaluation-harness, question by question."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

from typer import Argument, Exit, Option

from likewise.cli._options import seed_option
from likewise.cli._print import echo


def samples(
    a: Annotated[str, Argument(help="A samples_TASK.jsonl of lm_eval --log_samples, or a folder of them.")],
    b: Annotated[str, Argument(help="That of the other network.")],
    fail: Annotated[bool, Option("--fail", help="Exit with 1 if a task became worse by more than chance.")] = False,
    seed: Annotated[int, seed_option("Draws signs for metrics that are not right or wrong.")] = 0,
    as_json: Annotated[bool, Option("--json", help="For programs.")] = False,
) -> None:
    """Test whether two language models differ on a benchmark. Paired by question; q over all tasks."""
    from likewise.language import paired_samples

    change = paired_samples(a, b, seed=seed)
    echo(json.dumps([asdict(task) for task in change.tasks]) if as_json else str(change))
    if fail and any(task.sure and task.after < task.before for task in change.tasks):
        raise Exit(1)
