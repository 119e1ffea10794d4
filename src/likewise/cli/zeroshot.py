"""`likewise zeroshot`: train networks without each class in turn, and score what they make of it."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Any

from typer import Argument, Option

from likewise.cli._options import engine_options, flags
from likewise.cli._print import echo, refuse_unused
from likewise.cli._words import claim_out

FEWEST = 4  # networks that have a rank correlation
IMAGES, GENERATIONS = 100, 1
ORDERED = ("DBI", "DBI normalised", "AM", "AM normalised")


@engine_options
def zeroshot(
    networks: Annotated[list[str], Argument(help="Addresses such as zoo:lenet, or folders of your own soft labels.")],
    data: Annotated[str | None, Option(help="Labelled images of three classes or more, such as cifar10.")] = None,
    out: Annotated[Path | None, Option(help="Folder of the run; rerun with it to resume.")] = None,
    preset: Annotated[str | None, Option(help="paper (by default): as its code trains; small: minutes.")] = None,
    epochs: Annotated[int | None, Option(help="Of every training; by default those of the preset.", min=1)] = None,
    seeds: Annotated[int, Option(help="Trainings of each network.", min=1)] = 1,
    split: Annotated[str, Option(help="Samples of the unseen class: train or test.")] = "train",
    normalise_both: Annotated[bool, Option("--normalise-both", help="Scale capsule lengths to sum 1.")] = False,
    pictures: Annotated[bool, Option("--pictures", help="Draw figures 2 to 6 of the paper into --out.")] = False,
    attacks: Annotated[bool, Option("--attacks", help="Attack the networks by their answers, as in table 1.")] = False,
    images: Annotated[int | None, Option(help="For --attacks: the first so many held out; else 100.", min=1)] = None,
    generations: Annotated[int | None, Option(help="For --attacks: of 400 candidates; else 1.", min=1)] = None,
    device: Annotated[str | None, Option(help="Such as cuda:0.")] = None,
    as_json: Annotated[bool, Option("--json", help="For programs.")] = False,
    **where: Any,
) -> None:
    """Test representations by classes they never saw. Raw Zero-Shot, with DBI and the Amalgam Metric."""
    from likewise import zeroshot as room
    from likewise._base.files import is_folder, write_whole
    from likewise._base.names import csv_text

    folders = [is_folder(network) for network in networks]
    training = {"--preset": preset, "--epochs": epochs, "--device": device, **flags(where)}
    training |= {"--seeds": seeds if seeds > 1 else None, "--split": split if split != "train" else None}
    _check(folders, data, out, {"--pictures": pictures, "--attacks": attacks}, training)
    if not attacks:
        refuse_unused({"--images": images, "--generations": generations}, "without --attacks")
    options: dict[str, Any] = {"preset": preset or "paper", "seeds": seeds, "split": split, "device": device, **where}
    options |= {"store": claim_out(out, "zeroshot.csv")} | ({} if epochs is None else {"epochs": epochs})
    results = [
        room.from_folder(network) if folder else room.run(network, str(data), **options)
        for network, folder in zip(networks, folders, strict=True)
    ]
    if normalise_both and all(result.answers != "lengths" for result in results):
        echo("--normalise-both: no network here answers with lengths, so it changes nothing", err=True)
    table, orders = room.means(results, normalise_both=normalise_both), None
    if out is not None:
        write_whole(out / "zeroshot.csv", csv_text(table).encode())
        for number, result in enumerate(results):
            result.save(out / f"{number}.safetensors")
        if pictures:
            room.plot_all(results, out, normalise_both=normalise_both)
        if attacks:
            search: dict[str, Any] = {"images": images or IMAGES, "generations": generations or GENERATIONS}
            tables = room.attacked(results, str(data), store=options["store"], device=device, **search)
            table = room.architectures(results, tables, normalise_both=normalise_both)
            orders = room.rank_correlations(table, ORDERED, ["attacks", "rate"]) if len(results) >= FEWEST else None
            write_whole(out / "attacks.csv", csv_text(table).encode())
    if as_json:
        echo(json.dumps(json.loads(table.reset_index().to_json(orient="records", double_precision=15))))
        return
    echo(room.summary(table, orders, width=get_terminal_size().columns))
    if out is not None:
        made = ["zeroshot.csv", *(["attacks.csv"] if attacks else []), *(["five pictures"] if pictures else [])]
        made += ["one file per network", *(["store/"] if not all(folders) else [])]
        echo(f"\nwritten to {out}: {', '.join(made)}")


def _check(folders: list[bool], data: Any, out: Any, files: dict[str, bool], training: dict[str, Any]) -> None:
    """Refuse what contradicts itself, before anything is trained."""
    from likewise.errors import InputError

    for flag in [flag for flag, wanted in files.items() if wanted and out is None]:
        raise InputError(f"{flag} makes files. Say where they go, with --out FOLDER.")
    if files["--attacks"] and any(folders):
        raise InputError("folders of soft labels hold no networks to attack. Leave out --attacks, or the folders.")
    if all(folders):
        refuse_unused({"--data": data, **training}, "on soft labels that are there already")
    elif data is None:
        raise InputError("networks are trained on labelled images. Say which, as in --data cifar10.")
