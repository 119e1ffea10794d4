"""`likewise wordnet`: the senses of a noun, or how alike several nouns are."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from likewise.cli._print import echo
from likewise.cli.measures import table

if TYPE_CHECKING:
    from likewise.wordnet import Synset


def wordnet(
    nouns: Annotated[list[str], Argument(help="Ids such as n02084071, names such as dog.n.01, or words.")],
    as_json: Annotated[bool, Option("--json", help="For programs.")] = False,
) -> None:
    """List the senses of a noun, or say how alike nouns are."""
    from likewise.wordnet import find, senses

    if len(nouns) > 1:
        _print_similarity([find(noun) for noun in nouns], as_json)
        return
    synsets = senses(nouns[0])
    if as_json:
        echo(json.dumps([asdict(sense) for sense in synsets], indent=1))
        return
    rows = [(synset.wnid, synset.name, ", ".join(synset.parents), ", ".join(synset.words)) for synset in synsets]
    echo(table(("id", "name", "a kind of", "words"), rows))


def _print_similarity(synsets: list[Synset], as_json: bool) -> None:
    """The three measures: a line each for a pair, a table each for more."""
    from likewise.wordnet import MEASURES, similarity

    names = [synset.name for synset in synsets]
    values = {measure: similarity(names, measure) for measure in MEASURES}
    if as_json:
        matrices = {measure: matrix.tolist() for measure, matrix in values.items()}
        echo(json.dumps({"synsets": [asdict(synset) for synset in synsets], **matrices}))
        return
    if len(names) == 2:
        header = ("measure", " - ".join(names))
        echo(table(header, [(key, f"{matrix[0, 1]:.4f}") for key, matrix in values.items()]))
        return
    tables = []
    for measure, matrix in values.items():
        rows = [(name, *(f"{value:.4f}" for value in row)) for name, row in zip(names, matrix.tolist(), strict=True)]
        tables.append(table((measure, *names), rows))
    echo("\n\n".join(tables))
