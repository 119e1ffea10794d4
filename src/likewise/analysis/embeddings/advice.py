"""What to do with the vectors of a database when its embedding model changes: keep them, map them, or embed again.

The new model's own search, new queries over new vectors of the items, is what embedding again would give. Two cheaper
ways are held against it: new queries over the old vectors as they are, and over old vectors that a map carried over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise._base.arrays import Array, check_labels
from likewise._base.names import visible
from likewise.analysis.embeddings.maps import LEARNERS, VectorMap, held_out, learn, unit_rows
from likewise.analysis.embeddings.search import Recall, Search, recalls
from likewise.analysis.embeddings.thresholds import GROUPS, Threshold, carried_over
from likewise.errors import InputError, brief, check_count, check_seed
from likewise.views import Activations
from likewise.views.activations import check_same_probe

AT = 10  # the neighbours that the verdict looks at
KS = (1, AT, 100)
LEAST = 20  # items
DRAWN = 2000  # items that are queries where none are given
ENOUGH = 5  # items per column that a map is learned from, roughly
SAME_DIRECTION = 1e-12


@dataclass(frozen=True)
class Upgrade:
    """Whether a new embedding model can use the vectors of an old one, and what changes.

    Attributes:
        verdict: "keep" the old vectors as they are, "map" them, or "embed again".
        kept: By k, the share of the k nearest items of the old model that are among the k nearest of the new one.
        by_chance: By k, the share that unrelated models would keep.
        as_is: The recall at 10 of new queries over the old vectors as they are, against the new model's own search;
            None where widths differ.
        maps: The recall at 10 of new queries over mapped vectors, by the name of the map, each item mapped by a map
            that was learned without it.
        map: The better map, learned from all items: `result.map(vectors)` maps old vectors.
        thresholds: The old threshold in the search of every verdict that is possible here.
        limit: The recall that is asked for.
        counts: How many items and queries there were, and both widths.
    """

    verdict: str
    kept: Mapping[int, Recall]
    by_chance: Mapping[int, float] = field(repr=False)
    as_is: Recall | None
    maps: Mapping[str, Recall]
    map: VectorMap
    thresholds: Mapping[str, Threshold] = field(repr=False)
    limit: float
    counts: Mapping[str, int] = field(repr=False)

    def __str__(self) -> str:
        items, queries, old, new = self.counts.values()
        lines = [f"{self.verdict}: {self._reason()}", f"{items} items, {queries} queries, {old} to {new} columns"]
        lines += ["", "neighbours that old and new search share (95 % interval; by chance)"]
        lines += [f"  of {k:<4} {self.kept[k]}; {self.by_chance[k]:.2f}" for k in self.kept]
        lines += ["", f"recall at {AT} of new queries, against embedding again"]
        names = {"old vectors as they are": self.as_is or "undefined: widths differ"}
        names |= {f"old vectors by {name}, held out": recall for name, recall in self.maps.items()}
        lines += [f"  {name:<36} {recall}" for name, recall in names.items()]
        shown = dict.fromkeys((self.verdict, "embed again"))
        lines += ["", "threshold", *(f"  {name}: {self.thresholds[name]}" for name in shown)]
        return "\n".join(map(visible, lines))

    def _reason(self) -> str:
        best = self.maps[self.map.name]
        recall = self.as_is if self.verdict == "keep" and self.as_is else best
        what = {"keep": "old vectors as they are", "map": f"old vectors mapped by {self.map.name}"}
        what |= {"embed again": f"even the better map ({self.map.name})"}
        verb = {"embed again": "gives only"}.get(self.verdict, "give")
        words = f"{what[self.verdict]} {verb} {recall} of the {AT} nearest items, and {self.limit:.4g} is asked for"
        if recall.low < self.limit <= recall.high:
            words += "; a close call, which more queries would decide"
        if self.verdict == "embed again" and self.counts["items"] < ENOUGH * self.counts["old width"]:
            words += f"; a map of {self.counts['old width']} columns may do better with more than these items"
        return words

    def record(self) -> dict[str, Any]:
        """Everything but the map, as JSON can hold it."""
        table = {"verdict": self.verdict, "limit": self.limit, **self.counts, "map": self.map.name}
        table |= {"kept": [{"k": k, **asdict(one), "by_chance": self.by_chance[k]} for k, one in self.kept.items()]}
        table |= {"as_is": self.as_is and asdict(self.as_is), "at": AT}
        table |= {"maps": {name: asdict(recall) for name, recall in self.maps.items()}}
        return table | {"thresholds": {name: _plain(asdict(one)) for name, one in self.thresholds.items()}}


def upgrade(
    old: Any,
    new: Any,
    *,
    queries: tuple[Any, Any] | None = None,
    k: Sequence[int] | None = None,
    recall: float = 0.9,
    threshold: float | None = None,
    labels: Any = None,
    query_labels: Any = None,
    seed: int = 0,
) -> Upgrade:
    """Advise whether a vector database has to be embedded again when its embedding model changes.

    All is by cosine. What a new model finds with its own vectors is the standard, and the verdict is "keep" where new
    queries find enough of it over the old vectors as they are, "map" where they do over mapped ones, else "embed
    again". It is about as many items as are given: among more items neighbours are closer, and recall is lower.

    Args:
        old: Vectors of some items by the old model, one per row: some thousands, drawn from the database.
        new: Vectors of the same items by the new model.
        queries: Vectors of queries by the old and by the new model. By default up to 2,000 of the items are queries,
            each for the others.
        k: The numbers of neighbours to report, by default 1, 10 and 100, as far as there are twice as many items.
        recall: The share of the 10 nearest items that is enough.
        threshold: The score above which a hit counted with the old model; by default what 10 items per query reach.
        labels: One label per item: pairs of one label are right, so that the new threshold is the one of the same
            precision. By default it is the one that as many pairs reach.
        query_labels: One label per query, where there are queries.
        seed: Draws queries, and the parts by which maps are tested.

    Returns:
        The verdict with what it rests on, and the map.

    Raises:
        InputError: The vectors are not of the same items, too few, or without direction.

    Example:
        >>> import numpy as np, likewise
        >>> draw = np.random.default_rng(0)
        >>> old = draw.normal(size=(200, 8))
        >>> turn, _ = np.linalg.qr(draw.normal(size=(8, 8)))
        >>> likewise.analysis.upgrade(old, old @ turn).verdict
        'map'
    """
    check_seed(seed)
    _check_share("recall", recall)
    draw = np.random.default_rng(seed)
    items = _items(old, new)
    own = None if queries is not None else torch.from_numpy(_drawn(len(items[0]), draw)).to(items[0].device)
    asked = _queries(queries, items) if own is None else (items[0][own], items[1][own])
    before, after = (Search(side, rows, own) for side, rows in zip(items, asked, strict=True))
    ks = _counts(k, after.others)
    relevant = _labels(labels, query_labels, before)
    order = draw.permutation(len(items[0]))
    searches = {name: Search(held_out(name, *items, order), asked[1], own) for name in LEARNERS}
    maps = {name: recalls(search, after, [AT])[AT] for name, search in searches.items()}
    best = max(maps, key=lambda name: maps[name].value)
    possible = {"embed again": after, "map": searches[best]}
    as_is = None
    if items[0].shape[1] == items[1].shape[1]:
        possible["keep"] = Search(items[0], asked[1], own)
        as_is = recalls(possible["keep"], after, [AT])[AT]
    verdict = "map" if maps[best].value >= recall else "embed again"
    counts = {"items": len(items[0]), "queries": len(asked[0])}
    return Upgrade(
        verdict="keep" if as_is and as_is.value >= recall else verdict,
        kept=recalls(before, after, ks),
        by_chance={size: size / after.others for size in ks},
        as_is=as_is,
        maps=maps,
        map=learn(best, *items),
        thresholds={name: carried_over(before, search, threshold, relevant) for name, search in possible.items()},
        limit=recall,
        counts=counts | {"old width": items[0].shape[1], "new width": items[1].shape[1]},
    )


# --- what is given ------------------------------------------------------------------------------------


def _view(values: Any, name: str) -> Activations:
    return values if isinstance(values, Activations) else Activations(values, name=name)


def _items(old: Any, new: Any) -> tuple[Tensor, Tensor]:
    """The vectors of both models at length 1."""
    views = _view(old, "old"), _view(new, "new")
    check_same_probe(*views)
    if views[0].n < LEAST:
        raise InputError(f"there are {views[0].n} items, and neighbours of few say little. Give at least {LEAST}.")
    rows = unit_rows(views[0], ""), unit_rows(views[1], "")
    for view, side in zip(views, rows, strict=True):
        if float((side - side.mean(dim=0)).square().sum(dim=1).mean()) <= SAME_DIRECTION:
            raise InputError(
                f"all rows of {view.label} point the same way, so that no item is nearer than another. Check how "
                "they were made."
            )
    return rows


def _queries(queries: Any, items: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """The queries of both models at length 1, each as wide as its model's items."""
    if not isinstance(queries, (tuple, list)) or len(queries) != 2:
        raise InputError("queries must be two arrays, of the old and of the new model. Pass queries=(old, new).")
    views = _view(queries[0], "the old queries"), _view(queries[1], "the new queries")
    check_same_probe(*views)
    for view, side, model in zip(views, items, ("old", "new"), strict=True):
        if view.d != side.shape[1]:
            raise InputError(
                f"{view.label} has {view.d} columns and the {model} items have {side.shape[1]}. Embed queries and "
                "items by one model."
            )
    if views[0].n < GROUPS:
        raise InputError(f"there are {views[0].n} queries, and an interval needs {GROUPS}. Give more.")
    return unit_rows(views[0], ""), unit_rows(views[1], "")


def _drawn(n: int, draw: np.random.Generator) -> Array:
    """The items that are queries, in random order, so that any stretch of them is a random part."""
    return draw.permutation(n)[:DRAWN]


def _counts(k: Sequence[int] | None, others: int) -> list[int]:
    if k is None:
        return [size for size in KS if 2 * size <= others]
    ks = list(dict.fromkeys([k] if isinstance(k, int) else k))
    for size in ks:
        check_count("k", size)
        if size >= others:
            raise InputError(f"k is {size}, and a query can find {others} items. Give fewer than that.")
    if not ks:
        raise InputError("k is empty. Give at least one number of neighbours.")
    return ks


def _labels(labels: Any, query_labels: Any, search: Search) -> tuple[Tensor, Tensor] | None:
    """Labels of queries and of items, on the device they are needed on."""
    if labels is None:
        if query_labels is not None:
            raise InputError("query_labels are given without labels of the items. Give labels too, or neither.")
        return None
    device, n = search.items.device, len(search.items)
    of_items = check_labels(labels, n).to(device)
    if search.own is not None:
        if query_labels is not None:
            raise InputError("query_labels are given without queries. Leave them out, or give the queries.")
        return of_items[search.own], of_items
    if query_labels is None:
        raise InputError("labels of the items are given and those of the queries are not. Give query_labels too.")
    return check_labels(query_labels, len(search.queries), what="query_labels").to(device), of_items


def _check_share(name: str, value: Any) -> None:
    if not isinstance(value, (int, float)) or not 0 < value <= 1:
        raise InputError(f"{name} must be above 0 and at most 1, got {brief(value)}.")


def _plain(table: dict[str, Any]) -> dict[str, Any]:
    """NaN as None, which JSON has a word for."""
    return {name: None if value != value else value for name, value in table.items()}
