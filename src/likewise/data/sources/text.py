"""Text: sentences, or pairs of them, with a label; tokens are made by the network's own tokenizer.

SST-2 and MNLI are looked for as tables (`sst2/train.tsv.gz`), as GLUE and MultiNLI publish them (`SST-2/train.tsv`,
`MNLI/train.tsv`, `multinli_1.0_train.jsonl`), then asked of `datasets`, which looks into its own cache before it
downloads. `sentences` are made here, so that everything on text can be tried without a download.
"""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Mapping, Sequence
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
# The split's name here: the names of its files, ours first, and its name in `datasets`.
_SST2 = {
    "dev": (("sst2/dev.tsv.gz", "SST-2/dev.tsv"), "validation"),
    "train": (("sst2/train.tsv.gz", "SST-2/train.tsv"), "train"),
    "test": (("sst2/test_labelled.tsv.gz",), "test"),
}
_MNLI = {
    name: ((f"nli/mnli_{ours}.tsv.gz", f"MNLI/{glue}.tsv", f"multinli_1.0/multinli_1.0_{glue}.jsonl"), ours)
    for name, ours, glue in (
        ("dev", "validation_matched", "dev_matched"),
        ("train", "train", "train"),
        ("mismatched", "validation_mismatched", "dev_mismatched"),
    )
}
_PUBLISHED = {"premise": "sentence1", "hypothesis": "sentence2", "label": "gold_label"}  # our columns in MultiNLI's
_NO_LABEL = "-"  # of pairs that annotators did not agree on

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


@data_source(name="sentences", domain="text", splits=("test", "train"), built_in=True)
def sentences(split: str, root: str | None = None) -> Data:
    """Made-up sentences that praise or blame: 2,000 for training, 500 others for testing."""
    texts, labels = make_sentences(2500, seed=0)
    rows = slice(2000, None) if split == "test" else slice(2000)
    return Data(f"sentences:{split}", "text", texts[rows], labels[rows], _SENTIMENT)


def _glue(
    name: str, columns: tuple[str, ...], split: tuple[tuple[str, ...], str], root: str | None
) -> tuple[list[tuple[str, ...]], list[int]]:
    files, remote = split
    file = find(*files, *(Path(file).name for file in files), root=root)
    if file is not None:
        return _read(file, columns)
    load = require("datasets", extra="language", to=f"load {name}").load_dataset
    with downloading(name, f"{files[0]} (tab-separated, first line {' '.join((*columns, 'label'))})"):
        rows: Any = load("nyu-mll/glue", name, split=remote)
    return [tuple(row[column] for column in columns) for row in rows], list(rows["label"])


def _read(path: Path, columns: tuple[str, ...]) -> tuple[list[tuple[str, ...]], list[int]]:
    with reading(path, f"{path} is no whole table of text: {{reason}}. Fetch it again."):
        content = unpacked(path).decode("utf-8")
        if path.suffix == ".jsonl":
            rows = [dict(json.loads(line)) for line in content.split("\n") if line]
        else:
            rows = list(csv.DictReader(io.StringIO(content, newline=""), delimiter="\t", quoting=csv.QUOTE_NONE))
    published = bool(rows) and _PUBLISHED["label"] in rows[0]
    names = [_PUBLISHED[name] if published else name for name in (*columns, "label")]
    absent = [name for name in names if not rows or name not in rows[0]]
    if absent:
        raise InputError(
            f"{path} has no column {' and no '.join(absent)}. Its first line must name "
            f"{', '.join(names)}, with tabs between."
        )
    lines = [(line, row) for line, row in enumerate(rows, 2) if not published or row[names[-1]] != _NO_LABEL]
    texts = [_texts(row, names, path, line) for line, row in lines]
    return texts, [(_word if published else _label)(row, names[-1], path, line) for line, row in lines]


def _texts(row: Mapping[str, str | None], names: Sequence[str], path: Path, line: int) -> tuple[str, ...]:
    texts = [row.get(name) for name in names[:-1]]
    if any(text is None for text in texts):
        raise InputError(
            f"line {line} of {path} is too short. Give {', '.join(names)} in every line, with tabs between."
        )
    return tuple(str(text).strip() for text in texts)


def _label(row: Mapping[str, str], name: str, path: Path, line: int) -> int:
    try:
        return int(row[name])
    except (TypeError, ValueError) as error:
        raise InputError(f"line {line} of {path} has the label {row[name]!r}. Labels are whole numbers.") from error


def _word(row: Mapping[str, str], name: str, path: Path, line: int) -> int:
    if (word := row.get(name)) not in _INFERENCE:
        words = f"{', '.join(_INFERENCE)} and {_NO_LABEL} for none"
        raise InputError(f"line {line} of {path} has the label {word!r}. Labels are {words}.")
    return _INFERENCE.index(word)


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
