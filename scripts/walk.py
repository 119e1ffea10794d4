"""Count the source files a comparison walks through.

    python scripts/walk.py

A file counts if a function of it ran. What runs while a module is imported (declarations, decorators) does not
count. Two walks are taken: two arrays to a printed score, and two addresses to the CSV of scores that the command
`likewise compare` writes, one row per pair.
"""

from __future__ import annotations

import contextlib
import io
import sys
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


if __name__ == "__main__":
    for walk in (two_arrays, two_addresses):
        walked = files(walk)
        print(f"{walk.__doc__} {len(walked)} files:", *walked, sep="\n  ")
