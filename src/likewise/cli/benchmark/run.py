"""`likewise benchmark run`: train what is missing, compare, evaluate; rerun with the same folder to resume."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option, echo

if TYPE_CHECKING:
    import pandas as pd

    from likewise.benchmark import BenchmarkRun


def run(
    domain: Annotated[str, Option(help="graph, language or vision.")],
    data: Annotated[str, Option(help="Data of the domain, like cora, or an address.")],
    network: Annotated[str, Option(help="Network of the domain, like gcn, or an address.")],
    out: Annotated[Path | None, Option(help="Folder of the run; rerun with it to resume.")] = None,
    grounding: Annotated[list[str] | None, Option(help="Some groundings only; may be repeated.")] = None,
    measures: Annotated[list[str] | None, Option(help="all, resi, names, or module:function; repeatable.")] = None,
    preset: Annotated[str, Option(help="paper, or small: minutes on two cores.")] = "small",
    engine: Annotated[str, Option(help="Where networks are trained: processes[:N], dask, ray or local.")] = "processes",
    seed: Annotated[int, Option(help="Another seed is another repetition.")] = 0,
    plan: Annotated[bool, Option("--plan", help="Say what would be trained and what it costs.")] = False,
    as_json: Annotated[bool, Option("--json", help="For programs.")] = False,
) -> None:
    """Train networks of known similarity, and test measures."""
    from likewise import benchmark
    from likewise.cli._words import measures_of
    from likewise.errors import InputError

    options: dict[str, Any] = {"groundings": grounding or None, "preset": preset, "seed": seed}
    options["measures"] = measures_of(measures, "resi")
    if plan:
        _print_plan(benchmark.plan(domain, data, network, out=out, **options), as_json)
        return
    if out is None:
        raise InputError("a run needs a folder for its networks and results. Say which, as in --out runs/cora-gcn.")
    done = benchmark.run(domain, data, network, out=out, engine=None if engine == "local" else engine, **options)
    if as_json:
        echo(done.results.to_json(orient="records", double_precision=15))
        return
    _print(done)
    echo(f"\nwritten to {out}: results.csv, networks.csv, run.json, networks/, store/")


def _print(done: BenchmarkRun) -> None:
    """One row per measure and one column per grounding, in the form that made the paper's tables."""
    rows = done.results[(done.results["variant"] == "resi") & (done.results["metric"] != "conformity")]
    names = rows["grounding"].where(rows["metric"].isin(["spearman", "auprc"]), rows["metric"])
    echo(rows.assign(column=names).pivot_table("value", "measure", "column", sort=False).round(2).to_string())
    for name, validity in done.validity.items():
        if not validity.valid:
            echo(f"{name} is not valid: {validity.reason}.")


def _print_plan(frame: pd.DataFrame, as_json: bool) -> None:
    if as_json:
        echo(json.dumps(json.loads(frame.to_json(orient="records", double_precision=15))))
        return
    echo(frame.to_string(index=False))
    echo(
        f"\n{frame['networks'].sum()} networks, {frame['done'].sum()} of them done; {frame['left'].sum() / 60:,.1f} "
        f"minutes of one core left to train; {frame.attrs['pairs']} pairs by {frame.attrs['measures']} measures. "
        "Nothing was trained."
    )
