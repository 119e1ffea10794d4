"""`likewise upgrade`: what a vector database loses when its embedding model changes, and what to do."""

from __future__ import annotations

import json
from typing import Annotated, Any

from typer import Argument, Option

from likewise.cli._options import seed_option
from likewise.cli._print import echo, refuse_unused
from likewise.cli._words import array_of, labels_of


def upgrade(
    old: Annotated[str, Argument(help="Vectors of items by the old model: .npy, .npz:KEY or .safetensors:KEY.")],
    new: Annotated[str, Argument(help="Vectors of the same items by the new model, row by row.")],
    queries: Annotated[
        tuple[str, str] | None, Option(help="Two files, queries by the old and the new model; by default items are.")
    ] = None,
    k: Annotated[list[int] | None, Option("--k", help="How many neighbours; by default 1, 10, 100.", min=1)] = None,
    recall: Annotated[float, Option(help="The share of the 10 nearest that is enough.", min=0)] = 0.9,
    threshold: Annotated[float | None, Option(help="The old score above which a hit counts.")] = None,
    labels: Annotated[str | None, Option(help="One label per item: thresholds of the same precision.")] = None,
    query_labels: Annotated[str | None, Option(help="One label per query.")] = None,
    seed: Annotated[int, seed_option("Draws queries, and the parts by which maps are tested.")] = 0,
    as_json: Annotated[bool, Option("--json", help="For programs.")] = False,
) -> None:
    """Change the embedding model of a vector database. Says whether to keep, map or embed again the vectors."""
    from likewise.analysis import upgrade

    if queries is None or labels is None:
        refuse_unused({"--query-labels": query_labels}, "without --queries and --labels")
    result = upgrade(
        _vectors(old),
        _vectors(new),
        queries=None if queries is None else (_vectors(queries[0]), _vectors(queries[1])),
        k=k or None,
        recall=recall,
        threshold=threshold,
        labels=None if labels is None else labels_of(labels),
        query_labels=None if query_labels is None else labels_of(query_labels),
        seed=seed,
    )
    echo(json.dumps(result.record()) if as_json else str(result))


def _vectors(file: str) -> Any:
    """The array of a file under the file's name."""
    from likewise.views import Activations

    return Activations(array_of(file), name=file)
