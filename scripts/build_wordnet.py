"""Build what ships with `likewise.wordnet` from the dict files of WordNet 3.0: the noun graph and the thesaurus.

    python scripts/build_wordnet.py /usr/share/wordnet

The files are those of Debian's `wordnet-base`, or of the archive WordNet-3.0.tar.gz. The same files
give the same bytes. Version 3.1 numbers its synsets otherwise, so ImageNet's ids would mean other things.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

HOME = Path(__file__).parent.parent / "src" / "likewise" / "wordnet"
NOUNS, THESAURUS = "nouns.npz", "thesaurus.npz"
SYNSETS = {"noun": 82_115, "verb": 13_767, "adj": 18_156, "adv": 3_621}  # of version 3.0
UPWARD = ("@", "@i")  # hypernym, and hypernym of an instance
PART_OF_KEY = {"1": "noun", "2": "verb", "3": "adj", "4": "adv", "5": "adj"}  # 5 is an adjective near another
Synset = tuple[int, list[str], list[int]]


def build(dict_dir: Path, folder: Path) -> None:
    """Write both files into a folder."""
    synsets = {pos: _synsets(dict_dir, pos) for pos in SYNSETS}
    numbers = {pos: _numbers(dict_dir / f"index.{pos}", synsets[pos]) for pos in SYNSETS}
    _write_nouns(synsets["noun"], numbers["noun"], folder / NOUNS)
    _write_thesaurus(dict_dir, synsets, numbers, folder / THESAURUS)


def _write_nouns(synsets: Sequence[Synset], numbers: Sequence[int], target: Path) -> None:
    """The arrays of all noun synsets, in the order of their offsets."""
    offsets, words, parents = zip(*synsets, strict=True)
    row = {offset: i for i, offset in enumerate(offsets)}
    arrays: dict[str, Any] = {
        "steps": np.diff(offsets, prepend=0).astype(np.uint16),
        "counts": np.array([len(offsets) for offsets in parents], np.uint8),
        "parents": np.array([row[offset] for offsets in parents for offset in offsets], np.int32),
        "words": _letters([" ".join(group) for group in words]),
        "numbers": np.array(numbers, np.uint8),
    }
    np.savez_compressed(target, **arrays)


def _write_thesaurus(
    dict_dir: Path, synsets: dict[str, list[Synset]], numbers: dict[str, list[int]], target: Path
) -> None:
    """The words of all other synsets, how often each word of any was met in its sense, and irregular forms."""
    tags = _tags(dict_dir / "cntlist.rev")
    others = [pos for pos in SYNSETS if pos != "noun"]
    met = [
        tags.get((pos, word.lower(), number), 0)
        for pos in SYNSETS
        for word, number in zip((word for _, words, _ in synsets[pos] for word in words), numbers[pos], strict=True)
    ]
    exceptions = ["\n".join(_lines(dict_dir / f"{pos}.exc")) for pos in SYNSETS]
    arrays: dict[str, Any] = {
        "sizes": np.array([len(synsets[pos]) for pos in others], np.int32),
        "words": _letters([" ".join(words) for pos in others for _, words, _ in synsets[pos]]),
        "numbers": np.array([number for pos in others for number in numbers[pos]], np.uint8),
        "met": np.array(met, np.uint16),
        "exceptions": _letters(exceptions, between="\n\n"),
    }
    np.savez_compressed(target, **arrays)


def _letters(texts: Sequence[str], between: str = "\n") -> Any:
    return np.frombuffer(between.join(texts).encode("ascii"), np.uint8)


def _lines(path: Path) -> list[str]:
    if not path.exists():
        raise SystemExit(f"{path} is not there. Give the dict folder of WordNet 3.0.")
    return path.read_text(encoding="ascii").splitlines()


def _synsets(dict_dir: Path, pos: str) -> list[Synset]:
    """All synsets of a part of speech, in the order of their offsets."""
    lines = [line for line in _lines(dict_dir / f"data.{pos}") if not line.startswith("  ")]
    if len(lines) != SYNSETS[pos]:
        raise SystemExit(
            f"{dict_dir} has {len(lines)} {pos} synsets, not the {SYNSETS[pos]} of WordNet 3.0. "
            "Give the dict folder of that version."
        )
    return [_synset(line) for line in lines]


def _synset(line: str) -> Synset:
    """Offset, words and offsets of the parents: `02084071 05 n 03 dog 0 ... 023 @ 02083346 n 0000`.

    What is behind a word in brackets says where an adjective may stand, as in `awake(p)`.
    """
    fields = line.split(" | ")[0].split()
    end = 4 + 2 * int(fields[3], 16)
    pointers = fields[end + 1 : end + 1 + 4 * int(fields[end])]
    upward = [int(offset) for symbol, offset in zip(pointers[::4], pointers[1::4], strict=True) if symbol in UPWARD]
    return int(fields[0]), [word.partition("(")[0] for word in fields[4:end:2]], upward


def _numbers(path: Path, synsets: Sequence[Synset]) -> list[int]:
    """Which sense of every word its synset is: `mouse n 4 ... 02330245 14289387 ...`."""
    senses = {}
    for line in _lines(path):
        if not line.startswith("  "):
            fields = line.split()
            offsets = fields[-int(fields[2]) :]
            senses[fields[0]] = {int(offset): i for i, offset in enumerate(offsets, 1)}
    return [senses[word.lower()][offset] for offset, words, _ in synsets for word in words]


def _tags(path: Path) -> dict[tuple[str, str, int], int]:
    """How often a sense was met in texts that were read for it: `mouse%1:05:00:: 1 4`."""
    tags = {}
    for line in _lines(path):
        key, number, count = line.split()
        lemma, _, rest = key.partition("%")
        tags[PART_OF_KEY[rest[0]], lemma, int(number)] = int(count)
    return tags


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("dict_dir", type=Path, help="the folder with data.noun, index.noun and their like")
    parser.add_argument("--out", type=Path, default=HOME, help="the folder to write to, if not the package")
    options = parser.parse_args()
    build(options.dict_dir, options.out)
