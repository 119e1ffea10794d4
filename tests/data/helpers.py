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


def mixed_photos(folder: Path) -> Path:
    """A folder of images of many sizes and kinds: grey, with alpha, of 16 bits, lying on their side, of four inks."""
    pil = pytest.importorskip("PIL.Image")
    (folder / "some").mkdir(parents=True)

    def pixels(number: int, wide: int, high: int) -> np.ndarray:
        ramp = np.linspace(0, 200, wide * high * 3).reshape(high, wide, 3)
        noise = np.random.default_rng(number).normal(0, 40, ramp.shape)
        return np.clip(ramp + noise, 0, 255).astype(np.uint8)

    exif = pil.Exif()
    exif[0x0112] = 6
    alpha = pixels(2, 200, 150)
    pil.fromarray(pixels(0, 64, 48)).save(folder / "some" / "0.jpg", quality=90)
    pil.fromarray(pixels(1, 40, 90)[..., 0]).save(folder / "some" / "1.png")
    pil.fromarray(np.dstack([alpha, alpha[..., :1]])).save(folder / "some" / "2.png")
    pil.fromarray(pixels(3, 33, 33)[..., 0].astype(np.uint16) * 257).save(folder / "some" / "3.png")
    pil.fromarray(pixels(4, 300, 120)).save(folder / "some" / "4.jpg", exif=exif)
    pil.fromarray(pixels(5, 128, 256)).convert("CMYK").save(folder / "some" / "5.jpg")
    pil.fromarray(pixels(6, 90, 91)).quantize(32).save(folder / "some" / "6.png")
    return folder


def coloured(folder: Path, *names: str) -> Path:
    """Small images of these names, each of another colour."""
    pil = pytest.importorskip("PIL.Image")
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pil.new("RGB", (8, 8), (25 * number % 256, number, 255 - number)).save(folder / name)
    return folder
