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
POSITION = 2  # numbers for the position of a pixel: its row and its column


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
    edges; of two entries for one pixel the later counts. `out`, of as many images, is written to if given: new memory
    for many images takes longer than all the rest.

    >>> change_pixels(torch.zeros(1, 2, 2), torch.tensor([[1.9, 0.2, 7.5]])).tolist()
    [[[[0.0, 0.0], [7.0, 0.0]]]]
    """
    channels, high, wide = _checked(image).shape
    length = POSITION + channels
    if vectors.ndim != 2 or not vectors.shape[1] or vectors.shape[1] % length:
        raise InputError(
            f"the vectors have shape {tuple(vectors.shape)}, and a pixel of {channels} channels takes {length} "
            f"numbers. Give one row per candidate, of {length} or a multiple."
        )
    whole = _finite(vectors).double().trunc().clamp(-(2**53), 2**53).long().reshape(len(vectors), -1, length)
    rows, columns = whole[..., 0].remainder(high), whole[..., 1].remainder(wide)
    colours = whole[..., POSITION:].clamp(0, BRIGHTEST).to(image.dtype)
    changed = image.new_empty(len(vectors), *image.shape) if out is None else out
    changed[:1] = image
    changed[1:] = changed[:1]  # much faster where images lie otherwise in memory than the one
    candidates = torch.arange(len(vectors), device=image.device)
    for pixel in range(whole.shape[1]):  # one after the other, since the later counts
        changed[candidates, :, rows[:, pixel], columns[:, pixel]] = colours[:, pixel]
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


def change_all(image: Tensor, vectors: Tensor, threshold: float, out: Tensor | None = None) -> Tensor:
    """Images of the values of each vector, none further than `threshold` from its own: `(candidates, c, h, w)`.

    `out`, of as many images, is written to if given.

    >>> change_all(torch.tensor([[[3.0, 254.0]]]), torch.tensor([[0.4, 254.999]]), 5).tolist()
    [[[[0.0, 254.0]]]]
    """
    lower, upper = threshold_bounds(image, threshold)
    if vectors.ndim != 2 or vectors.shape[1] != image.numel():
        raise InputError(
            f"the vectors have shape {tuple(vectors.shape)}, and the image has {image.numel()} values. Give one row "
            "per candidate, with one number per value."
        )
    values = _finite(vectors).trunc().clamp_(lower.ceil().to(vectors), upper.floor().to(vectors))
    images = values.reshape(-1, *image.shape)
    return images.to(image.dtype) if out is None else out.copy_(images)


def _checked(image: Tensor) -> Tensor:
    if image.ndim != 3 or not image.numel():
        raise InputError(f"the image has shape {tuple(image.shape)}, not (channels, height, width). Give one image.")
    if not 0 <= float(image.min()) <= float(image.max()) <= BRIGHTEST or bool((image != image.trunc()).any()):
        raise InputError("the values of the image are not whole numbers from 0 to 255. Multiply by 255 and round.")
    return image


def _finite(vectors: Tensor) -> Tensor:
    if not all(bool(end.isfinite()) for end in vectors.aminmax()):  # either end of a row with NaN is NaN
        raise InputError("the vectors have NaN or infinite entries. Keep the search within its bounds.")
    return vectors
