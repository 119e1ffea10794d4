"""Build the noun graph that ships with `likewise.wordnet` from the dict files of WordNet 3.0.

    python scripts/build_wordnet.py /usr/share/wordnet

The files are those of Debian's `wordnet-base`, or of the archive WordNet-3.0.tar.gz. The same files
give the same bytes. Version 3.1 numbers its synsets otherwise, so ImageNet's ids would mean other things.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

HOME = Path(__file__).parent.parent / "src" / "likewise" / "wordnet" / "nouns.npz"
SYNSETS = 82_115  # nouns of version 3.0
UPWARD = ("@", "@i")  # hypernym, and hypernym of an instance


def build(dict_dir: Path, target: Path) -> None:
    """Write the arrays of all noun synsets, in the order of their offsets."""
    lines = [line for line in _lines(dict_dir / "data.noun") if not line.startswith("  ")]
    if len(lines) != SYNSETS:
        raise SystemExit(
            f"{dict_dir} has {len(lines)} noun synsets, not the {SYNSETS} of WordNet 3.0. "
            "Give the dict folder of that version."
        )
    offsets, words, parents = zip(*map(_synset, lines), strict=True)
    row = {offset: i for i, offset in enumerate(offsets)}
    numbers = _sense_numbers(dict_dir / "index.noun")
    arrays: dict[str, Any] = {
        "steps": np.diff(offsets, prepend=0).astype(np.uint16),
        "counts": np.array([len(each) for each in parents], np.uint8),
        "parents": np.array([row[offset] for each in parents for offset in each], np.int32),
        "words": np.frombuffer("\n".join(" ".join(each) for each in words).encode(), np.uint8),
        "numbers": np.array(
            [numbers[word.lower()][at] for at, each in zip(offsets, words, strict=True) for word in each], np.uint8
        ),
    }
    np.savez_compressed(target, **arrays)


def _lines(path: Path) -> list[str]:
    if not path.exists():
        raise SystemExit(f"{path} is not there. Give the dict folder of WordNet 3.0.")
    return path.read_text(encoding="ascii").splitlines()


def _synset(line: str) -> tuple[int, list[str], list[int]]:
    """Offset, words and offsets of the parents: `02084071 05 n 03 dog 0 ... 023 @ 02083346 n 0000`."""
    fields = line.split(" | ")[0].split()
    end = 4 + 2 * int(fields[3], 16)
    pointers = fields[end + 1 : end + 1 + 4 * int(fields[end])]
    upward = [int(offset) for symbol, offset in zip(pointers[::4], pointers[1::4], strict=True) if symbol in UPWARD]
    return int(fields[0]), fields[4:end:2], upward


def _sense_numbers(path: Path) -> dict[str, dict[int, int]]:
    """For every lemma, the number of its sense by offset: `mouse n 4 ... 02330245 14289387 ...`."""
    senses = {}
    for line in _lines(path):
        if not line.startswith("  "):
            fields = line.split()
            offsets = fields[-int(fields[2]) :]
            senses[fields[0]] = {int(offset): i for i, offset in enumerate(offsets, 1)}
    return senses


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("dict_dir", type=Path, help="the folder with data.noun and index.noun")
    parser.add_argument("--out", type=Path, default=HOME, help="where to write, if not in the package")
    given = parser.parse_args()
    build(given.dict_dir, given.out)
