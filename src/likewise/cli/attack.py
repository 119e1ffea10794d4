"""`likewise attack`: how often an attack fools a network, and what its examples look like."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from likewise.cli._options import FOR_LAYERS, seed_option, show_keywords, show_options
from likewise.cli._print import echo
from likewise.cli._words import attack_options, claim_out


@show_options(without=["data", "store", *FOR_LAYERS], long=True, batch_size="Images attacked at a time; by default 64.")
def attack(
    network: Annotated[str, Argument(help="Address of the network.")],
    data: Annotated[str, Option(help="Labelled images, like cifar10:test[:500].")],
    attack: Annotated[str, Option(help="Name, with options: mi-fgsm,eps=4/255,iterations=20.")] = "pgd",
    eps: Annotated[str | None, Option(help="How far images may change, like 8/255.")] = None,
    iterations: Annotated[int | None, Option(help="Steps of the attack.", min=1)] = None,
    out: Annotated[Path | None, Option(help="Folder for pictures, and for examples to resume from.")] = None,
    seed: Annotated[int, seed_option("For random starts.")] = 0,
    as_json: Annotated[bool, Option("--json", help="For programs.")] = False,
    **show: Any,
) -> None:
    """Attack a network. Says which share of images fools it, with an interval, and keeps pictures of some."""
    from likewise.transfer import success

    name, options = attack_options(attack, eps, iterations)
    options |= show_keywords(show) | {"store": claim_out(out, "examples.png")}
    result = success(network, data, name, seed=seed, **options)
    if out is not None:
        result.plot(out / "examples.png")
    if as_json:
        numbers = ("network", "attack", "rate", "low", "high", "count", "accuracy", "stalled")
        echo(json.dumps({number: getattr(result, number) for number in numbers}))
        return
    echo(str(result))
    if out is not None:
        echo(f"written to {out}: examples.png")
