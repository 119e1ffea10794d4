"""The one loop over pairs of networks, which every comparison runs: in this process, on threads, in workers.

Per-network work is shared by all pairs and measures through the workspace of the representations. Measures that are
inner products of n x n matrices read tables that are filled for many pairs in one pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from likewise._base.arrays import Array
from likewise._base.machine import is_out_of_memory
from likewise.errors import InputError, LikewiseError, MeasureError, UndefinedError
from likewise.measures.function import Measure
from likewise.measures.numerics.kernels import Distance, InnerProducts, Kernel, Linear
from likewise.measures.pair import Pair
from likewise.measures.representation import Representation
from likewise.measures.workspace import Workspace
from likewise.views import Activations

Networks = Mapping[int, Representation] | Sequence[Representation]
Item = tuple[int, int, int]  # which measure, of which network, to which


class Outcome(NamedTuple):
    """A score, or NaN and the reason why there is none.

    `final` says that the inputs are the reason. A function that failed may be mended, or what it calls, and a worker
    may be killed by anything: such pairs are not stored, and tried again.
    """

    value: float
    reason: str = ""
    final: bool = True


def outcome(measure: Measure, pair: Pair) -> Outcome:
    """Score a pair; only a lack of memory, an interrupt or a missing library ends the run."""
    try:
        return Outcome(measure.score(pair))
    except (UndefinedError, InputError) as error:
        return Outcome(float("nan"), str(error))
    except MeasureError as error:
        return Outcome(float("nan"), str(error), final=False)
    except LikewiseError:
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise
        reason = f"{measure.key} failed on {pair}: {type(error).__name__}: {error}"
        return Outcome(float("nan"), reason, final=False)


def attempt(measure: Measure, pair: Pair) -> tuple[float, str]:
    """A score, or NaN and the reason why there is none."""
    return outcome(measure, pair)[:2]


def score_items(
    items: Iterable[Item],
    measures: Sequence[Measure],
    left: Networks,
    right: Networks | None = None,
    tables: dict[Kernel, InnerProducts] | None = None,
) -> Iterator[tuple[Item, Outcome]]:
    """Measure k of network i on the left and network j on the right, for every (k, i, j).

    Items of one pair, in both directions, belong next to each other: what they share is computed once. Without
    `right`, both networks are on the left.
    """
    indices, pair = (-1, -1), None
    for k, i, j in items:
        if pair is None or indices != (i, j):
            back = right is None and indices == (j, i)
            pair = pair.swapped if pair is not None and back else Pair(left[i], (right or left)[j], tables)
            indices = (i, j)
        yield (k, i, j), outcome(measures[k], pair)


def representations(views: list[Activations], limit: int) -> list[Representation]:
    """The networks in one workspace that keeps what shuffles and draws take by index."""
    workspace = Workspace(limit, networks=len(views), resampled=True)
    return [Representation(view, workspace) for view in views]


def score_table(
    measure: Measure,
    left: Sequence[Representation],
    right: Sequence[Representation],
    tables: dict[Kernel, InnerProducts],
) -> Array:
    """Scores of all pairs of different networks; the diagonal is the network with itself."""
    m, both = len(left), not measure.info.symmetric
    values = np.full((m, m), np.nan)
    items = [(0, i, j) for i in range(m) for j in range(m) if i < j or (both and i > j)]
    for (_, i, j), result in score_items(items, [measure], left, right, tables):
        values[i, j] = result.value
        if not both:
            values[j, i] = result.value
    if measure.info.identity is not None:
        np.fill_diagonal(values, measure.info.identity)
    return values


class Base:
    """Networks whose inputs are shuffled or left out, and what their own scores leave for that to take by index."""

    def __init__(self, reps: list[Representation], measure: Measure) -> None:
        self.reps, self.measure = reps, measure
        self._tables: dict[Kernel, InnerProducts] = {}

    @cached_property
    def values(self) -> Array:
        """Scores of all pairs, (m, m)."""
        return score_table(self.measure, self.reps, self.reps, self._tables)

    @property
    def tables(self) -> dict[Kernel, InnerProducts]:
        """The inner products that the scores were made of."""
        _ = self.values.shape
        return self._tables


class Draws(Protocol):
    """Ways to shuffle inputs or to leave some out, numbered from 0."""

    @property
    def count(self) -> int:
        """How many there are."""

    @property
    def facts(self) -> tuple[Any, ...]:
        """All that a draw depends on beside its number."""

    def tables(self, base: Base, numbers: Sequence[int]) -> Iterator[Array]:
        """Scores of all pairs, (m, m), in each of some draws; numbers rise."""


def unordered_pairs(todo: Array) -> Array:
    """The pairs of networks with something to do, (pairs, 2), the smaller number first."""
    some = todo.any(axis=0)
    return np.argwhere(np.triu(some | some.T))


def items_of(todo: Array, pairs: Iterable[Iterable[int]]) -> list[Item]:
    """What is to do for pairs of networks, in both directions."""
    items: list[Item] = []
    for i, j in (map(int, pair) for pair in pairs):
        items += [(int(k), i, j) for k in np.flatnonzero(todo[:, i, j])]
        items += [(int(k), j, i) for k in np.flatnonzero(todo[:, j, i]) if i != j]
    return items


def tile_order(pairs: Array, side: int) -> Array:
    """Pairs of networks in the order of tiles that many networks wide."""
    i, j = pairs.T
    return pairs[np.lexsort((j, i, j // side, i // side))]


def want_distances(measures: Iterable[Measure]) -> bool:
    """Whether some measure reads the distances of every network."""
    return any(Distance() in measure.kernels for measure in measures)


def single_pass(measures: Sequence[Measure]) -> bool:
    """Whether the rows of a network's inner products are read once for all its pairs: to find its neighbours."""
    return len(measures) == 1 and measures[0].info.family == "neighbors"


def kernels_of(measures: Sequence[Measure], pairs: int, views: Sequence[Activations | Representation]) -> set[Kernel]:
    """Kernels whose inner products are best taken for many pairs at once."""
    kernels = {kernel for measure in measures for kernel in measure.kernels}
    if Linear() in kernels and _cross_is_cheaper(measures, pairs, views):
        kernels.discard(Linear())
    return kernels


def _cross_is_cheaper(measures: Sequence[Measure], pairs: int, views: Sequence[Activations | Representation]) -> bool:
    """Whether linear inner products should come from the pairs' cross-covariances."""
    if any(view.d > view.n for view in views):
        return False
    if any(measure.info.cross and Linear() not in measure.kernels for measure in measures):
        return True  # they are computed anyway
    return pairs * views[0].d < len(views) * views[0].n
