"""`likewise zeroshot`: train networks without each class in turn, and score what they make of it."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from likewise.cli._print import echo, refuse_unused
from likewise.cli._words import claim_out

if TYPE_CHECKING:
    import pandas as pd

    from likewise.zeroshot import ZeroShot

ATTACKS, ORDERS = "attacks.csv", "correlations.csv"
FEWEST = 4  # networks that have a rank correlation
IMAGES, GENERATIONS = 100, 1


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
    engine: Annotated[str | None, Option(help="processes[:N], dask[:ADDRESS], ray[:ADDRESS], slurm.")] = None,
    workers: Annotated[int | None, Option(help="Trainings at a time on the engine.", min=1)] = None,
    device: Annotated[str | None, Option(help="Such as cuda:0.")] = None,
    as_json: Annotated[bool, Option("--json", help="For programs.")] = False,
) -> None:
    """Test representations by classes they never saw. Raw Zero-Shot, with DBI and the Amalgam Metric."""
    from likewise import zeroshot as room
    from likewise._base.files import write_whole
    from likewise._base.names import csv_text

    folders = [_holds_soft_labels(network) for network in networks]
    training = {"--preset": preset, "--epochs": epochs, "--engine": engine, "--workers": workers, "--device": device}
    training |= {"--seeds": seeds if seeds > 1 else None, "--split": split if split != "train" else None}
    _check(folders, data, out, {"--pictures": pictures, "--attacks": attacks}, training)
    if not attacks:
        refuse_unused({"--images": images, "--generations": generations}, "without --attacks")
    store = claim_out(out, "zeroshot.csv")
    options: dict[str, Any] = {"preset": preset or "paper", "seeds": seeds, "split": split, "device": device}
    options |= {"store": store, "engine": _engine(engine, workers)} | ({} if epochs is None else {"epochs": epochs})
    results = [
        room.from_folder(network) if folder else room.run(network, str(data), **options)
        for network, folder in zip(networks, folders, strict=True)
    ]
    table = room.means(results, normalise_both=normalise_both)
    fooled = orders = None
    if out is not None:
        write_whole(out / "zeroshot.csv", csv_text(table).encode())
        for number, result in enumerate(results):
            result.save(out / f"{number}.safetensors")
        if pictures:
            room.plot_all(results, out, normalise_both=normalise_both)
        if attacks:
            search = {"images": images or IMAGES, "generations": generations or GENERATIONS}
            fooled, orders = _attack(results, table, str(data), out, search | {"store": store, "device": device})
    if as_json:
        records = (table if fooled is None else fooled).reset_index()
        echo(json.dumps(json.loads(records.to_json(orient="records", double_precision=15))))
        return
    columns = get_terminal_size().columns
    _print(table, fooled, orders, columns)
    if out is not None:
        made = ["zeroshot.csv", *([ATTACKS] if attacks else []), *(["five pictures"] if pictures else [])]
        echo(f"\nwritten to {out}: {', '.join(made)}, one file per network, store/")


def _holds_soft_labels(name: str) -> bool:
    """Whether an argument is a folder, so that nothing is trained for it."""
    from likewise._base.files import is_folder

    return is_folder(name)


def _engine(name: str | None, workers: int | None) -> Any:
    from likewise.work.engines import engine_of

    return None if name is None and workers is None else engine_of(name, workers=workers)


def _check(
    folders: list[bool], data: str | None, out: Path | None, files: dict[str, bool], training: dict[str, Any]
) -> None:
    """Refuse what contradicts itself, before anything is trained."""
    from likewise.errors import InputError

    for flag, wanted in files.items():
        if wanted and out is None:
            raise InputError(f"{flag} makes files. Say where they go, with --out FOLDER.")
    if files["--attacks"] and any(folders):
        raise InputError("folders of soft labels hold no networks to attack. Leave out --attacks, or the folders.")
    if all(folders):
        refuse_unused({"--data": data, **training}, "on soft labels that are there already")
    elif data is None:
        raise InputError("networks are trained on labelled images. Say which, as in --data cifar10.")


def _attack(
    results: list[ZeroShot], table: pd.DataFrame, data: str, out: Path, search: dict[str, Any]
) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """The table with attacks beside it, and the rank correlations where there are networks enough."""
    import pandas as pd

    from likewise import zeroshot as room
    from likewise._base.files import write_whole
    from likewise._base.names import csv_text

    tables = room.attacked(results, data, **search)
    rows = pd.concat(tables, names=["network"]).reset_index(level=0)
    write_whole(out / ATTACKS, csv_text(rows, index=False).encode())
    counts = room.architectures(results, tables)
    fooled = table.join(counts[counts.columns.difference(table.columns, sort=False)])
    if len(results) < FEWEST:
        return fooled, None
    orders = room.rank_correlations(fooled, ["DBI", "DBI normalised", "AM", "AM normalised"], ["attacks", "rate"])
    write_whole(out / ORDERS, csv_text(orders, index=False).encode())
    return fooled, orders


def _print(table: pd.DataFrame, fooled: pd.DataFrame | None, orders: pd.DataFrame | None, width: int) -> None:
    """Tables that fit 80 columns; the files hold every column."""
    import pandas as pd

    from likewise.matrices.tables import fit_width

    columns: dict[str, list[str]] = {}
    over_seeds: dict[str, list[str]] = {}
    for name in ("DBI", "AM"):
        columns[name] = [f"{mean:.3g} ± {std:.2g}" for mean, std in zip(table[name], table[f"{name} ±"], strict=True)]
        columns[f"{name} in [0, 1]"] = [f"{mean:.3f}" for mean in table[f"{name} normalised"]]
        over_seeds[f"{name} ± over seeds"] = [f"{std:.2g}" for std in table[f"{name} over seeds"]]
    if table["accuracy"].notna().any():
        columns["accuracy"] = [f"{share:.3f}" for share in table["accuracy"]]
    echo(fit_width(pd.DataFrame(columns, index=table.index), width))
    echo("± is over classes; in [0, 1]: of soft labels that sum to 1, by the largest value")
    if table["DBI over seeds"].notna().any():
        echo("\n" + fit_width(pd.DataFrame(over_seeds, index=table.index), width))
    if fooled is None:
        return
    counts = fooled[[name for name in ("L0", "Linf", "attacks", "attacks of", "rate") if name in fooled]]
    echo("\n" + fit_width(counts.map("{:.4g}".format), width))
    echo("attacks count images that are wrong afterwards; rate is of those that were right before")
    if orders is None:
        echo(f"{FEWEST} networks or more have a rank correlation with attacks")
        return
    cells = orders.set_index("of").round(2)
    echo("\n" + fit_width(cells.astype(str), width))
