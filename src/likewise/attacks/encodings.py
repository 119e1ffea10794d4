"""Changed images as short vectors of numbers, for attacks that search without gradients.

Two encodings: a few pixels of any colour (L0), and every value within a threshold of its own (Linf). Each has the
bounds of its search and a function from vectors, one row per candidate, to images. Images are `(c, h, w)` with
whole values from 0 to 255, as files hold them. Numbers are truncated, so a value just below a grey level is the
level before.
"""

from __future__ import annotations

import torch
from torch import Tensor

from likewise.errors import InputError

BRIGHTEST = 255
PLACE = 2  # numbers for the place of a pixel: its row and its column


def pixel_bounds(image: Tensor, pixels: int) -> tuple[Tensor, Tensor]:
    """The least and largest number of each entry that places and colours `pixels` pixels of an image.

    After truncation every row, column and level has the same share of the range.

    >>> pixel_bounds(torch.zeros(1, 4, 6), 1)
    (tensor([0., 0., 0.]), tensor([  4.,   6., 256.]))
    """
    channels, high, wide = _checked(image).shape
    if pixels < 1:
        raise InputError(f"pixels is {pixels}. Change at least 1.")
    upper = torch.tensor([high, wide, *[BRIGHTEST + 1] * channels], dtype=torch.float32).repeat(pixels)
    return torch.zeros_like(upper), upper


def change_pixels(image: Tensor, vectors: Tensor, out: Tensor | None = None) -> Tensor:
    """The image with some pixels changed, once per vector: `(candidates, c, h, w)`.

    A vector has one row, one column and one value per channel for every pixel. Rows and columns go round at the
    edges; of two entries for one place the later counts. `out`, of as many images or more, is written to if given: new
    memory for many images takes longer than all the rest.

    >>> change_pixels(torch.zeros(1, 2, 2), torch.tensor([[1.9, 0.2, 7.5]])).tolist()
    [[[[0.0, 0.0], [7.0, 0.0]]]]
    """
    channels, high, wide = _checked(image).shape
    length = PLACE + channels
    if vectors.ndim != 2 or not vectors.shape[1] or vectors.shape[1] % length:
        raise InputError(
            f"the vectors have shape {tuple(vectors.shape)}, and a pixel of {channels} channels takes {length} "
            f"numbers. Give one row per candidate, of {length} or a multiple."
        )
    if out is None or len(out) < len(vectors):
        out = image.new_empty(len(vectors), *image.shape)
    changed = out[: len(vectors)].copy_(image)
    candidates, whole = torch.arange(len(vectors), device=image.device), _whole(vectors)
    for start in range(0, vectors.shape[1], length):
        entry = whole[:, start : start + length]
        row, column = entry[:, 0].remainder(high), entry[:, 1].remainder(wide)
        changed[candidates, :, row, column] = entry[:, PLACE:].clamp(0, BRIGHTEST).to(image.dtype)
    return changed


def threshold_bounds(image: Tensor, threshold: float) -> tuple[Tensor, Tensor]:
    """The least and largest value of every entry of an image that may change by `threshold`, `(c · h · w,)`.

    >>> threshold_bounds(torch.tensor([[[3, 254]]]), 5)
    (tensor([  0., 249.], dtype=torch.float64), tensor([  8., 255.], dtype=torch.float64))
    """
    if not 0 < threshold <= BRIGHTEST:
        raise InputError(f"threshold is {threshold}. Give a number of grey levels above 0 and up to {BRIGHTEST}.")
    values = _checked(image).flatten().double()  # bytes would go round
    return (values - threshold).clamp(min=0), (values + threshold).clamp(max=BRIGHTEST)


def change_all(image: Tensor, vectors: Tensor, threshold: float) -> Tensor:
    """Images of the values of each vector, none further than `threshold` from its own: `(candidates, c, h, w)`.

    >>> change_all(torch.tensor([[[3.0, 254.0]]]), torch.tensor([[0.4, 254.999]]), 5).tolist()
    [[[[0.0, 254.0]]]]
    """
    lower, upper = threshold_bounds(image, threshold)
    if vectors.ndim != 2 or vectors.shape[1] != image.numel():
        raise InputError(
            f"the vectors have shape {tuple(vectors.shape)}, and the image has {image.numel()} values. Give one row "
            "per candidate, with one number per value."
        )
    values = _whole(vectors).clamp(lower.ceil().long(), upper.floor().long())
    return values.to(image.dtype).reshape(-1, *image.shape)


def _checked(image: Tensor) -> Tensor:
    if image.ndim != 3 or not image.numel():
        raise InputError(f"the image has shape {tuple(image.shape)}, not (channels, height, width). Give one image.")
    if not 0 <= float(image.min()) <= float(image.max()) <= BRIGHTEST or bool((image != image.trunc()).any()):
        raise InputError("the values of the image are not whole numbers from 0 to 255. Multiply by 255 and round.")
    return image


def _whole(vectors: Tensor) -> Tensor:
    if not bool(vectors.isfinite().all()):
        raise InputError("the vectors have NaN or infinite entries. Keep the search within its bounds.")
    return vectors.double().trunc().clamp(-(2**53), 2**53).long()
