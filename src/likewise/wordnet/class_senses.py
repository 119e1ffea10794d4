"""Which synset the pictures of a class show, where nothing but its name is known.

A noun rarely means what its first sense says (see `class_lists.py`), so a name is looked up among the classes of known
datasets, whose senses were chosen by hand, and then among the nouns that have one sense only. What is still
open is refused: a guess would be a wrong number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import cache

from likewise.errors import InputError, UnknownNameError, did_you_mean, quoted_list
from likewise.wordnet.class_lists import classes, lists
from likewise.wordnet.matching import ClassNames, plain_spelling, recognised
from likewise.wordnet.nouns import Synset, find, nearby
from likewise.wordnet.nouns import senses as senses_of


def depicted(names: ClassNames, senses: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The WordNet id of every class: its own, that of a known list, or that of a noun with one sense.

    Args:
        names: The names of the classes, with ids where they are known.
        senses: What classes mean, by id or synset name, whatever else is known.

    Raises:
        InputError: The name of a class does not tell what is meant.

    Example:
        >>> [find(wnid).name for wnid in depicted(ClassNames(("cat", "hot_dog", "n02084071")))]
        ['cat.n.01', 'hotdog.n.02', 'dog.n.01']
    """
    meant = {name: find(sense).wnid for name, sense in (senses or {}).items()}
    for name in meant:
        if name not in names.names:
            raise UnknownNameError(f"no class named {name!r}.{did_you_mean(name, names.names)}")
    recognised_ids = recognised(names.names).ids
    wnids = [
        meant.get(name) or wnid or listed or _only_sense(name)
        for wnid, listed, name in zip(names.ids, recognised_ids, names.names, strict=True)
    ]
    unclear = [name for name, wnid in zip(names.names, wnids, strict=True) if wnid is None]
    if unclear:
        raise InputError(_refusal(unclear))
    return tuple(wnid for wnid in wnids if wnid is not None)


def _only_sense(name: str) -> str | None:
    """The one synset that a name means in all lists that have it, or in the dictionary; None for none or several."""
    for words in ([name], re.split(r"[,;]", name), [_singular(name)]):
        ids = set().union(*(_by_name().get(plain_spelling(word), ()) for word in words))
        if ids:
            return ids.pop() if len(ids) == 1 else None
    candidates = _candidates(name)
    return candidates[0].wnid if len(candidates) == 1 else None


@cache
def _by_name() -> dict[str, set[str]]:
    """For every name in a known list, what it means in any of them."""
    ids: dict[str, set[str]] = {}
    for dataset in lists():
        class_list = classes(dataset)
        for name, wnid in zip(class_list.names, class_list.wnids, strict=True):
            ids.setdefault(plain_spelling(name), set()).add(wnid)
    return ids


def _candidates(name: str) -> list[Synset]:
    """The senses of a noun, however it is spelled."""
    for spelling in (name, plain_spelling(name), _singular(name)):
        with suppress(UnknownNameError):
            return senses_of(spelling)
    return []


def _singular(name: str) -> str:
    return plain_spelling(name).removesuffix("s")


def _refusal(names: Sequence[str]) -> str:
    first = names[0]
    near = get_close_matches(plain_spelling(first).replace(" ", "_"), nearby(plain_spelling(first)), n=1)
    candidates = _candidates(first) or [sense for word in near for sense in senses_of(word)]
    kinds = ", ".join(f"{sense.name} (a kind of {' and '.join(sense.parents)})" for sense in candidates)
    example = candidates[0].name if candidates else "entity.n.01"
    reason = f"{first!r} may be {kinds}" if candidates else f"WordNet 3.0 has no noun like {first!r}"
    return (
        f"the names of classes do not tell what {quoted_list(names)} mean: {reason}. Say which is meant, as in "
        f"senses={{{first!r}: {example!r}}} or --sense '{first}={example}'."
    )
