"""Text: sentences, or pairs of them, with a label; tokens are made by the network's own tokenizer.

SST-2 and MNLI are looked for as tables (`sst2/train.tsv.gz`), then asked of `datasets`, which looks
into its own cache before it downloads. `sentences` are made here, so that everything on text can be tried without a
download.
"""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from likewise._base.files import reading
from likewise._base.optional import require
from likewise.data.address import data_source
from likewise.data.inputs import Data
from likewise.data.sources.locations import downloading, find
from likewise.data.sources.tables import unpacked
from likewise.errors import InputError

_SENTIMENT = ("negative", "positive")
_INFERENCE = ("entailment", "neutral", "contradiction")
# The split's name here: the table's name, and the name at GLUE.
_SST2 = {"dev": ("sst2/dev", "validation"), "train": ("sst2/train", "train"), "test": ("sst2/test_labelled", "test")}
_MNLI = {
    "dev": ("nli/mnli_validation_matched", "validation_matched"),
    "train": ("nli/mnli_train", "train"),
    "mismatched": ("nli/mnli_validation_mismatched", "validation_mismatched"),
}

# Made-up sentences praise or blame something. Some grant the opposite first and some deny, so that counting good and
# bad words is not quite enough, and lengths differ. The label is that of the main clause.
_NOUNS = """
acting story plot score camera dialogue ending cast pacing humour script music scenery opening finale editing voice
lighting
"""
_THINGS = tuple(_NOUNS.split())
_DEGREES = ("", "quite ", "truly ", "rather ", "often ", "simply ")
_PRAISE = ("superb", "moving", "clever", "charming", "funny", "gripping", "warm", "honest", "fresh")
_BLAME = ("dull", "clumsy", "tedious", "shallow", "stale", "bleak", "awkward", "muddled", "noisy")
_WORDS = (_BLAME, _PRAISE)  # by label
_FRAMES = ("the {} was {} .", "i found the {} {} .", "what {} : {} !", "its {} is {} .")


@data_source(name="sst2", domain="text", splits=tuple(_SST2))
def sst2(split: str, root: str | None = None) -> Data:
    """Phrases from film reviews: 67,349 for training, 872 for development; is it praise?"""
    texts, labels = _glue("sst2", ("sentence",), _SST2[split], root)
    return Data(f"sst2:{split}", "text", [text for (text,) in texts], labels, _SENTIMENT)


@data_source(name="mnli", domain="text", splits=tuple(_MNLI))
def mnli(split: str, root: str | None = None) -> Data:
    """Pairs of sentences: 392,702 for training, 9,815 for development; does one follow?"""
    pairs, labels = _glue("mnli", ("premise", "hypothesis"), _MNLI[split], root)
    return Data(f"mnli:{split}", "text", pairs, labels, _INFERENCE)


@data_source(name="sentences", domain="text", splits=("test", "train"))
def sentences(split: str, root: str | None = None) -> Data:
    """Made-up sentences that praise or blame: 2,000 for training, 500 others for testing."""
    texts, labels = make_sentences(2500, seed=0)
    rows = slice(2000, None) if split == "test" else slice(2000)
    return Data(f"sentences:{split}", "text", texts[rows], labels[rows], _SENTIMENT)


def _glue(
    name: str, columns: tuple[str, ...], split: tuple[str, str], root: str | None
) -> tuple[list[tuple[str, ...]], list[int]]:
    table, remote = f"{split[0]}.tsv.gz", split[1]
    file = find(table, Path(table).name, root=root)
    if file is not None:
        return _read(file, columns)
    load = require("datasets", extra="language", to=f"load {name}").load_dataset
    with downloading(name, f"{table} (tab-separated, first line {' '.join((*columns, 'label'))})"):
        rows: Any = load("nyu-mll/glue", name, split=remote)
    return [tuple(row[column] for column in columns) for row in rows], list(rows["label"])


def _read(path: Path, columns: tuple[str, ...]) -> tuple[list[tuple[str, ...]], list[int]]:
    with reading(path, f"{path} is no whole table of text: {{reason}}. Fetch it again."):
        text = io.StringIO(unpacked(path).decode("utf-8"), newline="")
        rows = list(csv.DictReader(text, delimiter="\t", quoting=csv.QUOTE_NONE))
    absent = [column for column in (*columns, "label") if not rows or column not in rows[0]]
    if absent:
        raise InputError(
            f"{path} has no column {' and no '.join(absent)}. Its first line must name "
            f"{', '.join((*columns, 'label'))}, with tabs between."
        )
    texts = [_texts(row, columns, path, line) for line, row in enumerate(rows, 2)]
    return texts, [_label(row, path, line) for line, row in enumerate(rows, 2)]


def _texts(row: Mapping[str, str | None], columns: tuple[str, ...], path: Path, line: int) -> tuple[str, ...]:
    texts = [row[column] for column in columns]
    if any(text is None for text in texts):
        raise InputError(
            f"line {line} of {path} is too short. Give {', '.join((*columns, 'label'))} in every "
            "line, with tabs between."
        )
    return tuple(str(text).strip() for text in texts)


def _label(row: Mapping[str, str], path: Path, line: int) -> int:
    try:
        return int(row["label"])
    except (TypeError, ValueError) as error:
        raise InputError(f"line {line} of {path} has the label {row['label']!r}. Labels are whole numbers.") from error


def make_sentences(n: int, seed: int) -> tuple[list[str], list[int]]:
    """`n` different made-up sentences and their labels (1 praises, 0 blames), drawn by the seed.

    >>> texts, labels = make_sentences(3, seed=0)
    >>> texts[0], labels[0]
    ('i found the voice clumsy .', 0)
    """
    draw = random.Random(seed)
    plain = list(product(_THINGS, _DEGREES, (0, 1), range(9), _FRAMES))
    labels: dict[str, int] = {}
    while len(labels) < n:
        thing, degree, label, word, frame = draw.choice(plain)
        kind = draw.random()
        if kind < 0.15:  # denial turns the word's sense round
            text = frame.format(thing, f"not {_WORDS[1 - label][word]}")
        elif kind < 0.35:
            other, against = draw.choice(_THINGS), draw.choice(_WORDS[1 - label])
            main = f"the {thing} was {degree}{_WORDS[label][word]} ."
            text = f"although the {other} was {against} , {main}"
        else:
            text = frame.format(thing, degree + _WORDS[label][word])
        labels[text] = label
    return list(labels), list(labels.values())
