"""Which class of one list is which of another: by WordNet id, by name, or by another word for it.

Two lists of classes rarely agree in spelling and order: folders are sorted by name, networks of
ImageNet follow its ids, published labels read "tench, Tinca tinca". Position is never evidence.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any

from likewise.errors import InputError, LikewiseError, quoted_list
from likewise.wordnet.class_lists import classes, lists
from likewise.wordnet.nouns import find

_ID = re.compile(r"n\d{8}")
_SYNSET = re.compile(r".+\.n\.\d+")
_SAME_LIST = 0.95  # published lists differ in a few spellings


@dataclass(frozen=True)
class ClassNames:
    """The classes of data or of a network in the order of its labels, with WordNet ids where known.

    Attributes:
        names: One name per class.
        wnids: One WordNet id per class, None where it is unknown.
    """

    names: tuple[str, ...]
    wnids: tuple[str | None, ...] | None = None

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def ids(self) -> tuple[str | None, ...]:
        """The id of each class: as given, or what the name itself says (`n02084071`, `dog.n.01`)."""
        wnids = self.wnids or (None,) * len(self.names)
        return tuple(wnid or _id_in(name) for wnid, name in zip(wnids, self.names, strict=True))

    def to_text(self) -> str:
        """One text for the header of a file: the name of a known list, or the names as JSON."""
        for name in lists():
            if len(classes(name)) == len(self) and listed(name) == self:
                return name
        wnids = None if self.wnids is None else list(self.wnids)
        return json.dumps({"names": list(self.names), "wnids": wnids})

    @classmethod
    def from_text(cls, text: Any) -> ClassNames | None:
        """Read what `to_text` gave; None for anything else.

        Args:
            text: The text.

        Example:
            >>> ClassNames.from_text(ClassNames(("cat", "dog")).to_text())
            ClassNames(names=('cat', 'dog'), wnids=None)
        """
        if text in lists():
            return listed(text)
        try:
            facts = json.loads(text)
            names, wnids = facts["names"], facts["wnids"]
        except (TypeError, ValueError, KeyError):
            return None
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            return None
        fits = isinstance(wnids, list) and len(wnids) == len(names)
        return cls(tuple(names), tuple(wnids) if fits else None)


@cache
def listed(dataset: str) -> ClassNames:
    """The classes of a known list, as `classes` gives them.

    Args:
        dataset: The name of the list.
    """
    class_list = classes(dataset)
    return ClassNames(class_list.names, class_list.wnids)


def match(names: ClassNames, among: ClassNames) -> list[int | None]:
    """For every class its position among others, None where it has none.

    Ids decide where both sides have them; otherwise the names do, whatever their case and spacing,
    and then other words for the class (WordNet's, or those after a comma). A class that fits two
    positions, or a position that two classes fit, is not matched.

    Args:
        names: The classes to look for.
        among: The classes to look among.

    Example:
        >>> imagenet = ClassNames(("goldfish", "tabby, tabby cat"), ("n01443537", None))
        >>> match(ClassNames(("Tabby_Cat", "Carassius auratus", "cat")), imagenet)
        [1, 0, None]
    """
    if names.names == among.names and not any(map(_apart, names.ids, among.ids)):
        return list(range(len(names)))  # also where a name comes twice
    positions: list[int | None] = [None] * len(names)
    for keys in (_by_id, _by_name, _by_first, _by_words):
        if None in positions:
            _match_by(keys(names), keys(among), names, among, positions)
    return positions


def locate(names: ClassNames, among: ClassNames, refusal: Callable[[str], str]) -> list[int]:
    """The position of every class among others, as `match` finds it.

    Args:
        names: The classes to look for.
        among: The classes to look among.
        refusal: Makes the sentence of the error from the names that have no position.

    Raises:
        InputError: Some have none.
    """
    positions = match(names, among)
    missing = [name for name, position in zip(names.names, positions, strict=True) if position is None]
    if missing:
        raise InputError(refusal(quoted_list(missing)))
    return [position for position in positions if position is not None]


def recognised(names: Sequence[str]) -> ClassNames:
    """The classes with these names, with the WordNet ids of a known list that reads the same.

    Args:
        names: One name per class, in the order of the labels.

    Example:
        >>> recognised(classes("cifar10").names).ids[3]
        'n02121620'
    """
    return _recognised(tuple(names))


@lru_cache(maxsize=64)
def _recognised(names: tuple[str, ...]) -> ClassNames:
    unlisted = ClassNames(names)
    words = _by_words(unlisted)
    for name in lists():
        if len(classes(name)) != len(unlisted) or any(unlisted.ids):
            continue
        candidate = listed(name)
        there = _by_words(candidate)
        same = sum(bool(here & other) for here, other in zip(words, there, strict=True))
        if same >= _SAME_LIST * len(unlisted):
            return ClassNames(unlisted.names, candidate.wnids)
    return unlisted


Keys = list[set[Hashable]]


def _match_by(keys: Keys, holdings: Keys, names: ClassNames, among: ClassNames, positions: list[int | None]) -> None:
    """Match what is still free, where a class and a position have each other and no one else."""
    taken = set(positions)
    holders: dict[Hashable, list[int]] = defaultdict(list)
    for position, held in enumerate(holdings):
        for key in held if position not in taken else ():
            holders[key].append(position)
    fitting = {
        i: {p for key in keys[i] for p in holders[key] if not _apart(names.ids[i], among.ids[p])}
        for i, position in enumerate(positions)
        if position is None
    }
    demand = Counter(position for fits in fitting.values() for position in fits)
    for i, fits in fitting.items():
        if len(fits) == 1 and demand[position := next(iter(fits))] == 1:
            positions[i] = position


def _apart(one: str | None, other: str | None) -> bool:
    """Whether two ids say that two classes of one name are not the same."""
    return one is not None and other is not None and one != other


def _by_id(names: ClassNames) -> Keys:
    return [{wnid} if wnid else set() for wnid in names.ids]


def _by_name(names: ClassNames) -> Keys:
    return [{plain_spelling(name)} for name in names.names]


def _by_first(names: ClassNames) -> Keys:
    return [{plain_spelling(re.split(r"[,;]", name)[0])} for name in names.names]


def _by_words(names: ClassNames) -> Keys:
    return [
        {plain_spelling(word) for word in [*re.split(r"[,;]", name), *_words(wnid)]}
        for name, wnid in zip(names.names, names.ids, strict=True)
    ]


def _words(wnid: str | None) -> Iterable[str]:
    if wnid is None:
        return ()
    try:
        return find(wnid).words
    except LikewiseError:  # an id of another version of WordNet
        return ()


def _id_in(name: str) -> str | None:
    if _ID.fullmatch(name):
        return name
    if not _SYNSET.fullmatch(name):
        return None
    try:
        return find(name).wnid
    except LikewiseError:
        return None


def plain_spelling(name: str) -> str:
    """A name without what spellings differ in.

    >>> plain_spelling("Ankle boot") == plain_spelling("ankle_boot") == plain_spelling("Ankle-Boot")
    True
    """
    return re.sub(r"[\W_]+", " ", name.casefold()).strip() or name
