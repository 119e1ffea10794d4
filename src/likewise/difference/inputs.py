"""Single inputs as a person sees them: a text, an image as a small picture, or nothing."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from likewise._base.arrays import Array
from likewise.data import Data

Preview = str | Array | None


def previews(data: Any, rows: Sequence[int]) -> list[Preview]:
    """The inputs of these rows: texts as they are, images (height, width, 3) in [0, 1], None for anything else."""
    return [_preview(data, row) for row in rows]


def _preview(data: Any, row: int) -> Preview:
    if isinstance(data, Data) and data.domain in ("text", "image"):
        inputs, _ = next(iter(data[[row]].batches(1)))
        return _picture(inputs[0]) if data.domain == "image" else _text(inputs)
    if isinstance(data, Tensor) and data.ndim == 4:
        return _picture(data[row])
    return None


def _text(inputs: Any) -> Preview:
    """A text, or a pair of them in one line; tokens say nothing to a person."""
    first = inputs[0] if isinstance(inputs, list) else None
    if isinstance(first, tuple):
        return " / ".join(map(str, first))
    return first if isinstance(first, str) else None


def _picture(image: Any) -> Preview:
    """Floats in [0, 1]; values outside were normalised, and are rescaled."""
    if not isinstance(image, Tensor) or image.ndim != 3 or image.shape[0] not in (1, 3):
        return None
    values = image.detach().double().cpu()
    low, high = float(values.min()), float(values.max())
    if low < 0 or high > 1:
        values = (values - low) / max(high - low, 1e-12)
    return np.asarray(values.expand(3, -1, -1).permute(1, 2, 0).numpy())


def data_url(image: Array) -> str:
    """A picture (height, width, 1 or 3) of bytes, or of floats in [0, 1], as a data URL.

    >>> data_url(np.zeros((2, 2, 1)))[:22]
    'data:image/png;base64,'
    """
    from PIL import Image

    pixels = image if image.dtype == np.uint8 else np.round(255 * image).astype(np.uint8)
    content = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels).save(content, "png")
    return f"data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}"
