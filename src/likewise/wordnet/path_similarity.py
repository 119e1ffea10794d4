"""How similar the meanings of nouns are: by the path between them in WordNet, all pairs at once.

All classes climb to the root together, one level at a time, so that the steps from every class to
every ancestor are known. The distance of two classes is then the least sum of steps over the ancestors
they share. Columns are taken in blocks: beside the result only a table of ancestors by block is held.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.errors import UnknownNameError, did_you_mean
from likewise.wordnet.nouns import Ints, graph, lexicon, rows_of

Floats = np.ndarray[Any, np.dtype[np.float64]]
_FAR = 64  # more than any way is long, and twice of it still fits a byte
_WIDTH = 1024


def similarity(synsets: Sequence[str], measure: str = "path") -> Floats:
    """How alike all pairs of nouns are, as a (c, c) matrix; ids, names and words may be mixed.

    With d the number of steps between two synsets over the ancestor that makes it least:

    - `path`: 1 / (d + 1); 1 for the same synset, towards 0 the less two have to do with each other.
    - `lch` (Leacock and Chodorow): -ln((d + 1) / 38); the order of `path`, but from 3.64 to 0.
    - `wup` (Wu and Palmer): 2 m / (2 m + a + b), with m the depth of the deepest shared ancestor, and
      a and b the steps to it; high if two part late, above 0 always.

    `path` counts a step between two breeds like one between a thing and an object, and most of its
    values are tied. Values are NLTK's, its oddities included: its `wup` takes the ancestor whose
    shortest way to the root is longest, but its depth by the longest way. So where ways part
    above it, a synset may be less than 1 like itself (107 of ImageNet's 1,000, most of them dogs), and
    a pair with its own ancestor may depend on which is the row.

    Args:
        synsets: Ids, names and words with one sense, mixed as they come.
        measure: "path", "wup" or "lch".

    Raises:
        UnknownNameError: There is no such measure, or no such noun.

    Example:
        >>> similarity(["dog.n.01", "cat.n.01", "n02958343"]).round(3).tolist()
        [[1.0, 0.2, 0.077], [0.2, 1.0, 0.056], [0.077, 0.056, 1.0]]
        >>> similarity(["dog.n.01", "cat.n.01"], "wup")[0, 1].round(3).item()
        0.857
    """
    if measure not in MEASURES:
        raise UnknownNameError(
            f"no measure of WordNet named {measure!r}. Known are {', '.join(MEASURES)}."
            f"{did_you_mean(measure, MEASURES)}"
        )
    return MEASURES[measure](rows_of(synsets))


def _path(rows: Ints) -> Floats:
    return 1.0 / (distances(rows, rows).astype(np.float64) + 1.0)


def _lch(rows: Ints) -> Floats:
    # From a table, since numpy's logarithm may differ from the system's in the last digit.
    longest = 2 * int(graph().deepest.max())  # 38
    logarithms = [-math.log((d + 1) / longest) for d in range(longest)]
    return np.array(logarithms)[distances(rows, rows)]


def _wup(rows: Ints) -> Floats:
    nodes, ancestors = shared_ancestors(rows)
    steps = distances(rows, nodes).astype(np.int64)
    depth = graph().deepest[nodes][ancestors] + 1
    mine = np.take_along_axis(steps, ancestors, axis=1)
    theirs = steps[np.arange(len(rows)), ancestors]
    return (2.0 * depth) / ((mine + depth) + (theirs + depth))


MEASURES: dict[str, Callable[[Ints], Floats]] = {"path": _path, "wup": _wup, "lch": _lch}


@dataclass(frozen=True, eq=False)
class Climb:
    """The ancestors of some rows, themselves included, and the fewest steps to each.

    Those of the i-th row are `nodes[bounds[i]:bounds[i + 1]]`, in the order of their rows.
    """

    bounds: Ints
    nodes: Ints
    steps: Ints

    def of(self, i: int) -> slice:
        """Where the ancestors of synset `i` lie."""
        return slice(self.bounds[i], self.bounds[i + 1])


def climb(rows: Ints) -> Climb:
    """Climb from all rows to the root at once, level by level."""
    nouns = graph()
    n = len(nouns.offsets)
    level = np.arange(len(rows)) * n + rows  # who climbs and where it is, in one number
    levels = [level]
    while len(level):
        who, at = np.divmod(level, n)
        counts = nouns.starts[at + 1] - nouns.starts[at]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        parents = nouns.parents[np.repeat(nouns.starts[at], counts) + within]
        level = np.unique(np.repeat(who, counts) * n + parents)
        levels.append(level)
    steps = np.repeat(np.arange(len(levels), dtype=np.uint8), [len(level) for level in levels])
    reached, first = np.unique(np.concatenate(levels), return_index=True)  # first is fewest steps
    bounds = np.searchsorted(reached, np.arange(len(rows) + 1) * n)
    return Climb(bounds, reached % n, steps[first])


def distances(rows: Ints, others: Ints) -> Ints:
    """Steps between each of the rows and each of the others, over their nearest shared ancestor."""
    mine, theirs = climb(rows), climb(others)
    nodes = np.unique(np.concatenate([mine.nodes, theirs.nodes]))
    places = np.searchsorted(nodes, mine.nodes)
    out = np.empty((len(rows), len(others)), np.uint8)
    for columns, table in _blocks(theirs, nodes):
        for i in range(len(rows)):
            span = mine.of(i)
            out[i, columns] = (table[places[span]] + mine.steps[span, None]).min(axis=0)
    return out


def shared_ancestors(rows: Ints) -> tuple[Ints, Ints]:
    """For each pair the shared ancestor furthest from the root by the shortest way.

    Ties go to the row's own synset, then to the first in the order of names. Returned are the nodes
    that occur and, for each pair, which of them it is.
    """
    climbed, nearest = climb(rows), graph().nearest
    nodes = np.unique(climbed.nodes)
    names = np.array([lexicon().name(row) for row in nodes.tolist()])
    rank = np.empty(len(nodes), np.int64)
    rank[np.lexsort((names, -nearest[nodes]))] = np.arange(len(nodes))
    places = np.searchsorted(nodes, climbed.nodes)
    ancestors = np.empty((len(rows), len(rows)), np.int64)
    for columns, table in _blocks(climbed, nodes):
        for i, row in enumerate(rows):
            candidates = places[climbed.of(i)]
            best = candidates[np.lexsort((rank[candidates], nodes[candidates] != row, -nearest[nodes[candidates]]))]
            ancestors[i, columns] = best[(table[best] < _FAR).argmax(axis=0)]
    kept, which = np.unique(ancestors, return_inverse=True)
    return nodes[kept], which.reshape(ancestors.shape)


def _blocks(climbed: Climb, nodes: Ints) -> Iterator[tuple[slice, Ints]]:
    """Steps from some columns to all nodes, as a table that has `_FAR` where there is no way."""
    columns = len(climbed.bounds) - 1
    for start in range(0, columns, _WIDTH):
        stop = min(start + _WIDTH, columns)
        span = slice(climbed.bounds[start], climbed.bounds[stop])
        who = np.repeat(np.arange(stop - start), np.diff(climbed.bounds[start : stop + 1]))
        table = np.full((len(nodes), stop - start), _FAR, np.uint8)
        table[np.searchsorted(nodes, climbed.nodes[span]), who] = climbed.steps[span]
        yield slice(start, stop), table
