"""The one loop over pairs of networks, which every comparison runs: in this process, on threads, in workers.

Per-network work is shared by all pairs and measures through the workspace of the representations. Measures that are
inner products of n x n matrices get the scores of many pairs from one product: networks are taken in groups that fit
into memory, and every two groups make a tile. What a formula does not plainly tell is left to the loop over pairs:
networks that are constant, scales that are extreme, estimates of which little is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from likewise._base.arrays import Array, refuse_meta
from likewise.errors import InputError, LikewiseError, MeasureError, UndefinedError
from likewise.measures.function import Measure
from likewise.measures.numerics.kernels import Distance, InnerProducts, Kernel, Linear, group_size, multiply
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
    """Score a pair; only an interrupt, a missing library or a wrong option ends the run."""
    try:
        return Outcome(measure.score(pair))
    except (UndefinedError, InputError) as error:
        return Outcome(float("nan"), str(error))
    except MeasureError as error:
        return Outcome(float("nan"), str(error), final=False)
    except LikewiseError:
        raise
    except Exception as error:
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


def items_of(todo: Array, pairs: Array) -> list[Item]:
    """What is to do for pairs of networks, (pairs, 2), in both directions."""
    i, j = pairs.T
    both = np.stack([todo[:, i, j], todo[:, j, i] & (i != j)])
    which, back, k = np.nonzero(both.transpose(2, 0, 1))  # pair by pair
    sides = np.where(back, pairs[which].T[::-1], pairs[which].T)
    return list(zip(k.tolist(), *sides.tolist(), strict=True))


def tile_order(pairs: Array, side: int) -> Array:
    """Pairs of networks in the order of tiles that many networks wide."""
    i, j = pairs.T
    return pairs[np.lexsort((j, i, j // side, i // side))]


def want_distances(measures: Iterable[Measure]) -> bool:
    """Whether some measure reads the distances of every network."""
    return any(Distance() in measure.kernels for measure in measures)


def single_pass(measures: Sequence[Measure]) -> bool:
    """Whether the rows of a network's n x n matrices are read once for all its pairs.

    That is so of one measure that finds neighbours, and of those whose pairs are scored together.
    """
    neighbors = len(measures) == 1 and measures[0].info.family == "neighbors"
    return neighbors or all(measure.info.matrix is not None for measure in measures)


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


# --- many pairs at once -------------------------------------------------------------------------------


def score_tables(
    todo: Array, measures: Sequence[Measure], reps: Sequence[Representation]
) -> Iterator[tuple[int, Array, Array, Array]]:
    """Scores of many pairs at a time: a measure k, all i, all j, and the values.

    Of what is to do, `todo[k, i, j]` with i < j, pairs are left out that need a closer look.
    """
    if len({rep.view.probe for rep in reps} - {None}) > 1:
        return  # each pair of different inputs is refused
    numbers = [k for k in range(len(measures)) if todo[k].any()]
    count = int(np.triu(todo.any(axis=0)).sum())
    for kernel in kernels_of([measures[k] for k in numbers], count, reps):
        tabled = [k for k in numbers if kernel in measures[k].kernels and _serve(reps, measures[k])]
        pairs = np.triu(todo[tabled].any(axis=0), 1)
        for left, right, block in _tiles(pairs, _groups(kernel, reps, pairs)):
            sides = [[reps[i] for i in side] for side in (left, right)]
            products = multiply(kernel, *(sides if left is not right else sides[:1]))
            for k in tabled:
                values = measures[k].scores(products)
                if values is not None:
                    open_pairs = todo[k][np.ix_(left, right)] | todo[k][np.ix_(right, left)].T
                    i, j = np.nonzero(open_pairs & block & ~np.isnan(values))
                    yield k, *np.sort([left[i], right[j]], axis=0), values[i, j]


def _serve(reps: Sequence[Representation], measure: Measure) -> bool:
    """Whether networks as they are prepared serve a measure; in single precision, not one of double."""
    return measure.info.symmetric and all(rep.double is rep or not measure.info.always_double for rep in reps)


def can_multiply(kernel: Kernel, rep: Representation) -> bool:
    """Prepare a network for inner products; one that cannot have them will say so when its pairs are scored."""
    try:
        refuse_meta()
        rep.refuse_constant()
        kernel.prepare(rep)
    except LikewiseError:
        return False
    return True


def _groups(kernel: Kernel, reps: Sequence[Representation], pairs: Array) -> list[Array]:
    """Networks of the pairs, those together that fit into memory two groups at a time and have one precision."""
    used = np.flatnonzero(pairs.any(axis=0) | pairs.any(axis=1)).tolist()
    usable = [i for i in used if can_multiply(kernel, reps[i])]
    single = [i for i in usable if kernel == Linear() and reps[i].uses_float32]
    groups = []
    for numbers in (single, sorted({*usable} - {*single})):
        width, limit = max((reps[i].d for i in numbers), default=1), reps[0].workspace.limit
        side = group_size(reps[0].n, width, limit, single=numbers is single)
        groups += [np.array(numbers[start : start + side]) for start in range(0, len(numbers), side)]
    return groups


def _tiles(pairs: Array, groups: Sequence[Array]) -> Iterator[tuple[Array, Array, Array]]:
    """Networks on the left, on the right, and which pairs of them are to be scored; both are one where most are."""
    for p, left in enumerate(groups):
        for right in groups[p:]:
            block = pairs[np.ix_(left, right)]
            if right is left and 4 * block.sum() > len(left) ** 2:
                yield left, left, block
                continue
            if right is not left:
                block = block | pairs[np.ix_(right, left)].T
            if block.any():
                rows, columns = block.any(axis=1), block.any(axis=0)
                yield left[rows], right[columns], block[np.ix_(rows, columns)]
