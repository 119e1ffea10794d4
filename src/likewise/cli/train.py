"""`likewise train`: train a network; rerun with the same folder to resume."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from likewise.cli._facts import rows, type_name
from likewise.cli._options import option, shown, spell_out
from likewise.cli._print import echo
from likewise.views.show import ENGINE


def train(
    network: Annotated[str, Argument(help="Address of the network, such as zoo:lenet.")],
    data: Annotated[str, Argument(help="Address of the data, such as cifar10.")],
    out: Annotated[Path, Option(help="Folder of the training; resumed if it has begun.")],
    validation: Annotated[str | None, Option(help="Address to validate on; else the data's held-out split.")] = None,
    teacher: Annotated[str | None, Option(help="A trained network of the same classes to learn from too.")] = None,
    preset: Annotated[
        str | None, Option(help="Settings to start from: dsi or dsi-vit; options at their defaults leave them.")
    ] = None,
    keep_epochs: Annotated[bool, Option("--keep-epochs", help="Keep the weights of every epoch, to inspect.")] = False,
    device: Annotated[str | None, Option(help="Such as cuda:0; else the accelerator, if there is one.")] = None,
    num_workers: Annotated[int | None, Option(help="Processes that decode image files ahead.")] = None,
    as_json: Annotated[bool, Option("--json", help="For programs.")] = False,
    **settings: Any,
) -> None:
    """Train a network; rerun with the same folder to resume."""
    from likewise.data import held_out
    from likewise.networks import Settings
    from likewise.networks import preset as settings_of
    from likewise.networks import train as run

    where = {name: settings.pop(name) for name in ENGINE}
    usual = {} if preset is None else {**Settings().record(), "augment": []}  # a default leaves what the preset says
    changes = {n: v for n, v in settings.items() if v is not None and (n not in usual or v != usual[n])}
    to_validate = validation or held_out(data)
    done = run(
        network,
        data,
        (Settings() if preset is None else settings_of(preset)).override(changes),
        out=out,
        keep_epochs=keep_epochs,
        validation=to_validate,
        teacher=teacher,
        device=device,
        num_workers=num_workers,
        **where,
    )
    if as_json:
        echo(json.dumps(done.history))
        return
    last = done.history[-1]
    accuracies = [f"{name.replace('_', ' ')} {last[name]:.4f}" for name in last if "accuracy" in name]
    count = len(done.history)
    echo(f"{count} epoch{'s' * (count > 1)}, {', '.join(accuracies)}")
    best = next((record for record in reversed(done.history) if "best_step" in record), None)
    if best is not None:
        echo(f"kept step {best['best_step']}, validation accuracy {best['best_accuracy']:.4f}")
    echo(str(out / "weights.safetensors"))


_TYPES = {
    type_name(kind): kind
    for kind in (bool, int, float, str, int | None, float | None, str | None, list[float], list[str])
}


_settings = [option(row["name"], _TYPES[row["type"]], row["default"], row["help"]) for row in rows("settings")]
spell_out(train, [*_settings, *shown(ENGINE)])
