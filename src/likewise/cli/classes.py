"""`likewise classes`: whether classes that a network finds alike are alike in meaning, compared with chance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from likewise.cli._options import ONE_LAYER, show_keywords, show_options
from likewise.cli._print import echo
from likewise.cli._words import claim_out

if TYPE_CHECKING:
    from likewise.classes import Alignment, ClassSimilarity


@show_options(
    data="Labelled data, such as imagefolder:PATH; by default, the weights of the classifier.", layers=ONE_LAYER
)
def classes(
    networks: Annotated[list[str], Argument(help="Addresses, such as timm:resnet18 or hf:PATH.")],
    only: Annotated[str | None, Option(help="A known list of classes to keep, such as coco80.")] = None,
    sense: Annotated[list[str] | None, Option(help="What a name means, as in fish=fish.n.01.")] = None,
    metric: Annotated[str, Option(help="cosine, ssim, mse, mae, pearson or spearman.")] = "cosine",
    out: Annotated[Path | None, Option(help="Folder for the matrices and a picture.")] = None,
    as_json: Annotated[bool, Option("--json", help="For programs.")] = False,
    **show: Any,
) -> None:
    """Compare the classes that networks find alike with WordNet. SAI is of class means on data, or of classifiers."""
    from likewise.classes import alignment, from_features, from_weights, from_wordnet
    from likewise.networks.names import named_networks

    claim_out(out, "matrices.png")
    alignments: dict[str, Alignment] = {}
    named, similarity = named_networks(networks), from_weights if show["data"] is None else from_features
    for name, matrix in similarity(named, **show_keywords(show, named)).items():
        matrix = matrix if only is None else matrix.only(only)
        alignments[name] = alignment(matrix, from_wordnet(matrix, senses=_senses(sense)), metric)
    first = next(iter(alignments.values()))
    if out is not None:
        _write({name: sai.a for name, sai in alignments.items()} | {"WordNet": first.b}, out)
    rows = [_row(name, sai) for name, sai in alignments.items()]
    if as_json:
        echo(json.dumps(rows))
        return
    _print(rows, first)
    for name, sai in alignments.items():
        if sai != sai:  # NaN
            echo(f"{name}: {sai}", err=True)
    if out is not None:
        echo(f"\nwritten to {out}: matrices.png, matrices/")


def _senses(words: list[str] | None) -> dict[str, str]:
    from likewise.errors import InputError

    for word in words or []:
        if not all(word.partition("=")):
            raise InputError(f"--sense {word!r} does not say what a name means. Write NAME=SYNSET, as fish=fish.n.01.")
    return {name: synset for name, _, synset in (word.partition("=") for word in words or [])}


def _row(name: str, sai: Alignment) -> dict[str, Any]:
    about = {"network": name, "matrix": sai.a.short, "layer": sai.a.about["layer"], "classes": len(sai.a)}
    about |= {key: sai.a.about[key] for key in ("accuracy",) if key in sai.a.about}
    chance = {"random": sai.chance.random, "constant": sai.chance.constant}
    return about | {"SAI": float(sai)} | chance | {"calibrated": sai.calibrated, "p": sai.p}


def _print(rows: list[dict[str, Any]], first: Alignment) -> None:
    import pandas as pd

    from likewise.matrices.labelled import accuracy_note
    from likewise.matrices.tables import fit_width
    from likewise.wordnet import find

    columns = ["layer", "classes", "SAI", "random", "calibrated", "p"]
    frame = pd.DataFrame(rows, index=[row["network"] for row in rows])[columns]
    echo(fit_width(frame.map(lambda cell: f"{cell:.3f}" if isinstance(cell, float) else str(cell))))
    echo(
        f"\n{first.metric} of {first.a.short} with {first.b.short}. random: what random weights give; calibrated: 0 at "
        "random,\n1 at full agreement; p: by permuting the classes"
    )
    for line in accuracy_note({row["network"]: row["accuracy"] for row in rows if "accuracy" in row}):
        echo(line)
    pairs = [f"{name} = {find(wnid).name}" for name, wnid in zip(first.b.classes, first.b.ids or (), strict=True)]
    echo(f"meanings: {', '.join(pairs[:10])}" + (f" and {len(pairs) - 10} more" if len(pairs) > 10 else ""))


def _write(matrices: dict[str, ClassSimilarity], out: Path) -> None:
    from likewise.classes import matrices as draw
    from likewise.matrices.similarity import file_name

    for name, matrix in matrices.items():
        matrix.save(out / "matrices" / file_name(name))
    last = list(matrices.values())[-1]
    draw({name: matrix for name, matrix in matrices.items() if matrix.classes == last.classes}, out / "matrices.png")
