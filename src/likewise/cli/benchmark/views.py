"""`likewise benchmark views`: the views of whole runs in one file, for measures to be submitted on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from likewise.cli._print import echo


def views(
    runs: Annotated[list[Path], Argument(help="Folders of runs of the benchmark.")],
    out: Annotated[Path, Option("--out", "-o", help="The file to write.")] = Path("views.safetensors"),
    data: Annotated[list[str] | None, Option(help="Their data, where it is not built in; may be repeated.")] = None,
    inputs: Annotated[int | None, Option(help="Keep the first so many of each run; else all.", min=2)] = None,
) -> None:
    """Cache the views of runs in one file. New measures are then tested without training."""
    from likewise.benchmark import CachedViews

    CachedViews.check_place(out)
    cached = CachedViews.from_runs(runs, data=data or (), inputs=inputs)
    path = cached.save(out)
    size = f"{path.stat().st_size / 1e6:,.1f} MB"
    echo(f"{path}: {len(cached.trials)} groundings of {len(runs)} runs, {size}, {cached.digest}")
