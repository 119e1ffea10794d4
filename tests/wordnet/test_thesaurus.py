"""Synonyms: of every part of speech, of inflected words, and in the order of how frequent a sense is."""

from __future__ import annotations

import random
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from likewise.wordnet import synonyms
from likewise.wordnet.thesaurus import thesaurus
from tests.wordnet.helpers import dict_dir


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("superb", ["brilliant"]),  # adjective
        ("clever", ["cagey", "cagy", "canny", "apt", "cunning", "ingenious"]),
        ("quickly", ["rapidly", "speedily", "chop-chop", "apace", "promptly", "quick", "cursorily"]),  # adverb
        ("enjoy", ["bask", "relish", "savor", "savour", "love", "delight", "revel"]),  # verb
        ("actor", ["histrion", "player", "thespian", "role player", "doer", "worker"]),  # noun
        ("gorgeous", []),
        ("the", []),
        ("xyzzy", []),
        ("", []),
    ],
)
def test_words_have_these_synonyms(word: str, expected: list[str]) -> None:
    assert list(synonyms(word)) == expected


def test_all_parts_of_speech_count_the_most_frequent_sense_first() -> None:
    # dull: the adjective `boring, tedious, ...` was met twice, the verb `numb, blunt` never
    found = synonyms("dull")
    assert found.index("boring") < found.index("blunt")
    assert {"tedious", "pall", "numb", "slow"} <= set(found)
    # film: the noun `movie` (met 38 times) before the verb `shoot, take` (met twice)
    assert synonyms("film")[0] == "movie"
    assert synonyms("film").index("movie") < synonyms("film").index("shoot")


@pytest.mark.parametrize(
    ("form", "base", "synonym"),
    [
        ("films", "film", "movie"),  # by its ending
        ("geese", "goose", "fathead"),  # by the list of irregular forms
        ("enjoyed", "enjoy", "relish"),
        ("churches", "church", "church service"),
        ("cities", "city", "metropolis"),
        ("making", "make", "produce"),
        ("better", "good", "respectable"),
        ("cleverest", "clever", "ingenious"),
        ("Films", "film", "movie"),
    ],
)
def test_an_inflected_word_has_the_synonyms_of_its_base_but_not_the_base(form: str, base: str, synonym: str) -> None:
    assert synonym in synonyms(form)
    assert synonym in synonyms(base)
    assert {form.lower(), base}.isdisjoint(synonyms(form))


def test_what_only_looks_like_a_plural_is_none() -> None:
    assert "bos" in thesaurus().places  # a word of its own, cattle
    assert "cattle" not in synonyms("boss")
    assert "angstrom" in synonyms("a")
    assert "angstrom" not in synonyms("as")


def test_phrases_are_found_and_given_with_spaces_in_lower_case() -> None:
    assert synonyms("motion picture") == synonyms("Motion_Picture")
    assert "moving picture" in synonyms("motion picture")
    assert all(word == word.lower() and "_" not in word for word in synonyms("earth"))


def test_as_many_words_and_senses_are_there_as_in_wordnet_3() -> None:
    known = thesaurus()
    assert (len(known.lines), len(known.owners), len(known.places)) == (117_659, 206_978, 147_306)
    assert len(known.met) == len(known.numbers) == len(known.owners)
    assert list(map(len, known.irregular)) == [2050, 2401, 1489, 7]


def test_synonyms_need_no_torch() -> None:
    code = (
        "import sys; from likewise.wordnet import synonyms; assert synonyms('films'); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


_ENDINGS = {
    "noun": "s: ses:s xes:x zes:z ches:ch shes:sh men:man ies:y",
    "verb": "s: ies:y es:e es: ed:e ed: ing:e ing:",
    "adj": "er: est: er:e est:e",
    "adv": "",
}


@cache
def dict_files() -> dict[str, tuple[dict[str, set[str]], dict[str, list[str]]]]:
    """By part of speech: the words beside each word in any synset, and the irregular forms; a plain reading."""
    return {part: read_part(dict_dir(), part) for part in _ENDINGS}


def read_part(folder: Path, part: str) -> tuple[dict[str, set[str]], dict[str, list[str]]]:
    beside: dict[str, set[str]] = {}
    for line in (folder / f"data.{part}").read_text().splitlines():
        if line.startswith("  "):
            continue
        fields = line.split()
        words = [fields[4 + 2 * i].split("(")[0].lower() for i in range(int(fields[3], 16))]
        for word in words:
            beside.setdefault(word, set()).update(words)
    irregular = {}
    for line in (folder / f"{part}.exc").read_text().splitlines():
        form, *bases = line.split()
        irregular[form] = bases
    return beside, irregular


def plain_synonyms(word: str) -> set[str]:
    found, bases = set(), {word}
    for part, (beside, irregular) in dict_files().items():
        forms = [word]
        if word in irregular:
            forms += irregular[word]
        elif not (part == "noun" and (word.endswith("ss") or len(word) <= 2)):
            for ending in _ENDINGS[part].split():
                old, new = ending.split(":")
                if word.endswith(old):
                    forms.append(word[: len(word) - len(old)] + new)
        for form in forms:
            if form in beside:
                found |= beside[form]
                bases.add(form)
    return {each.replace("_", " ") for each in found - bases}


def test_synonyms_are_those_of_the_dict_files_read_plainly() -> None:
    dict_dir()
    draw = random.Random(0)
    words = draw.sample(sorted(thesaurus().places), 2000)
    irregular = [form for part in thesaurus().irregular for form in draw.sample(sorted(part), 7)]
    inflected = [word + ending for word in words[:500] for ending in ("s", "ed", "ing", "er", "est", "es")]
    for word in [*words, *irregular, *inflected]:
        assert set(synonyms(word)) == plain_synonyms(word), word
