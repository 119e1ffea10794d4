"""Blocks of pairs that other processes score: what is sent to them, and what comes back.

A block names files and numbers, and comes back as an array, so that it can go to any process that sees
the same files; a copy of this process has the views already. A process keeps what it has computed of a job
from block to block. Blocks are cut so that each takes a fraction of a second: what a killed run loses is no
more than that. The first blocks are pairs of which no two have a network in common: whatever follows from
one network alone is then computed once, by whichever process is first, and the others find it in a folder
they share. Measures that are inner products of n x n matrices come in tiles of many networks, since there
one product serves all pairs.
"""

from __future__ import annotations

import math
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from likewise._base.machine import single_threaded
from likewise.comparison.schedule import (
    Item,
    Ledger,
    Outcome,
    items_of,
    kernels_of,
    score_items,
    tile_order,
    unordered_pairs,
    want_distances,
)
from likewise.measures.kernels import can_prepare, inner_products
from likewise.measures.representation import Representation
from likewise.measures.transport import SharedFolder, pack, unpack
from likewise.measures.workspace import Workspace
from likewise.views import Activations
from likewise.views.cache import VIEWS, put_view, read_view
from likewise.work.artifacts import Artifacts
from likewise.work.engines import Engine, Lost, Remote

SECONDS = 0.3  # what a block should take
MOST = 50  # pairs in a block
TILE_SECONDS = 2.0  # what a tile of inner products may take
ENTRY_SECONDS = 1e-8  # of an entry of an n x n matrix, for one network of a tile


@dataclass(frozen=True)
class Block:
    """Some pairs of a job. `views` are files and name of each network in it; no files where the process has them."""

    job: str
    measures: bytes
    views: dict[int, tuple[tuple[Path, ...], str]]
    items: list[Item]
    networks: int
    limit: int
    shared: str
    first: bool = False  # of its networks; what all others need of them is computed

    def halves(self) -> list[Block]:
        """The block as two of half its items."""
        middle = len(self.items) // 2
        return [self.with_items(part) for part in (self.items[:middle], self.items[middle:])]

    def with_items(self, items: list[Item]) -> Block:
        """The block with these items only, and the views they need."""
        used = {i for _, *pair in items for i in pair}
        return replace(self, items=items, views={i: self.views[i] for i in used})


@dataclass(frozen=True)
class Scores:
    """What became of a block: values in the order of its items, reasons by their place."""

    values: np.ndarray
    reasons: dict[int, tuple[str, bool]]
    seconds: float


def score_remotely(todo: np.ndarray, engine: Engine, limit: int, ledger: Ledger) -> None:
    """Send blocks of pairs out and record scores as they come back."""
    job = ledger.job
    copied = isinstance(engine, Remote) and engine.prepare(all(measure.built_in for measure in job.measures))
    with TemporaryDirectory(prefix="likewise-", ignore_cleanup_errors=True) as folder:
        blocks = Blocks(todo, ledger, engine.workers, limit, folder)
        if copied:
            blocks.inherit()
        try:
            tasks: Iterator[Block] = iter(blocks)
            while True:
                lost = blocks.record_all(engine, tasks)
                if not lost:
                    return
                tasks = iter(lost)
        finally:
            _states.clear()  # an executor may work in this process
            _inherited.pop(blocks.job, None)


class Blocks:
    """Cuts what is to do into blocks, and records what comes back."""

    def __init__(self, todo: np.ndarray, ledger: Ledger, workers: int, limit: int, folder: str) -> None:
        self._ledger, self._workers = ledger, workers
        self._views: dict[int, tuple[tuple[Path, ...], str]] = {}
        job, self._pairs = ledger.job, unordered_pairs(todo)
        used = [int(i) for i in np.unique(self._pairs)]
        self._place = Artifacts(Path(folder) / VIEWS)
        self._empty = Block(uuid.uuid4().hex, pack(job.measures), {}, [], len(used), limit // workers, folder)
        kernels = kernels_of(job.measures, len(self._pairs), [job.views[i] for i in used])
        tiled = np.array([bool(kernels & set(m.kernels)) for m in job.measures])
        self._kernels = len(kernels)
        self._tiled = todo & tiled[:, None, None]
        self._singly = todo & ~tiled[:, None, None]
        self._seconds = SECONDS  # of a pair, as far as is known

    def __iter__(self) -> Iterator[Block]:
        first = disjoint(self._pairs)
        for pair in self._pairs[first]:
            yield replace(self._block(self._items(self._singly, [pair]), also=pair), first=True)
        yield from self._tiles()
        rest, start = tile_order(self._pairs[~first], MOST), 0
        while start < len(rest):
            fair = -(-(len(rest) - start) // (2 * self._workers))  # smaller ones at the end, so that all end together
            count = max(1, min(MOST, int(SECONDS / self._seconds), fair))
            items = self._items(self._singly, rest[start : start + count])
            if items:
                yield self._block(items)
            start += count

    def _tiles(self) -> Iterator[Block]:
        """Networks in groups, every two of them a block; few, since each makes its matrices anew."""
        pairs = unordered_pairs(self._tiled)
        if not len(pairs):
            return
        networks = np.unique(pairs)
        n = self._ledger.job.views[int(networks[0])].n
        whole = 2 * len(networks) * self._kernels * n * n * ENTRY_SECONDS
        least = 1 if self._singly.any() else math.isqrt(2 * self._workers)  # work for all of them
        groups = max(least, math.ceil(whole / TILE_SECONDS))
        side = -(-len(networks) // groups)
        tile = np.searchsorted(networks, pairs) // side
        for place in np.unique(tile, axis=0):
            members = pairs[(tile == place).all(axis=1)]
            yield self._block(self._items(self._tiled, members))

    def inherit(self) -> None:
        """Blocks go to copies of this process: they find the views where they are."""
        views = self._ledger.job.views
        self._views = {i: ((), view.name) for i, view in enumerate(views)}
        _inherited[self.job] = views

    @property
    def job(self) -> str:
        """What the job is called."""
        return self._empty.job

    def _block(self, items: list[Item], also: Iterable[int] = ()) -> Block:
        """A block of these items; views that no block had before are written now, while others are scored."""
        used = sorted({i for _, *pair in items for i in pair} | {int(i) for i in also})
        return replace(self._empty, items=items, views={i: self._view(i) for i in used})

    def _view(self, i: int) -> tuple[tuple[Path, ...], str]:
        if i not in self._views:
            job = self._ledger.job
            files = job.files[i] if job.files else put_view(self._place, job.views[i])
            self._views[i] = (tuple(path.absolute() for path in files), job.views[i].name)
        return self._views[i]

    def _items(self, todo: np.ndarray, pairs: Iterable[Any]) -> list[Item]:
        return [item for i, j in pairs for item in items_of(todo, int(i), int(j))]

    def record_all(self, engine: Engine, tasks: Iterator[Block]) -> list[Block]:
        """Run blocks; of those that end their process, halves to try again."""
        lost: list[Block] = []
        with closing(engine.run(score_block, tasks)) as results:
            for block, scores in results:
                if not isinstance(scores, Lost):
                    self._record(block, scores)
                elif len(block.items) > 1:
                    lost += block.halves()
                else:
                    self._give_up(block.items[0], scores)
        return lost

    def _record(self, block: Block, scores: Scores) -> None:
        for place, (item, value) in enumerate(zip(block.items, scores.values, strict=True)):
            reason, final = scores.reasons.get(place, ("", True))
            self._ledger.record(item, Outcome(float(value), reason, final))
        k = block.items[0][0] if block.items else 0
        if not block.first and block.items and not self._tiled[k].any():
            self._seconds = (self._seconds + scores.seconds / _pairs(block.items)) / 2

    def _give_up(self, item: Item, lost: Lost) -> None:
        job = self._ledger.job
        k, i, j = item
        a, b = job.views[i].label, job.views[j].label
        reason = f"{job.measures[k].key} failed on {a} and {b}: {lost.reason}"
        self._ledger.record(item, Outcome(float("nan"), reason, final=False))


def disjoint(pairs: np.ndarray) -> np.ndarray:
    """Which pairs to take so that no network is in two of them, as many as come along."""
    taken = np.zeros(len(pairs), dtype=bool)
    seen: set[int] = set()
    for place, (i, j) in enumerate(pairs):
        if i != j and not {i, j} & seen:
            taken[place] = True
            seen |= {i, j}
    return taken


# --- in the other process -------------------------------------------------------------------------


class JobState:
    """What a process keeps of a job between blocks."""

    def __init__(self, block: Block) -> None:
        shared = SharedFolder(Path(block.shared), block.limit)
        self.measures = unpack(block.measures)
        distances = want_distances(self.measures)
        self.workspace = Workspace(block.limit, networks=block.networks, distances=distances, shared=shared)
        self.reps: dict[int, Representation] = {}
        self._job, self._shared, self._lock = block.job, shared, threading.Lock()
        self.libraries = ThreadpoolController()

    def fetch(self, views: Mapping[int, tuple[tuple[Path, ...], str]]) -> dict[int, Representation]:
        """The representations of these views, each read once."""
        with self._lock:
            for i, (files, name) in views.items():
                if i not in self.reps:
                    view = read_view(files, name) if files else _inherited[self._job][i]
                    self.reps[i] = rep = Representation(view, self.workspace)
                    self._shared.names[rep.key] = str(i)
            return {i: self.reps[i] for i in views}


_states: dict[str, JobState] = {}
_inherited: dict[str, list[Activations]] = {}  # views by job, in the process that has them and in its copies
_lock = threading.Lock()


def score_block(block: Block) -> Scores:
    """Score some pairs in this process; the whole task of a worker."""
    start = time.thread_time()
    state = _state_of(block)
    with single_threaded(state.libraries):
        reps = state.fetch(block.views)
        if block.first:
            kernels = kernels_of(state.measures, block.networks**2, list(reps.values()))
            for kernel, rep in product(kernels, reps.values()):
                can_prepare(kernel, rep)
        results = _score(block.items, state, reps)
    reasons = {p: (r.reason, r.final) for p, r in enumerate(results) if r.reason}
    return Scores(np.array([r.value for r in results]), reasons, time.thread_time() - start)


def _score(items: list[Item], state: JobState, reps: dict[int, Representation]) -> list[Outcome]:
    asked = [state.measures[k] for k in sorted({k for k, _, _ in items})]
    networks = list(reps.values())
    tables = inner_products(kernels_of(asked, _pairs(items), networks), networks) if items else {}
    return [result for _, result in score_items(items, state.measures, reps, tables=tables)]


def _pairs(items: Iterable[Item]) -> int:
    """How many pairs of networks there are, in whichever direction."""
    return len({(min(i, j), max(i, j)) for _, i, j in items})


def _state_of(block: Block) -> JobState:
    """The state of a block's job; that of an earlier job is cleared."""
    with _lock:
        if block.job not in _states:
            _states.clear()
            _states[block.job] = JobState(block)
        return _states[block.job]
