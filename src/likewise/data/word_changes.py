"""Easy data augmentation of texts: synonyms for words, more of them, other orders, fewer words.

A text is cut into words and the gaps between them. Only words move: punctuation stays where it is. What happens to a
text follows from the text and the seed, so it is the same in any order and any part of the data.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import lru_cache, partial

from likewise.data.changes import change_first, check_change, texts_of, with_change, with_inputs
from likewise.data.inputs import Data
from likewise.wordnet import synonyms

_FUNCTION_WORDS = """
a about above after again against ain all also am an and any are aren as at be because been before being below between
both but by ca can could couldn d did didn do does doesn doing don down during each few for from further had hadn has
hasn have haven having he her here hers herself him himself his how i if in into is isn it its itself just ll m may me
might mightn more most must mustn my myself n't needn no nor not now of off on once only or other our ours ourselves
out over own re s same shall shan she should shouldn so some such t than that the their theirs them themselves then
there these they this those through to too under until up us ve very was wasn we were weren what when where which
while who whom why will with wo would wouldn you your yours yourself yourselves
"""
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())
_WORD = re.compile(r"([^\W_]+(?:['’-][^\W_]+)*)")
_TOKEN = re.compile(r"\[CLASS\d+\] ")
Words = list[str]
Operation = Callable[[Words, list[int], int, random.Random], list[str | None]]


def augment_text(data: Data, share: float, seed: int = 0) -> Data:
    """The same labels, and texts of which a share of the words is changed: the easy data augmentation of Wei and Zou.

    Every text is changed by one of four operations, each as likely: words are replaced by synonyms; a synonym of any
    word is inserted behind words; words change places two by two; words are deleted. If the one that is drawn cannot
    change the text (no word has a synonym, there is nothing to swap), the next is tried. `share` of a text's words,
    rounded down and at least one, are changed. These are never stop words (`likewise.data.word_changes.STOP_WORDS`,
    function words and negations), but a single word may change places with one. A share of 0 changes nothing; one
    word is left of every text. Of a pair the first text is changed, the premise.

    It follows EasyDataAugmenter of textattack with `pct_words_to_swap=share` and one variant per text: a synonym is one
    word, drawn from all senses, not inflected, with the capitals of the word it replaces. Here it is seeded, stop words
    give no synonyms, and a text is left as it was only where no operation changes it. What becomes of a text depends on
    it and the seed alone, so texts that are the same are changed the same.

    Args:
        data: Texts, or pairs of them.
        share: How many of a text's words are changed, from 0 to 1.
        seed: What they are drawn by.

    Raises:
        InputError: The data holds no texts, or the share is none.

    Example:
        >>> reviews = Data("reviews", "text", ["The story is dull.", "a moving and superb film"])
        >>> augment_text(reviews, 0.5, seed=4)
        Data('reviews,augmented=0.5,seed=4', n=2)
        >>> [*augment_text(reviews, 0.5, seed=1).inputs, *augment_text(reviews, 0.5, seed=6).inputs]
        ['The history is mute.', 'a moving and superb take film brilliant', 'The dull is story.', 'a and superb']
    """
    check_change(data, ("text",), share, seed)
    texts = texts_of(data)
    if share:
        texts = [change_first(text, partial(_variant, share, random.Random(f"{seed} {text!r}"))) for text in texts]
    return with_change(with_inputs(data, texts), "augmented", share, seed)


def is_stop_word(word: str) -> bool:
    """Whether a word is in the list of stop words, or a short form of one.

    >>> [is_stop_word(word) for word in ("The", "don't", "won't", "it's", "film's")]
    [True, True, True, True, False]
    """
    plain = word.lower().replace("’", "'")
    return plain in STOP_WORDS or plain.endswith("n't") or plain.partition("'")[0] in STOP_WORDS


def _variant(share: float, draw: random.Random, text: str) -> str:
    """The text after the first operation that changes it, of all in an order that is drawn."""
    token = _TOKEN.match(text)
    start = token[0] if token else ""
    pieces = _WORD.split(text.removeprefix(start))
    gaps, words = pieces[::2], pieces[1::2]
    free = [i for i, word in enumerate(words) if not is_stop_word(word)]
    count = min(max(1, int(share * len(words))), len(free))
    for operation in draw.sample(_OPERATIONS, len(_OPERATIONS)):
        changed = operation(words, free, count, draw)
        if changed != words:
            return start + _joined(gaps, changed)
    return text


def _replace(words: Words, free: list[int], count: int, draw: random.Random) -> list[str | None]:
    changed: list[str | None] = list(words)
    able = [i for i in free if _single(words[i])]
    for i in draw.sample(able, min(count, len(able))):
        changed[i] = _cased(draw.choice(_single(words[i])), words[i])
    return changed


def _insert(words: Words, free: list[int], count: int, draw: random.Random) -> list[str | None]:
    changed: list[str | None] = list(words)
    able = [i for i in free if _single(words[i])]
    for i in draw.sample(free, count) if able else ():
        changed[i] = f"{words[i]} {draw.choice(_single(words[draw.choice(able)]))}"
    return changed


def _swap(words: Words, free: list[int], count: int, draw: random.Random) -> list[str | None]:
    changed: list[str | None] = list(words)
    if len(words) < 2:
        return changed
    drawn = draw.sample(free, count)
    if count % 2:  # the last one changes places with a word that was not drawn, if there is one
        drawn.append(draw.choice([i for i in range(len(words)) if i not in drawn] or drawn[:-1]))
    for one, other in zip(drawn[::2], drawn[1::2], strict=True):
        changed[one], changed[other] = changed[other], changed[one]
    return changed


def _delete(words: Words, free: list[int], count: int, draw: random.Random) -> list[str | None]:
    gone = draw.sample(free, min(count, max(0, len(words) - 1)))
    return [None if i in gone else word for i, word in enumerate(words)]


_OPERATIONS: tuple[Operation, ...] = (_replace, _insert, _swap, _delete)


@lru_cache(maxsize=65_536)
def _single(word: str) -> tuple[str, ...]:
    """The synonyms of a word that are one word."""
    return tuple(synonym for synonym in synonyms(word) if synonym.isalpha())


def _cased(word: str, model: str) -> str:
    """A word with the capitals of another."""
    if len(model) > 1 and model.isupper():
        return word.upper()
    return word[:1].upper() + word[1:] if model[:1].isupper() else word


def _joined(gaps: list[str], words: list[str | None]) -> str:
    """Words with the gaps between them; where a word is gone, the space before it is too."""
    text = gaps[0]
    for word, gap in zip(words, gaps[1:], strict=True):
        if word is not None:
            text += word + gap
        else:
            text = text.rstrip(" ") + gap if text.strip() else text + gap.lstrip(" ")
    return text
