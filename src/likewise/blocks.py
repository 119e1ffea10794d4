"""Blocks of pairs that other processes score: what is sent to them, and what comes back.

A block names files and numbers, and comes back as an array, so that it can go to any process that sees
the same files. A process keeps what it has computed of a job from block to block. Blocks are cut so that
each takes a fraction of a second: what a killed run loses is no more than that. The first blocks are pairs
of which no two have a network in common: whatever follows from one network alone is then computed once, by
whichever process is first, and the others find it in a folder they share.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from likewise.engine import Lost, Remote, calm
from likewise.job import (
    Item,
    Ledger,
    Outcome,
    filled_tables,
    in_tiles,
    items_of,
    score_pair,
    unordered,
)
from likewise.measures.facts import Measure
from likewise.measures.representation import Representation
from likewise.measures.sending import packed, unpacked
from likewise.measures.shared import SharedFolder
from likewise.measures.workspace import Workspace
from likewise.store import Store, read_view

SECONDS = 0.3  # what a block should take
SIDE = 6  # networks along a tile of pairs: inner products of all of them are one product


@dataclass(frozen=True)
class Block:
    """Some pairs of a job. `views` are file and name of each network in it."""

    job: str
    measures: bytes
    views: dict[int, tuple[str, str]]
    items: list[Item]
    networks: int
    limit: int
    shared: str

    def halves(self) -> list[Block]:
        middle = len(self.items) // 2
        return [self.holding(part) for part in (self.items[:middle], self.items[middle:])]

    def holding(self, items: list[Item]) -> Block:
        used = {i for _, *pair in items for i in pair}
        return replace(self, items=items, views={i: self.views[i] for i in used})


@dataclass(frozen=True)
class Scores:
    """What became of a block: values in the order of its items, reasons by their place."""

    values: np.ndarray
    reasons: dict[int, tuple[str, bool]]
    seconds: float


def work_elsewhere(todo: np.ndarray, engine: Remote, limit: int, ledger: Ledger) -> None:
    """Send blocks of pairs out and record scores as they come back."""
    with TemporaryDirectory(prefix="likewise-", ignore_cleanup_errors=True) as folder:
        place = ledger.store or Store(Path(folder) / "store")
        try:
            blocks = Blocks(todo, ledger, place, limit // engine.workers, folder)
            tasks: Iterator[Block] = iter(blocks)
            while True:
                lost = blocks.record_all(engine, tasks)
                if not lost:
                    return
                tasks = iter(lost)
        finally:
            _desks.clear()  # an executor may work in this process
            if place is not ledger.store:
                place.close()


class Blocks:
    """Cuts what is to do into blocks, and records what comes back."""

    def __init__(
        self, todo: np.ndarray, ledger: Ledger, place: Store, limit: int, folder: str
    ) -> None:
        self._todo, self._ledger = todo, ledger
        job = ledger.job
        self._pairs = unordered(todo)
        used = [int(i) for i in np.unique(self._pairs)]
        views = {i: (str(place.save_view(job.views[i])), job.views[i].name) for i in used}
        self._whole = Block(
            uuid.uuid4().hex, packed(job.measures), views, [], len(used), limit, folder
        )
        self._seconds = SECONDS  # of a pair, as far as is known

    def __iter__(self) -> Iterator[Block]:
        first = disjoint(self._pairs)
        for i, j in self._pairs[first]:
            yield self._whole.holding(items_of(self._todo, int(i), int(j)))
        rest, start = in_tiles(self._pairs[~first], SIDE), 0
        while start < len(rest):
            count = max(1, min(SIDE * SIDE, int(SECONDS / self._seconds)))
            block = rest[start : start + count]
            items = [item for i, j in block for item in items_of(self._todo, int(i), int(j))]
            yield self._whole.holding(items)
            start += count

    def record_all(self, engine: Remote, tasks: Iterator[Block]) -> list[Block]:
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
        pairs = len({(min(i, j), max(i, j)) for _, i, j in block.items})
        self._seconds = (self._seconds + scores.seconds / pairs) / 2

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


@dataclass
class Desk:
    """What a process keeps of a job between blocks."""

    job: str
    measures: Sequence[Measure]
    workspace: Workspace
    reps: dict[int, Representation] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def fetch(self, views: dict[int, tuple[str, str]]) -> dict[int, Representation]:
        with self.lock:
            for i, (path, name) in views.items():
                if i not in self.reps:
                    view = read_view(Path(path)).named(name)
                    self.reps[i] = rep = Representation(view, self.workspace)
                    if self.workspace.shared is not None:
                        self.workspace.shared.names[rep.key] = str(i)
            return {i: self.reps[i] for i in views}


_desks: dict[str, Desk] = {}
_lock = threading.Lock()


def score_block(block: Block) -> Scores:
    """Score some pairs in this process; the whole task of a worker."""
    start = time.perf_counter()
    with calm():
        desk = _desk(block)
        reps = desk.fetch(block.views)
        asked = [desk.measures[k] for k in sorted({k for k, _, _ in block.items})]
        by_pair: dict[tuple[int, int], list[Item]] = {}
        for k, i, j in block.items:
            by_pair.setdefault((min(i, j), max(i, j)), []).append((k, i, j))
        tables = filled_tables(asked, len(by_pair), reps, desk.workspace)
        found = {
            item: result
            for items in by_pair.values()
            for item, result in score_pair(items, desk.measures, reps, tables)
        }
    results = [found[item] for item in block.items]
    reasons = {p: (r.reason, r.final) for p, r in enumerate(results) if r.reason}
    return Scores(np.array([r.value for r in results]), reasons, time.perf_counter() - start)


def _desk(block: Block) -> Desk:
    """The desk of a block's job; that of an earlier job is cleared."""
    with _lock:
        if block.job not in _desks:
            shared = SharedFolder(Path(block.shared), block.limit) if block.shared else None
            workspace = Workspace(block.limit, networks=block.networks, shared=shared)
            _desks.clear()
            _desks[block.job] = Desk(block.job, unpacked(block.measures), workspace)
        return _desks[block.job]
