"""A class similarity matrix: how alike a network, its mistakes or a dictionary finds classes.

Whatever the matrix was made from, it has the same form, so any two over the same classes can be
aligned: a network with WordNet, its weights with its mistakes, one network with another.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise import wordnet
from likewise._base.files import check_name
from likewise.errors import InputError, UnknownNameError, brief, did_you_mean, quoted_list
from likewise.matrices.heatmap import Heatmap, heatmaps
from likewise.matrices.labelled import Labelled, distances, leaf_order, position
from likewise.wordnet import ClassNames, listed, locate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = {  # what a matrix can be made from, and what the paper calls it
    "weights": "NCSM",
    "features": "TNCSM",
    "confusion": "CCSM",
    "logits": "LCSM",
    "wordnet": "SCSM",
    "given": "CSM",
}


@dataclass(frozen=True, eq=False, repr=False)
class ClassSimilarity(Labelled):
    """How alike c classes are: `values[i, j]` is the similarity of class i to class j.

    The diagonal is 1, but for WordNet's wup and lch, which have other scales. What is undefined (a class without
    samples, a weight row of zeros) is NaN.

    Attributes:
        values: The similarities (classes, classes).
        classes: The names of the classes; by default their numbers.
        kind: What it was made from: weights, features, confusion, logits, wordnet or given.
        split: The data a confusion or features come from.
        wnids: One WordNet id per class, None for a class that has none; with all of them, classes can be put in the
            order of their meaning.
        about: What else is known of it.

    Raises:
        InputError: The matrix is not square, or names or ids are not one per class.
        UnknownNameError: There is no such kind.

    Example:
        >>> a = ClassSimilarity([[1, 0.9, 0.1], [0.9, 1, 0.2], [0.1, 0.2, 1]], ["cat", "dog", "ship"])
        >>> a["cat", "dog"], a.closest("ship", 1)
        (0.9, [('dog', 0.2)])
    """

    KIND = "class similarity"
    LABEL = "class"

    values: Any
    classes: Sequence[str] = ()
    kind: str = "given"
    split: str | None = None
    wnids: Sequence[str | None] | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        values = np.array(self.values, dtype=np.float64)
        if values.ndim != 2 or values.shape[0] != values.shape[1] or len(values) < 2:
            raise InputError(
                f"a class similarity matrix is square, one row and one column per class, at least two; "
                f"got {values.shape}."
            )
        if self.kind not in KINDS:
            raise UnknownNameError(f"no kind of class similarity named {self.kind!r}.{did_you_mean(self.kind, KINDS)}")
        values.setflags(write=False)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "classes", named(self.classes or None, len(values)))
        if self.wnids is not None:
            object.__setattr__(self, "wnids", tuple(self.wnids))
            if len(self.wnids) != len(values):
                raise InputError(
                    f"{len(values)} classes need as many WordNet ids, got {len(self.wnids)}. Give None for "
                    "a class that has none."
                )

    @property
    def short(self) -> str:
        """What the paper calls it: NCSM, TNCSM-train, CCSM-test, SCSM, ..."""
        return KINDS[self.kind] + (f"-{self.split}" if self.split else "")

    @property
    def ids(self) -> list[str] | None:
        """The WordNet ids, where all are known."""
        ids = [wnid for wnid in self.wnids or () if wnid]
        return ids if len(ids) == len(self) else None

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        undefined = int(np.isnan(self.values).sum())
        note = f", {undefined} entries undefined" if undefined else ""
        return f"ClassSimilarity({self.short}, {len(self)} classes{note})"

    def _title(self) -> str:
        return f"{self!r}, larger is more alike"

    @property
    def axes(self) -> tuple[Sequence[str], Sequence[str]]:
        """Names of the rows and of the columns: the classes twice."""
        return self.classes, self.classes

    def closest(self, name: str, count: int = 5) -> list[tuple[str, float]]:
        """The classes most like one, with their similarity.

        Args:
            name: The class.
            count: How many of them.
        """
        at = position(self.classes, name, self.LABEL)
        row = self.values[at].copy()
        row[at] = np.nan
        best = [i for i in np.argsort(-row, kind="stable") if not np.isnan(row[i])]
        return [(self.classes[i], float(row[i])) for i in best[:count]]

    def order(self) -> list[str]:
        """Classes with kin side by side: by meaning where WordNet ids are known, else by similarity."""
        if (ids := self.ids) is not None:
            return [self.classes[i] for i in wordnet.order(ids, wordnet.branches(ids))]
        return leaf_order(self.classes, distances(self.values))

    def groups(self) -> list[str] | None:
        """The branch of WordNet each class is on, None where the ids are not known."""
        return None if (ids := self.ids) is None else list(wordnet.branches(ids))

    def only(self, classes: str | Sequence[str]) -> ClassSimilarity:
        """The same matrix for some of the classes, in the order given.

        Args:
            classes: Names of classes, or the name of a list ("coco80"), whose classes are found by WordNet id or name;
                they then have the list's names and WordNet ids, so that `from_wordnet` of that list can be aligned.

        Raises:
            InputError: A class of the list is not among those of the matrix.
            UnknownNameError: There is no such class, or no such list.
        """
        if isinstance(classes, str):
            names = listed(classes)
            return replace(self.matched(names, self.short), wnids=names.wnids)
        index = [position(self.classes, name, self.LABEL) for name in classes]
        return self._select(index, list(classes))

    def _select(self, index: Sequence[int], names: Sequence[str]) -> ClassSimilarity:
        wnids = None if self.wnids is None else [self.wnids[i] for i in index]
        return replace(self, values=self.values[np.ix_(index, index)], classes=names, wnids=wnids)

    def matched(self, classes: ClassNames, what: str = "the reference") -> ClassSimilarity:
        """The same matrix over classes that are named or ordered otherwise, under those names.

        Args:
            classes: The other classes; each is found by its WordNet id or by its name, never by its position.
            what: What this matrix is called in an error.
        """
        rest = (
            f"it has {quoted_list(self.classes)}. Classes are matched by WordNet id or by name, never by "
            "position: name them as it does, or give one WordNet id per class."
        )
        names = ClassNames(tuple(self.classes), None if self.wnids is None else tuple(self.wnids))
        index = locate(classes, names, lambda missing: f"{what} has no class that is surely {missing}; {rest}")
        return self._select(index, classes.names)

    def sorted(self) -> ClassSimilarity:
        """The same matrix in the order of `order()`."""
        return self.only(self.order())

    def off_diagonal(self) -> np.ndarray:
        """The values with NaN on the diagonal: it is 1 by definition, and would hide the rest."""
        values = np.array(self.values)
        np.fill_diagonal(values, np.nan)
        return values

    def borders(self, names: Sequence[str] | None = None) -> list[tuple[int, int, str]]:
        """Groups of kin along an axis: first, one past the last, and what they are called.

        Args:
            names: The classes along the axis; by default in their order.
        """
        groups = dict(zip(self.classes, self.groups() or (), strict=False))
        if not groups:
            return []
        words = [_word(groups[name]) for name in (self.classes if names is None else names)]
        starts = [i for i, word in enumerate(words) if i == 0 or word != words[i - 1]]
        return [(a, b, words[a]) for a, b in zip(starts, [*starts[1:], len(words)], strict=True)]

    def plot(self, path: str | os.PathLike[str] | None = None, *, title: str | None = None) -> Figure:
        """A picture of the matrix, kin side by side, with numbers where there is room.

        Args:
            path: Where to save it.
            title: Its title; by default what the paper calls the matrix.
        """
        return heatmaps([replace(self.sorted().heatmap(title), numbers=True)], path)

    def heatmap(self, title: str | None = None) -> Heatmap:
        """What is drawn of it: borders between groups of kin, and no diagonal.

        Args:
            title: Its title; by default what the paper calls the matrix.
        """
        return Heatmap(
            self.off_diagonal(),
            *self.axes,
            title or self.short,
            groups=self.borders(),
            numbers=False,
            square_root=self.kind == "confusion",
        )


def _word(synset: str) -> str:
    """A synset's word; what is left over at the root is "other"."""
    word = synset.partition(".")[0].replace("_", " ")
    return "other" if word == "entity" else word


def named(classes: Sequence[str] | None, count: int) -> tuple[str, ...]:
    """Names for all classes, their numbers where none are given; a name that repeats is numbered.

    >>> named(["crane", "heron", "crane"], 3)  # ImageNet has the bird and the machine
    ('crane', 'heron', 'crane#2')
    """
    if classes is None:
        return tuple(str(i) for i in range(count))
    if len(classes) != count:
        raise InputError(f"{count} classes need {count} names, got {len(classes)}.")
    names = tuple(map(str, classes))
    for name in names:
        check_name(name)
    if len(set(names)) == count:
        return names
    seen: Counter[str] = Counter()
    unique: list[str] = []
    for name in names:
        seen[name] += 1
        new = name if seen[name] == 1 else f"{name}#{seen[name]}"
        while seen[name] > 1 and new in (*names, *unique):
            seen[name] += 1
            new = f"{name}#{seen[name]}"
        unique.append(new)
    return tuple(unique)


def check_similarity(value: Any) -> None:
    """Refuse what is no class similarity, such as its bare values."""
    if not isinstance(value, ClassSimilarity):
        raise InputError(
            f"{brief(value)} is no class similarity. Give ClassSimilarity(values, names), or one that from_weights, "
            "from_confusion or from_wordnet make."
        )


def same_classes(a: ClassSimilarity, b: ClassSimilarity) -> None:
    """Refuse two matrices that are not over the same classes in the same order."""
    check_similarity(a)
    check_similarity(b)
    if a.classes == b.classes:
        return
    if sorted(a.classes) == sorted(b.classes):
        raise InputError(
            f"{a.short} and {b.short} hold the same classes in different orders. Put them in one: b.only(a.classes)."
        )
    if len(a) != len(b):
        raise InputError(
            f"{a.short} is over {len(a)} classes and {b.short} over {len(b)}. Only matrices of the same "
            "classes can be compared; choose them with .only(classes)."
        )
    if numbered(a) or numbered(b):
        nameless, other = (a, b) if numbered(a) else (b, a)
        raise InputError(
            f"the classes of {nameless.short} have no names and those of {other.short} do, first {other.classes[0]!r}. "
            "Position does not say which is which: name them where it is made, as in from_weights(net, classes=...)."
        )
    odd = next(name for name in a.classes if name not in b.classes)
    raise InputError(
        f"{a.short} and {b.short} are over different classes: {odd!r} is in one only. Only matrices of "
        "the same classes can be compared."
    )


def numbered(matrix: ClassSimilarity) -> bool:
    """Whether the classes have no names but their numbers."""
    return matrix.classes == tuple(str(i) for i in range(len(matrix)))
