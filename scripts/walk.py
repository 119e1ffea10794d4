"""Count the source files that common jobs walk through.

    python scripts/walk.py                 how many, per job
    python scripts/walk.py two_arrays      which, of one job

A file counts if a function of it ran. What runs while a module is imported (declarations, decorators) does not
count. With another source first on PYTHONPATH, that source is walked.
"""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import likewise
from likewise import compare

SOURCE = Path(likewise.__file__).parent


def files(call: Callable[[], Any]) -> list[str]:
    """The files under `src/likewise` in which a function ran during `call`, by name."""
    entered: set[str] = set()

    def enter(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(f"{SOURCE}/") and name not in entered and not _importing(frame):
            entered.add(name)

    with contextlib.redirect_stdout(io.StringIO()):
        sys.setprofile(enter)
        threading.setprofile(enter)  # pairs are scored by threads
        try:
            call()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return sorted(str(Path(name).relative_to(SOURCE)) for name in entered)


def _importing(frame: FrameType | None) -> bool:
    """Whether a module of ours is being imported, so that `frame` is a declaration."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(f"{SOURCE}/"):
            return True
        frame = frame.f_back
    return False


def two_arrays() -> None:
    """Two arrays to a printed score."""
    x, y = np.random.default_rng(0).normal(size=(2, 60, 8))
    print(compare(x, y))


def two_addresses() -> None:
    """Two addresses to a CSV."""
    matrix = compare(["zoo:lenet,seed=1", "zoo:lenet,seed=2"], "cka", data="digits:test[:64]", progress=False)
    print(matrix.to_frame(long=True).to_csv(index=False))


def layers_of_two() -> None:
    """Every layer of two networks."""
    data = likewise.dataset("digits:test[:64]")
    print(
        likewise.layerwise(
            *(likewise.network("zoo:lenet", data=data, seed=seed) for seed in (1, 2)), data, progress=False
        )
    )


def attack_transfer() -> None:
    """The attack transfer (SAT) of three networks."""
    data = likewise.dataset("digits:test[:300]")
    networks = {f"net {seed}": likewise.network("zoo:mlp", data=data, seed=seed) for seed in (1, 2, 3)}
    print(likewise.transfer.sat(networks, data, iterations=2, progress=False))


def benchmark_run() -> None:
    """A benchmark run of one grounding."""
    preset = {"group": 2, "train": 60, "probe": 40, "training": {"epochs": 1}}
    with tempfile.TemporaryDirectory() as folder:
        options = {"measures": "cka", "groundings": "labels", "preset": preset, "progress": False}
        print(likewise.benchmark.run("vision", "digits", "mlp", out=folder, **options))


WALKS = {walk.__name__: walk for walk in (two_arrays, two_addresses, layers_of_two, attack_transfer, benchmark_run)}


if __name__ == "__main__":
    if sys.argv[1:]:
        print(*files(WALKS[sys.argv[1]]), sep="\n")
    else:  # each in a process of its own, since what one has loaded another need not enter
        for name, walk in WALKS.items():
            done = subprocess.run([sys.executable, __file__, name], check=True, capture_output=True, text=True)
            print(f"{walk.__doc__} {len(done.stdout.split())} files")
