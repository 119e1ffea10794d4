"""`likewise classes`: whether networks find alike what is alike in meaning, and how far by chance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from likewise.classes import Alignment, ClassSimilarity


def classes(
    networks: Annotated[list[str], typer.Argument(help="Addresses, such as timm:resnet18 or hf:PATH.")],
    data: Annotated[
        str | None, typer.Option(help="Labelled data, such as imagefolder:PATH; without it, the class layer counts.")
    ] = None,
    only: Annotated[str | None, typer.Option(help="A known list of classes to keep, such as coco80.")] = None,
    sense: Annotated[list[str] | None, typer.Option(help="What a name means, as in fish=fish.n.01.")] = None,
    metric: Annotated[str, typer.Option(help="cosine, ssim, mse, mae, pearson or spearman.")] = "cosine",
    layers: Annotated[str | None, typer.Option(help="The layer to look at in each network.")] = None,
    reduce: Annotated[str | None, typer.Option(help="For tokens and maps: mean, cls, last or flatten.")] = None,
    head: Annotated[str | None, typer.Option(help="The class layer, if it cannot be found.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the matrices and a picture.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Inputs shown at a time; without it, what fits.")] = None,
    device: Annotated[str | None, typer.Option(help="Such as cuda:0.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Hold what networks find alike against WordNet. SAI is of class means on data, or of class layers."""
    from likewise.classes import alignment, from_features, from_weights, from_wordnet
    from likewise.networks.names import named_networks

    found: dict[str, Alignment] = {}
    for name, address in named_networks(networks).items():
        if data is None:
            own = from_weights(address, head=head)
        else:
            how: dict[str, Any] = {"batch_size": batch_size, "device": device}
            own = from_features(address, data, layers=layers, reduce=reduce, head=head, **how)
        own = own if only is None else own.only(only)
        found[name] = alignment(own, from_wordnet(own, senses=_senses(sense)), metric)
    first = next(iter(found.values()))
    if out is not None:
        _write({name: each.a for name, each in found.items()} | {"WordNet": first.b}, out)
    rows = [_row(name, each) for name, each in found.items()]
    if as_json:
        typer.echo(json.dumps(rows))
        return
    _print(rows, first)
    for name, each in found.items():
        if each != each:  # NaN
            typer.echo(f"{name}: {each}", err=True)
    if out is not None:
        typer.echo(f"\nwritten to {out}: matrices.png, matrices/")


def _senses(words: list[str] | None) -> dict[str, str]:
    from likewise.errors import InputError

    for word in words or []:
        if not all(word.partition("=")):
            raise InputError(f"--sense {word!r} does not say what a name means. Write NAME=SYNSET, as fish=fish.n.01.")
    return {name: synset for name, _, synset in (word.partition("=") for word in words or [])}


def _row(name: str, found: Alignment) -> dict[str, Any]:
    own = found.a
    about = {"network": name, "matrix": own.short, "layer": own.about["layer"], "classes": len(own)}
    chance = {"random": found.chance.random, "constant": found.chance.constant}
    return about | {"SAI": float(found)} | chance | {"calibrated": found.calibrated, "p": found.p}


def _print(rows: list[dict[str, Any]], first: Alignment) -> None:
    import pandas as pd

    from likewise.matrices.tables import fit_width
    from likewise.wordnet import find

    columns = ["layer", "classes", "SAI", "random", "calibrated", "p"]
    frame = pd.DataFrame(rows, index=[row["network"] for row in rows])[columns]
    typer.echo(fit_width(frame.map(lambda cell: f"{cell:.3f}" if isinstance(cell, float) else str(cell))))
    typer.echo(
        f"\n{first.metric} of {first.a.short} with {first.b.short}. random: what random weights give; calibrated: 0 at "
        "random,\n1 at full agreement; p: by permuting the classes"
    )
    pairs = [f"{name} = {find(wnid).name}" for name, wnid in zip(first.b.classes, first.b.ids or (), strict=True)]
    typer.echo(f"meanings: {', '.join(pairs[:10])}" + (f" and {len(pairs) - 10} more" if len(pairs) > 10 else ""))


def _write(matrices: dict[str, ClassSimilarity], out: Path) -> None:
    from likewise.classes import matrices as draw
    from likewise.matrices.similarity import file_name

    for name, matrix in matrices.items():
        matrix.save(out / "matrices" / file_name(name))
    last = list(matrices.values())[-1]
    draw({name: each for name, each in matrices.items() if each.classes == last.classes}, out / "matrices.png")
