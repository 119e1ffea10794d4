"""`likewise train`: a network, data, and a folder that can be gone on with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def train(
    network: Annotated[str, typer.Argument(help="Address of the network, such as zoo:lenet.")],
    data: Annotated[str, typer.Argument(help="Address of the data, such as cifar10.")],
    out: Annotated[Path, typer.Option(help="Folder of the training; goes on if it has begun.")],
    epochs: Annotated[int, typer.Option(help="How often all the data is shown.")] = 10,
    seed: Annotated[int, typer.Option(help="Same seed, same weights.")] = 0,
    batch_size: Annotated[int, typer.Option(help="Inputs in one step.")] = 128,
    optimiser: Annotated[str, typer.Option(help="sgd, adam or adamw.")] = "sgd",
    lr: Annotated[float | None, typer.Option(help="Learning rate; 0.1 for sgd, 0.001 else.")] = None,
    momentum: Annotated[float, typer.Option(help="Of sgd.")] = 0.9,
    weight_decay: Annotated[float, typer.Option(help="Pull of the weights towards 0.")] = 5e-4,
    schedule: Annotated[str, typer.Option(help="cosine, step, plateau or constant.")] = "cosine",
    warmup: Annotated[float, typer.Option(help="Epochs until the full learning rate.")] = 0.0,
    label_smoothing: Annotated[float, typer.Option(help="Share given to all classes.")] = 0.0,
    augment: Annotated[list[str] | None, typer.Option(help="flip, crop, cutout or noise; may be repeated.")] = None,
    mixup: Annotated[float, typer.Option(help="Alpha of mixup; 0 is off.")] = 0.0,
    cutmix: Annotated[float, typer.Option(help="Alpha of cutmix; 0 is off.")] = 0.0,
    patience: Annotated[int | None, typer.Option(help="Stop after so many epochs without a lower loss.")] = None,
    validation: Annotated[
        str | None, typer.Option(help="Address to validate on; else the data's held-out split.")
    ] = None,
    keep_epochs: Annotated[
        bool, typer.Option("--keep-epochs", help="Keep the weights of every epoch, to inspect.")
    ] = False,
    device: Annotated[str | None, typer.Option(help="Such as cuda:0.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Train a network; a training that was killed goes on where it was."""
    from likewise.data import held_out
    from likewise.networks import train

    done = train(
        network,
        data,
        out=out,
        keep_epochs=keep_epochs,
        epochs=epochs,
        seed=seed,
        batch_size=batch_size,
        optimiser=optimiser,
        lr=lr,
        momentum=momentum,
        weight_decay=weight_decay,
        schedule=schedule,  # type: ignore[arg-type]  # checked where it is used
        warmup=warmup,
        label_smoothing=label_smoothing,
        augment=augment or (),
        mixup=mixup,
        cutmix=cutmix,
        patience=patience,
        validation=validation or held_out(data),
        device=device,
    )
    if as_json:
        typer.echo(json.dumps(done.history))
        return
    last = done.history[-1]
    told = [f"{name.replace('_', ' ')} {last[name]:.4f}" for name in last if "accuracy" in name]
    typer.echo(f"{len(done.history)} epochs, {', '.join(told)}")
    typer.echo(str(out / "weights.safetensors"))
