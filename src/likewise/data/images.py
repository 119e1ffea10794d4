"""Images: held as bytes, shown as floats in [0, 1].

What a network is shown is decided last: `pictures` gives decoded images for the transform of a network
(`Transformed`); indexing gives them at the size that was asked for (`Framing`), else at their own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise._base.arrays import check_images
from likewise._base.optional import require
from likewise.data.framing import Framing

AS_THEY_ARE = Framing()
USUAL = Framing(224, 0.875, "bilinear")  # of ImageNet's validation images


class Images:
    """Images held in memory; indexing gives floats in [0, 1].

    Args:
        stored: Bytes, or floats in [0, 1], `(n, c, h, w)`.
        asked: The size that the person asked for, which takes precedence over the transforms of networks.

    Example:
        >>> two = Images(torch.tensor([0, 255], dtype=torch.uint8).reshape(2, 1, 1, 1))
        >>> two.shape, two[:].flatten().tolist()
        ((2, 1, 1, 1), [0.0, 1.0])
    """

    def __init__(self, stored: Tensor, asked: Framing = AS_THEY_ARE) -> None:
        check_images(stored, "the input")
        self.stored, self.asked = stored, asked

    @property
    def shape(self) -> tuple[int, ...]:
        """`(n, channels, height, width)` as they are shown."""
        n, channels, high, wide = self.stored.shape
        size = self._framing.size if self.asked else None
        return (n, channels, size or high, size or wide)

    @property
    def recipe(self) -> str:
        """How they are brought to size, empty where they are shown as they are."""
        return self._framing.recipe if self.asked else ""

    @property
    def _framing(self) -> Framing:
        high, wide = self.stored.shape[2:]
        return self.asked.over(default_framing({(wide, high)}))

    def __len__(self) -> int:
        return len(self.stored)

    def __getitem__(self, index: Any) -> Tensor:
        stored = self.stored[index]
        if not self.asked:
            return _as_floats(stored)
        if stored.is_floating_point():
            return self._framing.tensor(stored)
        return as_tensor([self._framing.image(image, "an image") for image in as_pil(stored)], self.shape)

    def only(self, index: Any) -> Images:
        """Some of the images, still as they are held.

        Args:
            index: A slice, or numbers.
        """
        return Images(self.stored[index], self.asked)

    def framed(self, framing: Framing) -> Images:
        """The same images, to be shown at another size.

        Args:
            framing: Size, crop and interpolation.
        """
        return Images(self.stored, framing.over(self.asked))

    def pictures(self, index: Any) -> Any:
        """Some of the images for a transform, at the size that was asked for, else at their own: PIL, or floats.

        Args:
            index: A slice, or numbers.
        """
        if self.stored.is_floating_point():
            return self[index]
        pictures = as_pil(self.stored[index])
        return [self._framing.image(image, "an image") for image in pictures] if self.asked else pictures

    def content(self) -> Iterator[str | Tensor]:
        """What identifies the images, at whatever size they are shown."""
        yield str(tuple(self.stored.shape))
        for start in range(0, len(self), 1024):
            yield _as_floats(self.stored[start : start + 1024])


class Transformed:
    """Images as one network is shown them: `transform` takes pictures and gives a batch, `recipe` says how.

    `size` is the height and width they have then, where it is known before.
    """

    def __init__(
        self, images: Any, transform: Callable[[Any], Any], recipe: str, size: tuple[int, ...] | None = None
    ) -> None:
        self.images, self.transform, self.recipe, self.size = images, transform, recipe, size

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: Any) -> Any:
        return self.transform(self.images.pictures(index))

    def only(self, index: Any) -> Transformed:
        """Some of the images."""
        return Transformed(self.images.only(index), self.transform, self.recipe, self.size)

    def content(self) -> Iterator[Any]:
        """What identifies the images, however they are shown."""
        return iter(self.images.content())


def is_picture(value: Any) -> bool:
    """Whether this is an image of Pillow; where that is not imported there are none."""
    pil = sys.modules.get("PIL.Image")
    return pil is not None and isinstance(value, pil.Image)


def default_framing(sizes: set[tuple[int, int]]) -> Framing:
    """What images of these sizes (width, height) are shown at by default."""
    wide, high = next(iter(sizes), (0, 1))
    return Framing(wide, 1.0, "bilinear") if len(sizes) == 1 and wide == high else USUAL


def as_tensor(images: Sequence[Any], shape: Sequence[int]) -> Tensor:
    """PIL images of one size as floats in [0, 1], `(n, *shape[1:])`."""
    if not images:
        return torch.empty(0, *shape[1:])
    arrays = torch.from_numpy(np.stack([np.asarray(image) for image in images]))
    return arrays.reshape(len(images), *shape[2:], -1).permute(0, 3, 1, 2).contiguous().float() / 255


def _as_floats(stored: Tensor) -> Tensor:
    return stored if stored.is_floating_point() else stored.float() / 255


def as_pil(images: Tensor) -> list[Any]:
    """Bytes or floats in [0, 1] `(n, c, h, w)` as PIL images: RGB, or greyscale where they have one channel."""
    pil: Any = require("PIL.Image", extra="vision", to="resize images")
    pixels = images if images.dtype == torch.uint8 else (images * 255).round().byte()
    rows = pixels[:, 0] if pixels.shape[1] == 1 else pixels.permute(0, 2, 3, 1)
    return [pil.fromarray(image) for image in rows.contiguous().numpy()]
