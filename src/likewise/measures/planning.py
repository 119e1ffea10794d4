"""What a comparison of many networks would cost: seconds, memory and bytes, before it runs.

A cost is one number per network and one per pair. Their seconds are timed here, on a few networks of noise of the
same size; how they add up, and what they hold in memory and on disk, follows from how `compare` goes through pairs.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise._base.arrays import Array
from likewise._base.machine import one_thread
from likewise.errors import InputError
from likewise.measures.function import Measure
from likewise.measures.numerics.kernels import (
    BLOCK,
    FEW,
    ROWS,
    Distance,
    Linear,
    first_rows,
    group_count,
    group_size,
    multiply,
    row_products,
)
from likewise.measures.pair import Pair
from likewise.measures.registry import get
from likewise.measures.representation import Representation
from likewise.measures.workspace import Workspace, parse_memory
from likewise.views import Activations

SOME = 224  # networks that products are timed on
LONG = 1.0  # seconds of a trial that is not repeated
LOOP = 8e-6  # seconds of the loop over pairs, per pair
RECORD = 2e-7  # of scores that come as a table, per pair
COLLECT = 1.5e-5  # of the process that collects what workers score, per pair
STORE = 1.5e-5  # of a store, per score
ROW = 340  # bytes of a score in a store
REST = 5 * 10**7  # bytes of whatever comes and goes
RESULT = 26  # bytes per entry of the result while it is made: two matrices and what is to do


@dataclass(frozen=True)
class Cost:
    """What a comparison would take.

    Attributes:
        networks: How many networks.
        pairs: How many scores are computed.
        seconds: CPU seconds of all workers together.
        hours: Hours on the clock, where workers have a core each and nothing else to do; no less than it takes the one
            process that collects scores and stores them.
        memory: About the most bytes held beside the views: by the matrix in the process that collects scores, and by
            the work of one worker.
        views: Bytes of the views.
        stored: Bytes of the scores in a store.
        network_seconds: CPU seconds per network.
        pair_seconds: CPU seconds per pair.
        groups: In how many groups networks are taken, every two of which make a tile.
    """

    networks: int
    pairs: int
    seconds: float
    hours: float
    memory: int
    views: int
    stored: int
    network_seconds: float
    pair_seconds: float
    groups: int


def cost(
    measure: str | Measure, networks: int, n: int, d: int, *, memory: Any = None, workers: int = 1, store: bool = False
) -> Cost:
    """What `compare` of many networks would cost on machines like this one; it takes as long as a few pairs.

    Args:
        measure: Its name, or the measure, of activations.
        networks: How many networks.
        n: How many inputs.
        d: How many neurons.
        memory: The most to hold at a time, such as "4GB". By default two thirds of what is free.
        workers: How many processes share the work.
        store: Whether scores go to a store.

    Returns:
        CPU seconds, memory and bytes, in all and per network and pair.

    Raises:
        InputError: The measure does not look at activations, or there are too few networks.

    Example:
        >>> import likewise
        >>> cost = likewise.measures.cost("cka-debiased", 1000, n=100, d=16)
        >>> cost.pairs, cost.views
        (499500, 6400000)
    """
    measure, limit = get(measure), parse_memory(memory) // workers
    if measure.info.on != "representation" or networks < 2:
        raise InputError(
            f"a cost is that of two networks or more and a measure of activations, got {networks} and "
            f"{measure.key}, which looks at {measure.info.on}. Name another measure, or more networks."
        )
    pairs = networks * (networks - 1) // (2 if measure.info.symmetric else 1)
    together = measure.info.matrix is not None and bool(measure.kernels)
    with one_thread():
        per_network, per_pair = (_time_products if together else _time_pairs)(measure, n, d)
    side = group_size(n, d, limit, single=measure.kernels == (Linear(),))
    groups = -(-networks // side) if together else 1
    if together and workers > 1:
        groups = max(groups, group_count(networks, n, workers))
    work = networks * per_network * groups + pairs * per_pair  # prepared for every tile that it is in
    collect = pairs * ((COLLECT if workers > 1 else 0.0) + (STORE if store else 0.0))
    return Cost(
        networks=networks,
        pairs=pairs,
        seconds=work + collect,
        hours=(max(work / workers, collect) if workers > 1 else work + collect) / 3600,
        memory=REST + RESULT * networks**2 + _held(measure, networks, min(networks, 2 * side), n, d, limit),
        views=4 * networks * n * d,
        stored=ROW * pairs if store else 0,
        network_seconds=per_network,
        pair_seconds=per_pair,
        groups=groups,
    )


def _time_products(measure: Measure, n: int, d: int) -> tuple[float, float]:
    """Seconds per network and per pair where many pairs come from one product, whose own time is a pair's."""
    kernel, pairs, whole, products = measure.kernels[0], SOME * (SOME - 1) / 2, [0.0], [0.0]
    multiply(kernel, _prepared(_noise(FEW, n, d)))  # wakes libraries
    while len(whole) < 3 and whole[-1] < LONG:  # the one that was disturbed less
        reps = _prepared(_noise(SOME, n, d))
        start = time.process_time()
        measure.scores(multiply(kernel, reps))
        whole.append(time.process_time() - start)
        rows, times = first_rows(kernel, reps)
        start = time.process_time()
        row_products(rows, rows[:0])
        products.append(times * (time.process_time() - start))
    alone = min(products[1:])
    return max(0.0, min(whole[1:]) - alone) / SOME, alone / pairs + RECORD


def _time_pairs(measure: Measure, n: int, d: int) -> tuple[float, float]:
    """The same of pairs that are scored alone, where networks that were in a pair before bring nothing new."""
    seconds = []
    for arrays in (_noise(2, n, d), _noise(3, n, d)):  # the first wakes libraries
        a, *others = _prepared(arrays)
        for b in (*others, *others):
            start = time.process_time()
            measure.score(Pair(a, b))
            seconds.append(time.process_time() - start)
    alone = min(seconds[4:])
    return max(0.0, seconds[3] - alone), alone + LOOP


def _noise(m: int, n: int, d: int) -> list[Array]:
    return list(np.random.default_rng(0).normal(size=(m, n, d)).astype(np.float32))


def _prepared(arrays: list[Array]) -> list[Representation]:
    workspace = Workspace(networks=len(arrays), once=True)
    return [Representation(Activations(array), workspace) for array in arrays]


def _held(measure: Measure, networks: int, in_tile: int, n: int, d: int, limit: int) -> int:
    """About the bytes of what networks are prepared to, of rows that are multiplied and of the products of a tile."""
    by_rows = measure.kernels in ((Linear(),), (Distance(),)) or measure.info.family == "neighbors"
    squares = 0 if by_rows or "n²" not in measure.info.cost else n * n
    if measure.info.matrix is None:
        return min(limit, networks * 8 * (3 * n * d + 3 * squares))
    single = measure.kernels == (Linear(),)
    prepared = min(limit, networks * (4 * n * d if single else 16 * n * d + 8 * squares))
    rows = min(limit // 8, BLOCK, in_tile * n * min(n, ROWS) * (4 if single else 8))
    return prepared + rows + 40 * in_tile**2
