"""Long simulations in parts: each is a file, so that a command resumes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

Arrays = dict[str, np.ndarray]
SIZE = 10  # trials of a part


def run_parts(folder: Path, name: str, count: int, work: Callable[[range], Arrays]) -> None:
    """Do the parts that are missing."""
    folder.mkdir(parents=True, exist_ok=True)
    for start in range(0, count, SIZE):
        path = folder / f"{name}-{start:05d}.npz"
        if not path.exists():
            _save(path, work(range(start, min(start + SIZE, count))))


def _save(path: Path, arrays: Arrays) -> None:
    """Whole or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    with os.fdopen(handle, "wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    Path(name).replace(path)


def load_parts(folder: Path, name: str) -> Arrays:
    """What all parts hold, one after the other."""
    arrays: dict[str, list[np.ndarray]] = {}
    for path in sorted(folder.glob(f"{name}-*.npz")):
        with np.load(path) as file:
            for key in file.files:
                arrays.setdefault(key, []).append(file[key])
    return {key: np.concatenate(parts) for key, parts in arrays.items()}
