"""Scores of all pairs on shuffled inputs, or where some are left out; they run and are kept where scores are.

One order of the inputs serves all pairs, so a block is a few draws of all of them. In a store a block is an array, by a
hash of all that it depends on, and a killed run resumes with those that are missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch

from likewise._base.arrays import Array
from likewise._base.hashing import digest, value_digest
from likewise._base.machine import one_thread
from likewise._base.progress import Progress, warn
from likewise.comparison.blocks import Files, draw_in_workers
from likewise.comparison.pairs import Base, Draws
from likewise.comparison.schedule import measure_key, view_key
from likewise.errors import FailedMeasureWarning
from likewise.work.engines import Engine, Local, WorkerDied
from likewise.work.store import Store

DRAWS = "draws"  # the artifacts of a store
SCORES = 500  # about as many in a block
VERSION = "1"  # of how inputs are drawn


@dataclass(frozen=True)
class Resources:
    """Where work runs, what it may hold in memory, where results and the files of views are, whether progress shows."""

    limit: int
    engine: Engine | None = None
    store: Store | None = None
    files: Sequence[Files] = ()
    progress: bool = True


def draw_scores(base: Base, draws: Draws, run: Resources, label: str) -> Array:
    """Scores of all pairs in every draw, (draws, m, m); NaN where a score is undefined."""
    m, kept = len(base.reps), _Kept(base, draws, run.store)
    step = max(1, 2 * SCORES // (m * m))
    blocks = [range(start, min(start + step, draws.count)) for start in range(0, draws.count, step)]
    scores, missing = np.full((draws.count, m, m), np.nan), []
    with Progress(draws.count, label, show=run.progress) as bar:
        for numbers in blocks:
            tables = kept.find(numbers)
            if tables is None:
                missing.append(numbers)
            else:
                scores[numbers.start : numbers.stop] = tables
                bar.advance(len(numbers))
        for numbers, result in _results(base, draws, missing, run):
            if isinstance(result, WorkerDied):
                warn(f"{base.measure.key} gave no score in {label}: {result.reason}", FailedMeasureWarning)
            else:
                scores[numbers.start : numbers.stop] = result
                kept.put(numbers, result)
            bar.advance(len(numbers))
    return scores


def _results(
    base: Base, draws: Draws, blocks: Sequence[range], run: Resources
) -> Iterator[tuple[range, Array | WorkerDied]]:
    if not blocks:
        return
    if run.engine is not None and not isinstance(run.engine, Local):
        yield from draw_in_workers(base, draws, blocks, run.engine, limit=run.limit, files=run.files)
        return
    with one_thread(for_inputs=tuple(rep.view for rep in base.reps)):
        tables = draws.tables(base, [number for numbers in blocks for number in numbers])
        for numbers in blocks:
            yield numbers, np.array(list(islice(tables, len(numbers))))


class _Kept:
    """The blocks of draws in a store, where there is one."""

    def __init__(self, base: Base, draws: Draws, store: Store | None) -> None:
        self._artifacts = None if store is None else store.artifacts(DRAWS)
        self._base = base
        if store is not None:
            views = [view_key(rep.view, base.measure) for rep in base.reps]
            self._facts = [*views, measure_key(base.measure), value_digest(draws.facts), VERSION]

    def _key(self, numbers: range) -> str:
        return digest([" ".join([*self._facts, str(numbers)])])

    def find(self, numbers: range) -> Array | None:
        tensors = None if self._artifacts is None else self._artifacts.find(self._key(numbers))
        return None if tensors is None else tensors["scores"].numpy()

    def put(self, numbers: range, scores: Array) -> None:
        """Keep a block; one where a score failed that the networks themselves have is drawn again."""
        if self._artifacts is None:
            return
        missing = np.isnan(scores).any(axis=0) & ~np.eye(len(self._base.reps), dtype=bool)
        if missing.any() and not np.isnan(self._base.values[missing]).all():
            return
        facts = {"measure": self._base.measure.key, "draws": str(numbers)}
        self._artifacts.put(self._key(numbers), {"scores": torch.from_numpy(scores)}, facts)
