"""Other words for a word: the synsets of all nouns, verbs, adjectives and adverbs of WordNet 3.0.

The nouns are those of `nouns`; the words of the other synsets, how often every sense was met in tagged texts, and the
irregular forms are in `thesaurus.npz` (318 KB, built by `scripts/build_wordnet.py`, licence beside it). Both are read
at the first question, which takes 0.3 s, once; each further word takes microseconds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

import numpy as np

from likewise.wordnet.nouns import Ints, lexicon

_PARTS = range(4)  # noun, verb, adjective, adverb
_NOUN = 0
# What a form may end in, and what its base ends in instead; adverbs have irregular forms alone.
_ENDINGS: tuple[tuple[tuple[str, str], ...], ...] = (
    (
        *(("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh")),
        *(("men", "man"), ("ies", "y")),
    ),
    (("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")),
    (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    (),
)


@dataclass(frozen=True, eq=False)
class Thesaurus:
    """All synsets, one line of words each, and where each word stands among the words of all lines.

    `bounds` are the places where verbs, adjectives and adverbs begin.
    """

    lines: list[str]
    owners: Ints
    numbers: Ints
    met: Ints
    bounds: list[int]
    places: dict[str, list[int]]
    irregular: tuple[dict[str, list[str]], ...]

    def places_of(self, word: str, speech: int) -> list[int]:
        """Where a word stands as this part of speech."""
        return [position for position in self.places.get(word, ()) if self.part_of_speech(position) == speech]

    def part_of_speech(self, position: int) -> int:
        """The part of speech of a word by its place."""
        return bisect_right(self.bounds, position)

    def rank(self, position: int) -> tuple[int, int, int]:
        """Senses that were met more often come first; of others, WordNet's order decides."""
        return -int(self.met[position]), self.part_of_speech(position), int(self.numbers[position])

    def bases(self, form: str) -> Iterator[tuple[int, str]]:
        """The base forms of a form that are in WordNet, itself among them, each with its part of speech."""
        for speech in _PARTS:
            for base in dict.fromkeys((form, *self._bases(form, speech))):
                if self.places_of(base, speech):
                    yield speech, base

    def _bases(self, form: str, speech: int) -> list[str]:
        if form in self.irregular[speech]:
            return self.irregular[speech][form]
        if speech == _NOUN and (form.endswith("ss") or len(form) < 3):
            return []  # `boss` is no plural, nor is `as`
        return [form.removesuffix(old) + new for old, new in _ENDINGS[speech] if form.endswith(old)]


@lru_cache(maxsize=65_536)
def synonyms(word: str) -> tuple[str, ...]:
    """The words and phrases that share a synset with a word, of any part of speech, in lower case.

    Those of the most frequent sense come first: by how often WordNet's tagged texts have it, then nouns before verbs,
    adjectives and adverbs, then by WordNet's number of the sense. An inflected form has the synonyms of its base
    forms too, which are found as WordNet finds them: in its lists of irregular forms, else by its endings (`-s`, `-ed`,
    `-ing`, `-er`, ... are taken off where a known word remains). Synonyms are given as base forms: none is inflected
    in turn. The word itself and its base forms are left out. A word without synonyms, or that WordNet does not have,
    gives none.

    Args:
        word: A word or phrase of any part of speech.

    Example:
        >>> synonyms("films")[:4], synonyms("superb")
        (('movie', 'picture', 'moving picture', 'moving-picture show'), ('brilliant',))
        >>> synonyms("better")[:3], synonyms("the")
        (('full', 'easily', 'estimable'), ())
    """
    words, form = thesaurus(), word.strip().lower().replace(" ", "_")
    bases = list(words.bases(form))
    positions = {position for speech, base in bases for position in words.places_of(base, speech)}
    left_out = {form, *(base for _, base in bases)}
    phrases: dict[str, None] = {}
    for position in sorted(positions, key=words.rank):
        phrases |= dict.fromkeys(words.lines[words.owners[position]].split(" "))
    return tuple(phrase.replace("_", " ") for phrase in phrases if phrase not in left_out)


@cache
def thesaurus() -> Thesaurus:
    """The words of all parts of speech, read once."""
    nouns = lexicon()
    with np.load(str(files("likewise.wordnet") / "thesaurus.npz"), allow_pickle=False) as stored:
        others = stored["words"].tobytes().decode("ascii").split("\n")
        exceptions = stored["exceptions"].tobytes().decode("ascii").split("\n\n")
        sizes, numbers, met = stored["sizes"], stored["numbers"], stored["met"]
    text = "\n".join((*nouns.lines, *others)).lower()
    lines = text.split("\n")
    lengths = np.array([line.count(" ") + 1 for line in lines])
    firsts = np.concatenate([[0], np.cumsum(lengths)])
    bounds = firsts[len(nouns.lines) + np.concatenate([[0], np.cumsum(sizes[:-1])])].tolist()
    places: dict[str, list[int]] = {}
    for position, word in enumerate(text.replace("\n", " ").split(" ")):
        places.setdefault(word, []).append(position)
    irregular = tuple(
        {form: bases for form, *bases in (line.split(" ") for line in table.split("\n"))} for table in exceptions
    )
    owners = np.repeat(np.arange(len(lines)), lengths)
    numbers = np.concatenate([nouns.numbers, numbers])
    return Thesaurus(lines, owners, numbers, met, bounds, places, irregular)
