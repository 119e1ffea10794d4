"""`likewise inspect`: what a trained network found alike, epoch by epoch, from its checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from likewise.cli._options import show_keywords, show_options
from likewise.cli._print import echo
from likewise.cli._words import claim_out


@show_options(
    without=["data", "store", "layers", "reduce", "dtype"], long=True, head="The classifier, if it cannot be found."
)
def inspect(
    run: Annotated[list[str], Argument(help="A training's folder, or its checkpoints in order.")],
    data: Annotated[str, Option(help="What mistakes are counted on, such as cifar10:test.")],
    out: Annotated[Path, Option(help="Folder for epochs, curves and pictures.")],
    train_data: Annotated[str | None, Option(help="Training data, for indices that compare both splits.")] = None,
    reference: Annotated[str | None, Option(help="A known class list, if the data names none.")] = None,
    adversarial_every: Annotated[int | None, Option(help="Attack every so many epochs too.", min=1)] = None,
    attack: Annotated[
        str | None, Option(help="Options of PGD on the epochs shown, such as eps=0.05,iterations=2; none attacks none.")
    ] = None,
    shown: Annotated[
        list[int] | None, Option(help="Epoch whose matrices, mistakes and templates are drawn; may be repeated.")
    ] = None,
    as_json: Annotated[bool, Option("--json", help="For programs.")] = False,
    **show: Any,
) -> None:
    """Look at class similarity epoch by epoch. Gives curves, matrices, mistakes, templates, phases and a film."""
    from likewise._base.registry import parse_options
    from likewise.classes import inspect
    from likewise.classes.epoch_report import headlines

    options = show_keywords(show) | {
        "train": train_data,
        "reference": reference,
        "adversarial_every": adversarial_every,
        "attack": True if attack is None else attack != "none" and parse_options(attack, "attack"),
        "shown": shown or None,
    }
    claim_out(out, "curves.csv", "curves.png", "film.html")
    inspector = inspect(run, data, out=out, pictures=True, **options)
    frame = inspector.curves()
    if as_json:
        echo(json.dumps(json.loads(frame.to_json(orient="index"))))
        return
    echo(frame[[name for name in headlines() if name in frame]].round(3).to_string())
    echo(str(inspector.phases() if "wsi_max" in frame else "no weights, no phases"))
    echo(str(out / "film.html"))
