"""`likewise benchmark run`: train what is missing, compare, evaluate; rerun with the same folder to resume."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from likewise.cli._options import engine_options, flags, seed_option
from likewise.cli._print import echo, refuse_unused

if TYPE_CHECKING:
    import pandas as pd

    from likewise.benchmark import BenchmarkRun


@engine_options
def run(
    domain: Annotated[str, Option(help="graph, language or vision.")],
    data: Annotated[str, Option(help="Data of the domain, like cora, or an address.")],
    network: Annotated[list[str], Option(help="Network of the domain, like gcn, or an address; may be repeated.")],
    out: Annotated[Path | None, Option(help="Folder of the run; rerun with it to resume.")] = None,
    grounding: Annotated[list[str] | None, Option(help="Some groundings only; may be repeated.")] = None,
    measures: Annotated[list[str] | None, Option(help="all, resi, names, or module:function; repeatable.")] = None,
    preset: Annotated[str, Option(help="paper, or small: minutes on two cores; as in paper,epochs=9.")] = "small",
    device: Annotated[str | None, Option(help="Such as cuda:0; else the accelerator, if there is one.")] = None,
    seed: Annotated[int, seed_option("Another seed is another repetition.")] = 0,
    plan: Annotated[bool, Option("--plan", help="Say what would be trained and what it costs.")] = False,
    gpu_tflops: Annotated[float | None, Option(help="For --plan: TFLOP/s that a GPU sustains; else 10.")] = None,
    as_json: Annotated[bool, Option("--json", help="For programs.")] = False,
    **where: Any,
) -> None:
    """Train networks of known similarity, and test measures. On processes by default; --engine local for this one."""
    import pandas as pd

    from likewise import benchmark
    from likewise.benchmark.planning import run_folder
    from likewise.cli._words import measures_of
    from likewise.errors import InputError

    options: dict[str, Any] = {"groundings": grounding or None, "preset": preset, "seed": seed}
    options["measures"] = measures_of(measures, "resi")
    if plan:
        refuse_unused({**flags(where), "--device": device}, "beside --plan, which trains nothing")
        _print_plan(
            benchmark.plan(
                domain, data, network, out=out, gpu_tflops=10.0 if gpu_tflops is None else gpu_tflops, **options
            ),
            as_json,
        )
        return
    refuse_unused({"--gpu-tflops": gpu_tflops}, "without --plan")
    if out is None:
        raise InputError("a run needs a folder for its networks and results. Say which, as in --out runs/cora-gcn.")
    where["engine"] = None if where["engine"] == "local" else where["engine"] or "processes"
    options |= {"device": device, **where}
    folders = {name: run_folder(out, name, len(network)) for name in network}
    runs = [benchmark.run(domain, data, name, out=folder, **options) for name, folder in folders.items()]
    if as_json:
        rows = pd.concat([done.results for done in runs], ignore_index=True)
        echo(rows.to_json(orient="records", double_precision=15))
        return
    for done in runs:
        _print(done)
        echo(f"\nwritten to {done.out}: results.csv, networks.csv, run.json, networks/, store/")


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
    echo("")
    rate = f"{frame.attrs['gpu_tflops']:g} TFLOP/s (assumed: --gpu-tflops)"
    columns = ["networks", "done", "left", "gpu_hours", "gigabytes"]
    totals = frame.groupby("network", sort=False)[columns].sum()
    for name, networks, done, left, gpu_hours, gigabytes in totals.itertuples():
        echo(
            f"{name}: {networks} networks, {done} of them done; {_hours(left)} of one core left to train, or "
            f"{gpu_hours:,.3g} GPU hours at {rate}; {gigabytes:,.3g} GB of weights."
        )
    echo(f"{frame.attrs['pairs']} pairs by {frame.attrs['measures']} measures. Nothing was trained.")


def _hours(seconds: float) -> str:
    return f"{seconds / 60:,.1f} minutes" if seconds < 2 * 3600 else f"{seconds / 3600:,.0f} hours"
