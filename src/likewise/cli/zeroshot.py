"""`likewise zeroshot`: train networks without each class in turn, and score what they make of it."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Any

from typer import Argument, Option

from likewise.cli._print import echo
from likewise.cli._words import claim_out


def zeroshot(
    networks: Annotated[list[str], Argument(help="Addresses of architectures, such as zoo:lenet.")],
    data: Annotated[str, Option(help="Labelled images of three classes or more, such as cifar10.")],
    out: Annotated[Path | None, Option(help="Folder of the run; rerun with it to resume.")] = None,
    preset: Annotated[str, Option(help="paper: as its code trains; small: minutes.")] = "paper",
    epochs: Annotated[int | None, Option(help="Of every training; by default those of the preset.", min=1)] = None,
    seeds: Annotated[int, Option(help="Trainings of each network.", min=1)] = 1,
    split: Annotated[str, Option(help="Samples of the unseen class: train or test.")] = "train",
    normalise_both: Annotated[bool, Option("--normalise-both", help="Scale capsule lengths to sum 1.")] = False,
    engine: Annotated[str | None, Option(help="processes[:N], dask[:ADDRESS], ray[:ADDRESS], slurm.")] = None,
    workers: Annotated[int | None, Option(help="Trainings at a time on the engine.", min=1)] = None,
    device: Annotated[str | None, Option(help="Such as cuda:0.")] = None,
    as_json: Annotated[bool, Option("--json", help="For programs.")] = False,
) -> None:
    """Test representations by classes they never saw. Raw Zero-Shot, with DBI and the Amalgam Metric."""
    from likewise import zeroshot as room
    from likewise._base.files import write_whole
    from likewise._base.names import csv_text
    from likewise.matrices.tables import fit_width
    from likewise.work.engines import engine_of

    store = claim_out(out, "zeroshot.csv")
    changes: dict[str, Any] = {} if epochs is None else {"epochs": epochs}
    options: dict[str, Any] = {"preset": preset, "seeds": seeds, "split": split, "device": device}
    options["engine"] = None if engine is None and workers is None else engine_of(engine, workers=workers)
    results = [room.run(network, data, store=store, **options, **changes) for network in networks]
    table = room.means(results, normalise_both=normalise_both)
    if out is not None:
        write_whole(out / "zeroshot.csv", csv_text(table).encode())
        for number, result in enumerate(results):
            result.save(out / f"{number}.safetensors")
    if as_json:
        echo(json.dumps(json.loads(table.reset_index().to_json(orient="records", double_precision=15))))
        return
    cells = table.drop(columns=["depth", "parameters"]).dropna(axis=1, how="all")
    echo(fit_width(cells.map("{:.4g}".format), get_terminal_size().columns))
    echo("± is over classes; normalised is of soft labels that sum to one, divided by the largest value")
    if out is not None:
        echo(f"\nwritten to {out}: zeroshot.csv, one file per network, store/")
