"""The nouns of WordNet 3.0: which synset stands under which, and what each is called.

They ship as arrays in `nouns.npz` (built by `scripts/build_wordnet.py`, licence beside it), because
ImageNet's ids are offsets of exactly this version and a graph of 82,115 synsets reads in milliseconds.
The graph and the words are read apart: most questions by id never need a word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import numpy as np

from likewise.errors import InputError, UnknownNameError, did_you_mean

Ints = np.ndarray[Any, np.dtype[np.integer[Any]]]
_ID = re.compile(r"n\d{8}")
_NAME = re.compile(r"(.+)\.([nvasr])\.(\d+)")


@dataclass(frozen=True)
class Synset:
    """One sense of a noun.

    Attributes:
        wnid: Its id, such as "n02084071".
        name: Its name, such as "dog.n.01".
        words: All words for it.
        parents: The names of the synsets above it.
    """

    wnid: str
    name: str
    words: tuple[str, ...]
    parents: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Graph:
    """Rows are synsets; the parents of row i are `parents[starts[i]:starts[i + 1]]`."""

    offsets: Ints
    starts: Ints
    parents: Ints

    @cached_property
    def nearest(self) -> Ints:
        """Steps to the root by the shortest way, for every row."""
        return self._depths(np.minimum)

    @cached_property
    def deepest(self) -> Ints:
        """Steps to the root by the longest way, for every row."""
        return self._depths(np.maximum)

    def _depths(self, choose: np.ufunc) -> Ints:
        # Row 0 is the root, the only row without parents. A row is settled one round after its
        # parents are, so there are as many rounds as levels.
        depths, settled = np.zeros(len(self.offsets), np.int32), False
        while not settled:
            below = choose.reduceat(depths[self.parents], self.starts[1:-1]) + 1
            settled = np.array_equal(below, depths[1:])
            depths[1:] = below
        return depths

    def above(self, row: int) -> list[int]:
        """The rows of a synset's parents."""
        return self.parents[self.starts[row] : self.starts[row + 1]].tolist()


@dataclass(frozen=True, eq=False)
class Lexicon:
    """The words of every row, in WordNet's order, and which sense of the word the row is."""

    lines: list[str]
    numbers: Ints
    firsts: Ints

    def name(self, row: int) -> str:
        """The first word and the number of its sense, such as `dog.n.01`."""
        return f"{self.lines[row].split(' ', 1)[0].lower()}.n.{self.numbers[self.firsts[row]]:02d}"

    @cached_property
    def rows(self) -> dict[str, list[int]]:
        """For every word, the rows it may mean, the first sense first."""
        words = " ".join(self.lines).lower().split(" ")
        owners = np.repeat(np.arange(len(self.lines)), np.diff(self.firsts, append=len(words)))
        rows: dict[str, list[int]] = {}
        for at in np.argsort(self.numbers, kind="stable").tolist():
            senses = rows.setdefault(words[at], [])
            if owners[at] not in senses[-1:]:  # `earth` and `Earth` are one word of one synset
                senses.append(int(owners[at]))
        return rows


@cache
def graph() -> Graph:
    """The noun graph, read once."""
    with _file() as stored:
        starts = np.concatenate([[0], np.cumsum(stored["counts"], dtype=np.int64)])
        return Graph(np.cumsum(stored["steps"], dtype=np.int64), starts, stored["parents"])


@cache
def lexicon() -> Lexicon:
    """The words of all nouns, read once."""
    with _file() as stored:
        letters, numbers = stored["words"], stored["numbers"]
    ends = letters[(letters == ord(" ")) | (letters == ord("\n"))]
    firsts = np.concatenate([[0], np.flatnonzero(ends == ord("\n")) + 1])
    return Lexicon(letters.tobytes().decode("ascii").split("\n"), numbers, firsts)


def _file() -> Any:
    return np.load(str(files("likewise.wordnet") / "nouns.npz"), allow_pickle=False)


def find(name: str) -> Synset:
    """The synset of an id, of a name, or of a word that has one noun sense only.

    Args:
        name: An id, a name such as "dog.n.01", or a word.

    Raises:
        UnknownNameError: There is no such noun.

    Example:
        >>> find("n02123045")
        Synset(wnid='n02123045', name='tabby.n.01', words=('tabby', 'tabby cat'), parents=('domestic_cat.n.01',))
        >>> find("tabby cat").name, find("dog.n.01").parents
        ('tabby.n.01', ('canine.n.02', 'domestic_animal.n.01'))
    """
    return synset(row_of(name))


def senses(word: str) -> list[Synset]:
    """All noun senses of a word, WordNet's first sense first; an id or a name is one sense already.

    Args:
        word: A noun; spaces or underscores between its words.

    Raises:
        UnknownNameError: There is no such noun.

    Example:
        >>> [sense.name for sense in senses("mouse")]
        ['mouse.n.01', 'shiner.n.01', 'mouse.n.03', 'mouse.n.04']
    """
    if _ID.fullmatch(word) or _NAME.fullmatch(word):
        return [find(word)]
    rows = lexicon().rows.get(_spelled(word))
    if rows is None:
        raise UnknownNameError(f"no noun {word!r} in WordNet 3.0.{did_you_mean(_spelled(word), nearby(word))}")
    return [synset(row) for row in rows]


def synset(row: int) -> Synset:
    """What is known of a row."""
    return Synset(
        f"n{graph().offsets[row]:08d}",
        lexicon().name(row),
        tuple(word.replace("_", " ") for word in lexicon().lines[row].split(" ")),
        tuple(lexicon().name(parent) for parent in graph().above(row)),
    )


def rows_of(synsets: Sequence[str]) -> Ints:
    """The rows of ids, names and words, mixed as they come."""
    if isinstance(synsets, str):
        raise InputError(f"the synsets are one text, {synsets!r}. Give a list of ids or names.")
    return np.array([row_of(name) for name in synsets], np.int64)


def row_of(name: str) -> int:
    """The row of an id, a name, or a word with one sense."""
    if _ID.fullmatch(name):
        return _row_of_id(name)
    if parts := _NAME.fullmatch(name):
        if parts[2] != "n":
            raise InputError(f"the synset {name!r} is no noun. Only nouns can be compared.")
        return _row_of_name(name, _spelled(parts[1]), int(parts[3]))
    meanings = senses(name)
    if len(meanings) > 1:
        kinds = ", ".join(f"{sense.name} (a kind of {' and '.join(sense.parents)})" for sense in meanings)
        raise InputError(
            f"the noun {name!r} has {len(meanings)} senses in WordNet 3.0: {kinds}. "
            "Give the name or the id of the one that is meant."
        )
    return lexicon().rows[_spelled(name)][0]


def _row_of_id(wnid: str) -> int:
    row = int(np.searchsorted(graph().offsets, int(wnid[1:])))
    if row == len(graph().offsets) or graph().offsets[row] != int(wnid[1:]):
        raise UnknownNameError(
            f"no noun of WordNet 3.0 has the id {wnid!r}. Other versions number their nouns "
            "otherwise: give an id of 3.0, as ImageNet's are, or a name such as dog.n.01."
        )
    return row


def _row_of_name(name: str, word: str, number: int) -> int:
    rows = lexicon().rows.get(word)
    if rows is None:
        synsets = [f"{near}.n.{number:02d}" for near in nearby(word)]
        raise UnknownNameError(f"no synset {name!r} in WordNet 3.0.{did_you_mean(name, synsets)}")
    if not 0 < number <= len(rows):
        last = f"{word}.n.{len(rows):02d}"
        raise UnknownNameError(f"no synset {name!r} in WordNet 3.0: the senses of {word!r} end with {last!r}.")
    return rows[number - 1]


def _spelled(word: str) -> str:
    return word.strip().lower().replace(" ", "_")


def nearby(word: str) -> list[str]:
    """Words that a slip of the pen may have meant; comparing with all 117,000 would take seconds."""
    spelling = _spelled(word)
    return [other for other in lexicon().rows if other[0] == spelling[:1] and abs(len(other) - len(spelling)) < 3]
