"""Blocks of pairs that other processes score: what is sent to them, and what comes back.

A block names files and numbers, so that it can go to any process that sees the same files; views are mapped there,
not sent. A worker keeps what it has computed of a job from block to block. Blocks are cut so that each takes a
fraction of a second: what a killed run loses is no more than that. Measures that are inner products of n x n matrices
come in tiles of many networks, since there one product serves all pairs.
"""

from __future__ import annotations

import pickle
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import cloudpickle
import numpy as np
from threadpoolctl import ThreadpoolController

from likewise._base.arrays import Array
from likewise._base.machine import single_threaded
from likewise.comparison.pairs import (
    Base,
    Draws,
    Item,
    Outcome,
    items_of,
    kernels_of,
    score_items,
    score_tables,
    single_pass,
    tile_order,
    unordered_pairs,
    want_distances,
)
from likewise.errors import InputError, WorkerError
from likewise.measures.function import Measure
from likewise.measures.numerics.kernels import group_count
from likewise.measures.representation import Representation
from likewise.measures.workspace import Workspace
from likewise.views import Activations
from likewise.views.cache import VIEWS, put_view, read_view
from likewise.work.engines import Engine, WorkerDied
from likewise.work.store import Artifacts

SECONDS = 0.3  # what a block should take
MOST = 50  # pairs in a block
Files = tuple[Path, ...]
Scores = tuple[list[Outcome], float]  # one per item, and the seconds they took


@dataclass(frozen=True)
class Block:
    """Some pairs of a job. `views` are the files and the name of each network in it."""

    job: str
    measures: bytes
    limit: int
    networks: int
    views: Mapping[int, tuple[Files, str]]
    items: Sequence[Item]
    draws: Draws | None = None  # with the numbers of those that are scored, for all pairs
    numbers: range = range(0)


class Blocks:
    """Cuts a job into blocks. `files` are those of its views, where they are on disk."""

    def __init__(
        self,
        todo: Array,
        views: Sequence[Activations],
        measures: Sequence[Measure],
        *,
        workers: int,
        limit: int,
        folder: Path,
        files: Sequence[Files] = (),
    ) -> None:
        self._all_views, self._workers = views, workers
        self._folder, self._files = Artifacts(folder), dict(enumerate(files))
        self._pairs = unordered_pairs(todo)
        used = [int(i) for i in np.unique(self._pairs)]
        self._empty = Block(uuid.uuid4().hex, pack(measures), limit // workers, len(used), {}, ())
        kernels = kernels_of(measures, len(self._pairs), [views[i] for i in used])
        tiled = np.array([bool(kernels & set(measure.kernels)) for measure in measures])[:, None, None]
        self._kernels, self._tiled, self._single = len(kernels), todo & tiled, todo & ~tiled
        self.pair_seconds = SECONDS  # corrected as results come

    def __iter__(self) -> Iterator[Block]:
        yield from self._tiles()
        pairs, start = unordered_pairs(self._single), 0
        pairs = tile_order(pairs, MOST)
        while start < len(pairs):
            fair = -(-(len(pairs) - start) // (2 * self._workers))  # smaller ones at the end, so that all end together
            count = max(1, min(MOST, int(SECONDS / self.pair_seconds), fair))
            yield self.block(items_of(self._single, pairs[start : start + count]))
            start += count

    def _tiles(self) -> Iterator[Block]:
        """Networks in groups, every two of them a block."""
        pairs = unordered_pairs(self._tiled)
        if not len(pairs):
            return
        networks = np.unique(pairs)
        n = self._all_views[int(networks[0])].n
        alone = not self._single.any()
        side = -(-len(networks) // group_count(len(networks), n, self._workers, kernels=self._kernels, alone=alone))
        tiles = np.searchsorted(networks, pairs) // side
        for tile in np.unique(tiles, axis=0):
            yield self.block(items_of(self._tiled, pairs[(tiles == tile).all(axis=1)]))

    def block(self, items: Sequence[Item]) -> Block:
        """A block of these items; views that are not on disk are written now, while workers score other blocks."""
        used = sorted({i for _, *pair in items for i in pair})
        return replace(self._empty, items=items, views={i: self._view(i) for i in used})

    def _view(self, i: int) -> tuple[Files, str]:
        view = self._all_views[i]
        if i not in self._files:
            self._files[i] = put_view(self._folder, view)
        return tuple(path.absolute() for path in self._files[i]), view.name

    def learn(self, block: Block, seconds: float) -> None:
        """Correct the time a pair takes by that of a block."""
        if not self._tiled[block.items[0]]:
            self.pair_seconds = (self.pair_seconds + seconds / _count_pairs(block.items)) / 2


def score_in_workers(
    todo: Array,
    views: Sequence[Activations],
    measures: Sequence[Measure],
    engine: Engine,
    *,
    limit: int,
    files: Sequence[Files],
    record: Callable[[Collection[tuple[Item, Outcome]]], None],
) -> None:
    """Send blocks of pairs out and record scores as they come back.

    Items of a block that ended its worker twice are sent one by one; those that do so again are undefined. A measure
    that has done nothing else is not sent again.
    """
    with TemporaryDirectory(prefix="likewise-", ignore_cleanup_errors=True) as folder:
        blocks = Blocks(
            todo, views, measures, workers=engine.workers, limit=limit, folder=Path(folder) / VIEWS, files=files
        )
        try:
            first = _Run(blocks, engine, record)
            first.send(blocks)
            alone = _Run(blocks, engine, record)
            alone.send(blocks.block([item]) for item in [*first.lost, *first.held_back])
        finally:
            _states.clear()  # an executor may work in this process
    reasons = dict.fromkeys(
        alone.held_back, "it was not tried, since the measure ended its process on all pairs before"
    )
    for (k, i, j), reason in {**alone.lost, **reasons}.items():
        reason = f"{measures[k].key} failed on {views[i].label} and {views[j].label}: {reason}"
        record([((k, i, j), Outcome(float("nan"), reason, final=False))])


def draw_in_workers(
    base: Base, draws: Draws, blocks: Iterable[range], engine: Engine, *, limit: int, files: Sequence[Files]
) -> Iterator[tuple[range, Array | WorkerDied]]:
    """Blocks of draws, each with the scores of all pairs, as they come back."""
    views, pairs = [rep.view for rep in base.reps], np.triu(np.ones((1, len(base.reps), len(base.reps)), dtype=bool), 1)
    with TemporaryDirectory(prefix="likewise-", ignore_cleanup_errors=True) as folder:
        cut = Blocks(
            pairs, views, [base.measure], workers=engine.workers, limit=limit, folder=Path(folder) / VIEWS, files=files
        )
        whole = replace(cut.block(items_of(pairs, unordered_pairs(pairs))), items=(), draws=draws)
        tasks = (replace(whole, numbers=numbers) for numbers in blocks)
        try:
            with closing(engine.run(draw_block, tasks)) as results:
                for block, tables in results:
                    yield block.numbers, tables
        finally:
            _states.clear()  # an executor may work in this process


class _Run:
    """Sends blocks and records what comes back. `lost` are items that ended their worker, with the reason.

    `held_back` are those of measures that ended two workers and gave no score.
    """

    def __init__(
        self, blocks: Blocks, engine: Engine, record: Callable[[Collection[tuple[Item, Outcome]]], None]
    ) -> None:
        self._blocks, self._engine, self._record = blocks, engine, record
        self.lost: dict[Item, str] = {}
        self.held_back: list[Item] = []
        self._ended, self._scored = Counter[int](), set[int]()

    def send(self, tasks: Iterable[Block]) -> None:
        """Score blocks, or as many of them as there is hope for."""
        with closing(self._engine.run(score_block, self._promising(tasks))) as results:
            for block, scores in results:
                if isinstance(scores, WorkerDied):
                    self.lost |= dict.fromkeys(block.items, scores.reason)
                    self._ended.update({k for k, _, _ in block.items})
                    continue
                outcomes, seconds = scores
                self._record(list(zip(block.items, outcomes, strict=True)))
                self._scored.update(k for k, _, _ in block.items)
                self._blocks.learn(block, seconds)

    def _promising(self, tasks: Iterable[Block]) -> Iterator[Block]:
        for block in tasks:
            deadly = {k for k, count in self._ended.items() if count >= 2 and k not in self._scored}
            self.held_back += [item for item in block.items if item[0] in deadly]
            items = [item for item in block.items if item[0] not in deadly]
            if items:
                yield replace(block, items=items)


def pack(measures: Iterable[Measure]) -> bytes:
    """Measures as bytes: ours by name, functions of the user's as they are, among them lambdas."""
    measures = [measure if measure.built_in else replace(measure, variants={}) for measure in measures]
    for measure in measures:
        try:
            cloudpickle.dumps(measure)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise InputError(
                f"{measure.key} cannot be sent to other processes: {error}. Let it use nothing that belongs to this "
                "process, such as open files and locks, or leave the engine out."
            ) from error
    return bytes(cloudpickle.dumps(measures))


# --- in the other process -------------------------------------------------------------------------


def unpack(content: bytes) -> list[Measure]:
    """What `pack` wrote in the process that started this one."""
    try:
        measures: list[Measure] = pickle.loads(content)
    except Exception as error:
        raise WorkerError(
            f"a worker cannot load the measures it was sent: {type(error).__name__}: {error}. Install "
            "there what is installed here, or define them in a module that workers can import."
        ) from error
    return measures


class JobState:
    """What a worker keeps of a job between blocks."""

    def __init__(self, block: Block) -> None:
        self.measures = unpack(block.measures)
        self.libraries = ThreadpoolController()
        kept = {"distances": want_distances(self.measures), "once": single_pass(self.measures)}
        kept = kept if block.draws is None else {"resampled": True}
        self._workspace = Workspace(block.limit, networks=block.networks, **kept)
        self._reps: dict[int, Representation] = {}
        self._base: Base | None = None
        self._lock = threading.Lock()

    def representations(self, views: Mapping[int, tuple[Files, str]]) -> dict[int, Representation]:
        """The representations of views, each read once."""
        with self._lock:
            for i, (files, name) in views.items():
                if i not in self._reps:
                    self._reps[i] = Representation(read_view(files, name), self._workspace)
            return {i: self._reps[i] for i in views}

    def base(self, views: Mapping[int, tuple[Files, str]]) -> Base:
        """All networks, whose own scores are computed once."""
        reps = self.representations(views)
        with self._lock:
            if self._base is None:
                self._base = Base([reps[i] for i in sorted(reps)], self.measures[0])
                _ = self._base.tables
            return self._base


_states: dict[str, JobState] = {}
_lock = threading.Lock()


def _state_of(block: Block) -> JobState:
    with _lock:
        if block.job not in _states:
            _states.clear()  # of an earlier job
            _states[block.job] = JobState(block)
        return _states[block.job]


def draw_block(block: Block) -> Array:
    """Score all pairs in some draws in this process; the whole task of a worker."""
    state, draws = _state_of(block), block.draws
    with single_threaded(state.libraries):
        base = state.base(block.views)
        return np.array(list(draws.tables(base, block.numbers) if draws else ()))


def score_block(block: Block) -> Scores:
    """Score some pairs in this process; the whole task of a worker."""
    start = time.thread_time()
    state = _state_of(block)
    with single_threaded(state.libraries):
        reps = state.representations(block.views)
        scores = _table_scores(block.items, state.measures, reps)
        alone = score_items((item for item in block.items if item not in scores), state.measures, reps)
        scores.update(alone)
    return [scores[item] for item in block.items], time.thread_time() - start


def _table_scores(
    items: Sequence[Item], measures: Sequence[Measure], reps: Mapping[int, Representation]
) -> dict[Item, Outcome]:
    """The scores among these that come from products of many networks."""
    networks = np.array(sorted(reps))
    k, *pairs = np.array(items).T
    todo = np.zeros((len(measures), len(reps), len(reps)), dtype=bool)
    todo[k, *np.searchsorted(networks, pairs)] = True
    scores: dict[Item, Outcome] = {}
    for k, i, j, values in score_tables(todo, measures, [reps[i] for i in networks]):
        rows = zip(networks[i].tolist(), networks[j].tolist(), map(Outcome, values.tolist()), strict=True)
        scores.update(((k, i, j), outcome) for i, j, outcome in rows)
    return scores


def _count_pairs(items: Iterable[Item]) -> int:
    """How many pairs of networks there are, in whichever direction."""
    return len({(min(i, j), max(i, j)) for _, i, j in items})
