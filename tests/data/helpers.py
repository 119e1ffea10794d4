"""Folders of images to read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

SIZES = ((40, 30), (24, 36), (50, 50))


def photos(folder: Path, sizes: tuple[tuple[int, int], ...] = SIZES, ending: str = ".png") -> Path:
    """A folder of one class with an image of noise of each size (width, height)."""
    pil = pytest.importorskip("PIL.Image")
    (folder / "some").mkdir(parents=True)
    for number, (wide, high) in enumerate(sizes):
        pixels = np.random.default_rng(number).integers(0, 256, (high, wide, 3), dtype=np.uint8)
        pil.fromarray(pixels).save(folder / "some" / f"{number}{ending}")
    return folder
