"""Labelled sentences made here, so that everything on text can be tried without a download.

A sentence praises or blames something: `the acting was truly superb .` Some grant the opposite
first (`although the plot was dull , the acting was superb .`) and some deny (`the score was not
dull .`), so that counting good and bad words is not quite enough, and lengths differ. The label is
that of the main clause.
"""

from __future__ import annotations

import random
from itertools import product

_THINGS = (
    "acting",
    "story",
    "plot",
    "score",
    "camera",
    "dialogue",
    "ending",
    "cast",
    "pacing",
    "humour",
    "script",
    "music",
    "scenery",
    "opening",
    "finale",
    "editing",
    "voice",
    "lighting",
)
_DEGREES = ("", "quite ", "truly ", "rather ", "often ", "simply ")
_PRAISE = ("superb", "moving", "clever", "charming", "funny", "gripping", "warm", "honest", "fresh")
_BLAME = ("dull", "clumsy", "tedious", "shallow", "stale", "bleak", "awkward", "muddled", "noisy")
_WORDS = (_BLAME, _PRAISE)  # by label
_FRAMES = ("the {} was {} .", "i found the {} {} .", "what {} : {} !", "its {} is {} .")


def sentences(n: int, seed: int) -> tuple[list[str], list[int]]:
    """`n` different sentences and their labels (1 praises, 0 blames), drawn by the seed.

    >>> texts, labels = sentences(3, seed=0)
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
