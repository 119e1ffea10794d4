"""Whether a score is more than chance.

A null is made by shuffling the inputs of one side: whatever remains is owed to n, d and the measure. It works on what
was computed for the score itself: Gram and distance matrices, decompositions and neighbour lists are taken
by index, never computed again.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import torch

from likewise._base.progress import Progress
from likewise._base.threads import one_thread
from likewise.comparison.confounding import Unexplained
from likewise.comparison.resampling import (
    check_count,
    prepared,
    reason,
    representations,
    score_table,
)
from likewise.comparison.schedule import attempt
from likewise.comparison.shuffles import Orders, null_groups
from likewise.errors import UndefinedError
from likewise.matrices.similarity import SimilarityMatrix
from likewise.matrices.uncertainty import Calibration
from likewise.measures.facts import SCALE, Measure
from likewise.measures.kernels import InnerProducts, Kernel
from likewise.measures.pair import Pair
from likewise.measures.permutations import orders_at_once, permuted_products
from likewise.measures.representation import Representation
from likewise.measures.workspace import parse_memory
from likewise.views import Activations


def calibrate(
    x: Any,
    y: Any = None,
    measure: Any = "cka-debiased",
    permutations: int = 200,
    seed: int = 0,
    *,
    within: Any = None,
    memory: str | int | None = None,
    progress: bool = True,
) -> Calibration:
    """How far a score is from what unrelated networks of these sizes get.

    `calibrate(x, y, "cka")` for two networks; `calibrate({"a": x, "b": y, ...}, measure="cka")` for all pairs.
    `within` asks for more than the classes explain: an array of one label per input, or "labels" for the
    labels the views carry; inputs are then shuffled among those of the same label only. A measure that does not
    look at single inputs has no null, and NaN for every number but its value. With a `confounder`, chance is two
    networks that share what functions of the confounder explain: only what is left is shuffled.

    >>> import numpy as np, likewise
    >>> x, y = np.random.default_rng(0).normal(size=(2, 50, 200))
    >>> result = likewise.calibrate(x, y, "cka", permutations=50)
    >>> bool(result.value > 0.7 and result.calibrated < 0.05)
    True
    """
    check_count("permutations", permutations)
    views, bound, single = prepared(x, y, measure, seed)
    groups = null_groups(bound, within, views)
    count = permutations if bound.info.paired else 0
    values, nulls = _null_table(views, bound, count, seed, parse_memory(memory), progress, groups)
    parts: dict[str, Any] = calibrated(values, nulls, bound)
    how: dict[str, Any] = {
        "measure": bound.key,
        "permutations": count,
        "groups": 0 if groups is None else int(groups.max()) + 1,
    }
    if single:
        if np.isnan(values[0, 1]):
            raise UndefinedError(reason(views, bound))
        parts = {name: float(grid[0, 1]) for name, grid in parts.items()}
        return Calibration(value=float(values[0, 1]), **parts, **how)
    return Calibration(value=values, names=tuple(v.name for v in views), **parts, **how)


def null_scores(pair: Pair, measure: Measure, permutations: int, seed: int, within: Any = None) -> np.ndarray:
    """Scores of a pair with the inputs of its second side shuffled, (permutations,).

    `within` as in `calibrate`. An empty array for a measure that does not look at single inputs.
    """
    with one_thread(for_inputs=(pair.a.view, pair.b.view)):
        return np.array(list(null_draws(pair, measure, permutations, seed, within)))


def null_draws(pair: Pair, measure: Measure, permutations: int, seed: int, within: Any = None) -> Iterator[float]:
    """`null_scores` one after another, for who may want to stop before the last."""
    if not measure.info.paired:
        return
    groups = null_groups(measure, within, [pair.a.view, pair.b.view])
    pair.a.workspace.resampled = pair.b.workspace.resampled = True
    attempt(measure, pair)  # what the pair shares with its shuffles is there from now on
    try:
        orders = Orders(permutations, seed, groups)
        for (other,), tables in _shuffled(measure, [pair.a], [pair.b], pair.tables, orders):
            yield attempt(measure, Pair(pair.a, other, tables))[0]
    except UndefinedError:  # a confounder that explains everything
        yield from [float("nan")] * permutations


def _shuffled(
    measure: Measure,
    left: Sequence[Representation],
    right: Sequence[Representation],
    tables: Mapping[Kernel, InnerProducts],
    orders: Orders,
) -> Iterator[tuple[Sequence[Representation], dict[Kernel, InnerProducts]]]:
    """The right networks as chance would have them, and what is known of their products with the left ones."""
    confounder = measure.options.get("confounder")
    if confounder is not None:
        unexplained = Unexplained(confounder, orders.groups)
        rng = np.random.default_rng(orders.seed)
        for _ in range(orders.count):
            yield [unexplained.shuffled(rep, rng) for rep in right], {}
        return
    every = orders.draw(right[0].n)
    device = right[0].values.device
    while batch := list(islice(every, orders_at_once(right[0].n))):
        index = torch.from_numpy(np.stack(batch)).to(device)
        yield from permuted_products(measure.kernels, tables, left, right, index)


def calibrated(values: np.ndarray, nulls: np.ndarray, measure: Measure) -> dict[str, np.ndarray]:
    """Null mean, quantile, calibrated score and p from scores and their nulls (permutations first)."""
    if not measure.info.paired or not len(nulls):
        return {name: np.full_like(values, np.nan) for name in Calibration.FIELDS[1:]}
    sign = 1.0 if measure.info.similarity else -1.0
    best = measure.info.identity
    if best is None:
        best = measure.info.bounds[1 if measure.info.similarity else 0]
    defined = (~np.isnan(nulls)).sum(axis=0)
    with warnings.catch_warnings():  # a pair without any null has NaN for one
        warnings.simplefilter("ignore", RuntimeWarning)
        threshold = sign * np.nanquantile(sign * nulls, 0.95, axis=0)
        average = np.nanmean(nulls, axis=0)
        scale = np.fmax(np.abs(values), np.nanmax(np.abs(nulls), axis=0))
    if SCALE in measure.info.invariant_to:
        scale = np.fmax(scale, 1.0)
    slack = 1e-9 * scale  # a shuffle that changes nothing counts
    if best is None:
        score = np.full_like(values, np.nan)
    else:
        room = sign * (best - threshold)
        gain = np.maximum(0.0, sign * (values - threshold))
        score = np.where(room > slack, gain / np.where(room > slack, room, 1.0), 0.0)
        score = np.where(np.isnan(values + threshold), np.nan, np.minimum(score, 1.0))
    beyond = (sign * nulls >= sign * values - slack).sum(axis=0)
    below = (sign * nulls <= sign * values + slack).sum(axis=0)
    known = ~np.isnan(values) & (defined > 0)
    grids = {
        "null_mean": average,
        "null_quantile": threshold,
        "calibrated": score,
        "p": np.where(known, (1 + beyond) / (1 + defined), np.nan),
        "p_less": np.where(known, (1 + below) / (1 + defined), np.nan),
    }
    for grid in grids.values():
        np.fill_diagonal(grid, np.nan)  # a network against itself has no null
    return grids | {"q": false_discovery(grids["p"], symmetric=measure.info.symmetric)}


def false_discovery(p: np.ndarray, *, symmetric: bool) -> np.ndarray:
    """p of all pairs, corrected for their number (Benjamini and Hochberg); a symmetric pair counts once."""
    from scipy.stats import false_discovery_control

    q = np.full_like(p, np.nan)
    counted = ~np.isnan(p) & (np.triu(np.ones_like(p), 1) > 0 if symmetric else True)
    if counted.any():
        q[counted] = false_discovery_control(p[counted])
    return np.fmin(q, q.T) if symmetric else q


def calibrated_matrices(
    matrices: Mapping[str, SimilarityMatrix],
    views: list[Activations],
    measures: list[Measure],
    *,
    seed: int,
    limit: int,
    permutations: int = 200,
    within: Any = None,
) -> dict[str, SimilarityMatrix]:
    """Matrices with null, calibrated score and p of every pair beside their values."""
    made = {}
    for measure in measures:
        groups = null_groups(measure, within, views)
        matrix = matrices[measure.key]
        count = permutations if measure.info.paired else 0
        try:
            nulls = _null_table(views, measure, count, seed, limit, True, groups)[1]
        except UndefinedError:  # a confounder that explains everything
            nulls = np.empty(0)
        null = {"permutations": count, "groups": 0 if groups is None else int(groups.max()) + 1}
        made[measure.key] = replace(
            matrix,
            extra=calibrated(matrix.values, nulls, measure),
            about={**matrix.about, **null},
        )
    return made


def _null_table(
    views: list[Activations],
    measure: Measure,
    permutations: int,
    seed: int,
    limit: int,
    progress: bool,
    groups: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Scores (m, m), and scores with the second network shuffled (permutations, m, m)."""
    reps = representations(views, limit)
    tables: dict[Kernel, InnerProducts] = {}
    nulls = []
    with (
        Progress(permutations, "shuffling", shown=progress) as bar,
        one_thread(for_inputs=tuple(views)),
    ):
        values = score_table(measure, reps, reps, tables)
        orders = Orders(permutations, seed, groups)
        for others, shared in _shuffled(measure, reps, reps, tables, orders):
            nulls.append(score_table(measure, reps, others, shared))
            bar.advance()
    return values, np.array(nulls)
