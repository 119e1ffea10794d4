"""From an image file to an upright RGB image of 8 bits, whatever the file holds.

Photographs that say how the camera was held (EXIF) are turned upright, as people see them; the loaders of timm and
torchvision leave them lying. Greyscale of 16 bits is scaled to 8, not clipped. Transparency is left out, as those
loaders do: what counts is the colour that is stored.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from likewise._base.files import reading
from likewise._base.optional import require
from likewise.errors import InputError

_16_BITS = 65_535
_UPRIGHT = (None, 1)


@contextmanager
def open_image(path: Path, file: Any = None) -> Iterator[Any]:
    """An image file, or a sentence that names it; one that would unpack to gigabytes is refused."""
    pil: Any = require("PIL.Image", extra="vision", to=f"read {path.name}")
    with (
        reading(path, f"{path} cannot be read as an image. Remove or repair it."),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # on what belongs to the image but is not it, as damaged EXIF
        warnings.simplefilter("error", pil.DecompressionBombWarning)
        with pil.open(path if file is None else file) as opened:
            yield opened


def decode(path: Path, content: bytes) -> Any:
    """The image of a file's bytes: PIL, RGB, upright."""
    with open_image(path, BytesIO(content)) as image:
        return as_rgb(image, str(path))


def as_rgb(image: Any, label: str) -> Any:
    """A PIL image of any mode as RGB, upright."""
    if image.getexif().get(0x0112) not in _UPRIGHT:
        ops: Any = require("PIL.ImageOps", extra="vision", to="turn images upright")
        image = ops.exif_transpose(image)
    if image.mode.startswith("I") or image.mode == "F":
        image = _as_bytes(image, label)
    if image.mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")
    return image.convert("RGB")


def _as_bytes(image: Any, label: str) -> Any:
    """Greyscale of more than 8 bits: whole numbers to 65,535 or floats in [0, 1], by their range."""
    pil: Any = require("PIL.Image", extra="vision", to="scale images")
    values = np.asarray(image)
    most = 1.0 if values.dtype.kind == "f" else float(_16_BITS)
    low, high = float(values.min()), float(values.max())
    if not (low >= 0 and high <= most):
        raise InputError(
            f"{label} holds values from {low:.6g} to {high:.6g}, of which nothing says what is white. "
            "Save it with 8 bits per channel."
        )
    return pil.fromarray(np.round(values.astype(np.float64) * (255 / most)).astype(np.uint8))
