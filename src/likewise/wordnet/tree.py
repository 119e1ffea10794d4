"""Classes along WordNet, for pictures: an order in which kin are neighbours, and a few groups.

WordNet is no tree, so one is made of it: of several parents the most specific counts, the one with the
longest way to the root (a dog is a canine rather than a domestic animal), the first listed on ties.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from likewise.errors import InputError
from likewise.wordnet.nouns import Ints, graph, lexicon, rows_of

Way = tuple[int, ...]
LEAST = 3  # classes that make a group


def order(synsets: Sequence[str], groups: Sequence[str] | None = None) -> list[int]:
    """The positions of the classes in depth-first order, so that kin are neighbours.

    Ancestors come before what is under them, siblings in the order of their ids. With `groups`, a
    label for each class such as `branches` gives, groups stay together, the earliest first.

    Args:
        synsets: One id, name or word per class.
        groups: One label per class, such as `branches` gives; groups stay together, the earliest first.

    Example:
        >>> order(["dog.n.01", "truck.n.01", "cat.n.01", "car.n.01"])
        [0, 2, 3, 1]
    """
    ways = _ways(rows_of(synsets))
    positions = sorted(range(len(ways)), key=lambda i: ways[i])
    if groups is None:
        return positions
    if len(groups) != len(ways):
        raise InputError(f"there are {len(ways)} synsets and {len(groups)} groups. Give one group per synset.")
    first = {group: at for at, group in reversed(list(enumerate(groups[i] for i in positions)))}
    return sorted(positions, key=lambda i: first[groups[i]])


def branches(synsets: Sequence[str], most: int = 8) -> list[str]:
    """For each class an ancestor, chosen so that the classes fall into a few groups of kin.

    At first the root is the ancestor of all. Then, while there are at most `most` groups, the synset
    is named that brings the classes under it most steps nearer to their group's name, in sum. A group
    has at least three classes, except for what is left over at the root.

    Args:
        synsets: One id, name or word per class.
        most: The largest number of groups.

    Example:
        >>> branches(["cat.n.01", "ship.n.01", "dog.n.01", "frog.n.01", "car.n.01", "truck.n.01"])
        ['vertebrate.n.01', 'vehicle.n.01', 'vertebrate.n.01', 'vertebrate.n.01', 'vehicle.n.01', 'vehicle.n.01']
    """
    if most < 1:
        raise InputError(f"most is {most}. Give at least 1 group.")
    ways = _ways(rows_of(synsets))
    homes = [0] * len(ways)  # for each class, how far down its way its group is
    while (best := _nearer(ways, homes, most)) is not None:
        old, new = best
        homes = [
            way.index(new) if way[home] == old and new in way[:-1] else home
            for way, home in zip(ways, homes, strict=True)
        ]
    return [lexicon().name(way[home]) for way, home in zip(ways, homes, strict=True)]


def _ways(rows: Ints) -> list[Way]:
    """For each row the rows from the root down to it."""
    nouns = graph()
    ways = []
    for row in rows.tolist():
        way = [row]
        while above := nouns.above(way[-1]):
            way.append(max(above, key=lambda parent: nouns.deepest[parent]))
        ways.append(tuple(reversed(way)))
    return ways


def _nearer(ways: list[Way], homes: list[int], most: int) -> tuple[int, int] | None:
    """The group to take classes from and the synset to put them under, if there is any left."""
    sizes = Counter(way[home] for way, home in zip(ways, homes, strict=True))
    taken: Counter[tuple[int, int, int]] = Counter()
    for way, home in zip(ways, homes, strict=True):
        taken.update((way[home], way[at], at - home) for at in range(home + 1, len(way) - 1))

    def allowed(old: int, count: int) -> bool:
        left = sizes[old] - count
        if left == 0:
            return True
        return count >= LEAST and (left >= LEAST or old == 0) and len(sizes) < most

    gains = [(count * steps, -new, old) for (old, new, steps), count in taken.items() if allowed(old, count)]
    _, new, old = max(gains, default=(0, 0, None))
    return None if old is None else (old, -new)
