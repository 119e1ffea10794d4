"""What all benchmarks share: the unit, clocks for CPU and memory, networks to compare, and the CSV.

CPU seconds of all threads are counted, not wall time, so a busy machine changes little; dividing
by the unit, a 3000 x 3000 product in the same run, takes the machine's speed out as well. Idle
threads that spin would count as work, so they are told to sleep (`perf/__init__.py`).
"""

from __future__ import annotations

import csv
import ctypes
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

import likewise

INPUTS, RESULTS = (Path(__file__).parent / name for name in ("inputs", "results"))
REFERENCE_UNIT = 1.15  # CPU seconds of the unit where the reference's figures were taken


@cache
def unit() -> float:
    """CPU seconds of a 3000 x 3000 float64 product with numpy: the best of three."""
    return cpu_seconds(unit_work(), repeats=3)


def unit_work() -> Callable[[], Any]:
    """The product that is the unit."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3000, 3000))
    return lambda: a @ b


def cpu_seconds(work: Callable[[], Any], repeats: int = 3) -> float:
    """CPU seconds of all threads, the best of some runs."""
    return min(_timed(time.process_time, work) for _ in range(repeats))


def wall_seconds(work: Callable[[], Any], repeats: int = 3) -> list[float]:
    """Seconds on the clock of each run."""
    return [_timed(time.perf_counter, work) for _ in range(repeats)]


def _timed(clock: Callable[[], float], work: Callable[[], Any]) -> float:
    start = clock()
    work()
    return clock() - start


@dataclass(frozen=True)
class Cost:
    """What a call took: best CPU seconds and smallest peak of three, as the reference was measured.

    `first_mb` is the peak of the first run, with nothing left in the allocator from before. It says
    what the call needs; later runs reuse what went back to the allocator but not to the system. `median` is for what
    took turns: of two best runs, one is luckier.
    """

    value: Any
    seconds: float
    median: float
    peak_mb: float
    first_mb: float

    @property
    def units(self) -> float:
        return self.seconds / unit()


def cost(work: Callable[[], Any], *, repeats: int = 3, enough: float = 2.0) -> Cost:
    """What one piece of work takes, see `costs`."""
    return costs([work], repeats=repeats, enough=enough)[0]


def costs(works: Sequence[Callable[[], Any]], *, repeats: int = 3, enough: float = 2.0) -> list[Cost]:
    """Run at most `repeats` times (700 if very short), and not again after `enough` seconds.

    Several pieces of work take turns, so that a busy moment falls on all of them, very short ones five calls at a turn:
    the first finds the caches full of what another library left there. Memory is watched the first three times:
    watching makes the next pages slow to reach.
    """
    _give_back()
    time.sleep(0.2)  # numpy's threads go on spinning for a tenth of a second after a product
    seconds: list[list[float]] = [[] for _ in works]
    peaks: list[list[float]] = [[] for _ in works]
    values: list[Any] = [None] * len(works)
    done, calls = 0, 1
    while not done or (done < repeats and sum(map(sum, seconds)) < enough * len(works)):
        if done == 1 and max(first[0] for first in seconds) < 0.05:
            repeats, calls = max(repeats, 700), 5
        for index, work in [turn for turn in enumerate(works) for _ in range(calls)]:
            before = _resident_and_reset() if done < 3 else 0
            start = time.process_time()
            values[index] = work()
            seconds[index].append(time.process_time() - start)
            if done < 3:
                peaks[index].append((_status("VmHWM") - before) / 1024)
        done += 1
    return [
        Cost(value, min(taken), statistics.median(taken), max(0.0, min(peak)), peak[0])
        for value, taken, peak in zip(values, seconds, peaks, strict=True)
    ]


def _give_back() -> None:
    """Hand freed memory back to the system, so that it does not hide what the next call needs."""
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)


def _resident_and_reset() -> int:
    """Resident kB now; the peak starts again from here."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _status(field: str) -> int:
    """A field of this process's status in kB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise RuntimeError(f"the system does not report {field}; memory is measured on Linux only.")


def networks(n: int, d: int, m: int = 2, *, seed: int = 0) -> dict[str, np.ndarray]:
    """Activations of m networks on one probe: relu of what they share and what is their own."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(n, d))
    views = {}
    for i in range(m):
        seen = shared @ rng.normal(size=(d, d)) / np.sqrt(d)
        views[f"network-{i}"] = np.maximum(seen + 0.5 * rng.normal(size=(n, d)), 0)
    return views


def about() -> dict[str, Any]:
    """The columns of every row: what was measured, on what, and how busy it was."""
    return {
        "likewise": likewise.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()}-{platform.machine()}",
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 1),
        "omp_wait_policy": os.environ["OMP_WAIT_POLICY"],
        "unit_seconds": unit(),
    }


def write(name: str, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Print rows as they come, and keep them all in `results/name.csv`."""
    kept = []
    for row in rows:
        print("  ".join(f"{key} {_short(value)}" for key, value in row.items()), flush=True)
        kept.append(row if "unit_seconds" in row else {**row, **about()})
    columns = list(dict.fromkeys(key for row in kept for key in row))
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / f"{name}.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        table.writeheader()
        table.writerows({key: _short(value) for key, value in row.items()} for row in kept)
    return kept


def write_table(name: str, rows: Iterable[dict[str, Any]]) -> None:
    """Keep rows that do not depend on the speed of the machine in `results/name.csv`."""
    made_with = {
        "likewise": likewise.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
    }
    kept = [{**row, **made_with} for row in rows]
    with (RESULTS / f"{name}.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, list(kept[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(kept)


def _short(value: Any) -> Any:
    return f"{value:.4g}" if isinstance(value, float) else value


def apart(module: str, *arguments: Any) -> dict[str, Any]:
    """The row that `python -m module arguments...` prints, from a process of its own."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row
