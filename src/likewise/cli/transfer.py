"""`likewise transfer`: which networks are fooled by the same attacks."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from likewise.cli._options import FOR_LAYERS, seed_option, show_keywords, show_options
from likewise.cli._print import echo, refuse_unused
from likewise.cli._words import attack_options, claim_out

if TYPE_CHECKING:
    import pandas as pd

    from likewise.transfer import TransferMatrix


@show_options(
    without=["store", *FOR_LAYERS],
    long=True,
    data="Labelled images, like cifar10:test[:500].",
    batch_size="Images attacked at a time; by default 64.",
)
def transfer(
    networks: Annotated[list[str] | None, Argument(help="Addresses of networks of the same classes.")] = None,
    out: Annotated[Path | None, Option(help="Folder of the run; rerun with it to resume.")] = None,
    attack: Annotated[str, Option(help="Name, with options: mi-fgsm,eps=4/255,iterations=20.")] = "pgd",
    eps: Annotated[str | None, Option(help="How far images may change, like 8/255.")] = None,
    iterations: Annotated[int | None, Option(help="Steps of the attack.", min=1)] = None,
    smoothed: Annotated[
        bool, Option("--smoothed", help="Count half a hit more for every pair, for few images.")
    ] = False,
    preset: Annotated[str | None, Option(help="Networks by a name: paper, the 69 of SAT's paper.")] = None,
    plan: Annotated[bool, Option("--plan", help="Say what it would cost, and attack nothing.")] = False,
    seed: Annotated[int, seed_option("For random starts.")] = 0,
    as_json: Annotated[bool, Option("--json", help="For programs.")] = False,
    **show: Any,
) -> None:
    """Score how far networks are fooled by the same attacks. This is similarity by attack transferability (SAT)."""
    from likewise import transfer as room
    from likewise.errors import InputError

    if bool(networks) == bool(preset):
        raise InputError("likewise transfer takes networks, or --preset paper. Give one of them.")
    name, options = attack_options(attack, eps, iterations)
    options |= show_keywords(show)
    if plan:
        unused = {"--out": out, "--smoothed": smoothed, "--seed": seed, "--engine": show["engine"]}
        refuse_unused(unused | {"--workers": show["workers"]}, "beside --plan, which runs nothing")
        if preset is not None:
            shown = {f"--{key.replace('_', '-')}": value for key, value in show.items() if key != "data"}
            refuse_unused(shown, "beside --preset and --plan, which build no network")
        available = preset is not None and find_spec("timm") is not None
        _print_plan(room.plan(networks, attack=name, preset=preset, available=available, **options), as_json)
        return
    if show["data"] is None:
        raise InputError("networks are attacked on labelled images. Say which, as in --data 'cifar10:test[:500]'.")
    options |= {"seed": seed, "smoothed": smoothed, "store": claim_out(out, "sat.csv", "sat.png")}
    matrix = room.sat(networks or room.preset(str(preset), available=True), attack=name, **options)
    if out is not None:
        matrix.save_run(out)
        matrix.plot(out / "sat.png")
    if as_json:
        echo(json.dumps(json.loads(matrix.to_frame(long=True).to_json(orient="records", double_precision=15))))
        return
    _print(matrix)
    if out is not None:
        echo(f"\nwritten to {out}: sat.safetensors, sat.csv, sat.png, answers.safetensors, store/")


def _print(matrix: TransferMatrix) -> None:
    columns = get_terminal_size().columns
    echo(f"sat  (larger is {matrix.larger_is}; ln 100 = 4.605: whatever fools one fools the other)")
    echo(matrix.table(".3f", columns))
    echo("".join(f"{line}\n" for line in [*matrix.legend(), *matrix.notes()]), nl=False)
    for pair, reason in list(matrix.reasons.items())[:3]:
        echo(f"undefined for {pair[0]}, {pair[1]}: {reason}", err=True)


def _print_plan(frame: pd.DataFrame, as_json: bool) -> None:
    if as_json:
        echo(json.dumps(json.loads(frame.to_json(orient="records", double_precision=15))))
        return
    rounded = frame.round({"parameters": 1, "gmacs": 2, "tmacs": 0, "gb": 2})
    echo(rounded.to_string(index=False))
    tmacs, steps, passes, size = (float(frame[name].sum()) for name in ("tmacs", "steps", "passes", "gb"))
    echo(
        f"\n{len(frame)} networks: {steps:,.0f} steps of attacks, {passes:,.0f} forward passes, {tmacs:,.0f} · 10¹² "
        f"multiplications ({tmacs / 3600:,.0f} hours at 10¹² per second), {size:,.1f} GB of examples. Nothing was run."
    )
