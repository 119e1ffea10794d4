"""Engines: how much sooner two processes are done than one thread, and what the driver holds meanwhile.

Every run is a process of its own. `python -m perf.engines` runs them all, `python -m perf.engines speed
40 cold` one. Runs of one job alternate, so that a busy minute falls on all of them, and medians are compared: the best
run of one process is a luckier one than the best of two that need both cores.

cold    the first call, which starts the workers (it has no goal)
warm    the second call of a program
both    two programs that do the whole job side by side, each serially: as much as two cores give at all
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch

import likewise
from perf.common import (
    _give_back,
    _resident_and_reset,
    _status,
    about,
    apart,
    networks,
    unit,
    write,
)

TEN = [
    "cka",
    "rsa",
    "distance-correlation",
    "procrustes",
    "svcca",
    "pwcca",
    "linear-regression",
    "jaccard",
    "rank-similarity",
    "soft-correlation",
]
WORKERS = 2
ROUNDS = {40: 5, 80: 3}  # by networks; start-up counts for less in the longer job
KINDS = ("serial", "threads", "cold", "warm", "both")
HELD = (50, 300)  # networks, for the memory of the driver
REPEATS = 3  # of what memory is taken
GOAL = 1.5


def measured(work: Callable[[], Any]) -> dict[str, float]:
    """Seconds on the clock, and CPU seconds of this process and of those it started."""
    start, cpu, below = time.perf_counter(), time.process_time(), _below()
    work()
    wall, driver = time.perf_counter() - start, time.process_time() - cpu
    return {"wall_seconds": wall, "driver_cpu": driver, "workers_cpu": _below() - below}


def _below() -> float:
    """CPU seconds of all processes that this one started and that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def speed(m: int, kind: str, n: int = 1000, d: int = 128) -> dict[str, Any]:
    """One run of the job in this process."""
    torch.set_num_threads(WORKERS if kind == "threads" else 1)
    views = networks(n, d, m)
    engine = f"processes:{WORKERS}" if kind in ("cold", "warm") else None

    def work(views: Any = views) -> None:
        likewise.compare(views, TEN, engine=engine, progress=False)

    few = {name: view[:100] for name, view in list(views.items())[:3]}
    likewise.compare(few, TEN, progress=False)  # the first call wakes the libraries
    if kind == "warm":
        work(few)
    return measured(work)


def memory(m: int, n: int = 500, d: int = 128) -> dict[str, Any]:
    """The driver's peak above what it held with the views in it."""
    views = {name: view.astype(np.float32) for name, view in networks(n, d, m).items()}
    names, engine = ["cka", "procrustes"], f"processes:{WORKERS}"
    few = dict(list(views.items())[:3])
    likewise.compare(few, names, engine=engine, progress=False)
    _give_back()
    before = _resident_and_reset()
    likewise.compare(views, names, engine=engine, progress=False)
    return {"peak_mb": (_status("VmHWM") - before) / 1024}


def rows() -> Iterator[dict[str, Any]]:
    for m in ROUNDS:
        yield from _speeds(m)
    for m in HELD:
        runs = [apart("perf.engines", "memory", m) for _ in range(REPEATS)]
        yield {"job": "memory", "m": m, "n": 500, "d": 128, "measures": 2} | min(runs, key=lambda row: row["peak_mb"])


def _speeds(m: int) -> Iterator[dict[str, Any]]:
    runs: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    for _ in range(ROUNDS[m]):
        for kind in KINDS:
            runs[kind].append(_side_by_side(m) if kind == "both" else apart("perf.engines", "speed", m, kind))
    middle = {kind: sorted(done, key=lambda row: row["wall_seconds"])[ROUNDS[m] // 2] for kind, done in runs.items()}
    for kind, row in middle.items():
        ratio = (WORKERS if kind == "both" else 1) * middle["serial"]["wall_seconds"] / row["wall_seconds"]
        goal = {"target": GOAL, "met": ratio >= GOAL} if kind == "warm" else {}
        facts = {"job": kind, "m": m, "n": 1000, "d": 128, "measures": len(TEN)}
        walls = " ".join(f"{run['wall_seconds']:.3g}" for run in runs[kind])
        yield facts | {"speedup": ratio} | goal | row | {"all_wall_seconds": walls}


def _side_by_side(m: int) -> dict[str, Any]:
    """The slower of two serial runs at the same time."""
    with ThreadPoolExecutor(WORKERS) as pool:
        both = list(pool.map(lambda _: apart("perf.engines", "speed", m, "serial"), range(WORKERS)))
    return max(both, key=lambda row: float(row["wall_seconds"]))


def main(what: str | None = None, m: str = "", kind: str = "") -> None:
    if what is None:
        write("engines", rows())
        return
    row = speed(int(m), kind) if what == "speed" else memory(int(m))
    unit()
    print(json.dumps({**row, **about()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
