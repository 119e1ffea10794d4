"""Images: held as bytes, shown as floats in [0, 1]; read from files only when asked for."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise._base.files import reading
from likewise._base.optional import require
from likewise.errors import InputError

_MOST_PIXELS = 178_956_970  # what Pillow takes for an attack


def check_images(images: Tensor, label: str) -> None:
    """Refuse what is not (n, channels, height, width), bytes or floats in [0, 1]."""
    shape = tuple(images.shape)
    if images.ndim != 4 or shape[1] not in (1, 3):
        hint = " Move the channels forward: images.permute(0, 3, 1, 2)."
        last = images.ndim == 4 and shape[3] in (1, 3)
        raise InputError(
            f"the images of {label} have shape {shape}, not (n, channels, height, width) with "
            f"1 or 3 channels.{hint if last else ' Give one image per row.'}"
        )
    if images.dtype == torch.uint8 or not images.numel():
        return
    if not images.is_floating_point():
        raise InputError(f"the images of {label} are {images.dtype}. Give bytes (uint8), or floats in [0, 1].")
    low, high = float(images.min()), float(images.max())
    if not (low >= 0 and high <= 1):
        raise InputError(
            f"the images of {label} run from {low:.4g} to {high:.4g}, not within [0, 1]. Divide "
            "bytes by 255, and leave normalisation to the network."
        )


class Images:
    """Images held as bytes `(n, c, h, w)`; indexing gives floats in [0, 1].

    >>> two = Images(torch.tensor([0, 255], dtype=torch.uint8).reshape(2, 1, 1, 1))
    >>> two.shape, two[:].flatten().tolist()
    ((2, 1, 1, 1), [0.0, 1.0])
    """

    def __init__(self, stored: Tensor) -> None:
        check_images(stored, "the input")
        self.stored = stored

    @property
    def shape(self) -> tuple[int, ...]:
        """`(n, channels, height, width)`."""
        return tuple(self.stored.shape)

    def __len__(self) -> int:
        return len(self.stored)

    def __getitem__(self, index: Any) -> Tensor:
        return self.stored[index].float() / 255

    def only(self, index: Any) -> Images:
        """Some of the images, still as bytes."""
        return Images(self.stored[index])


@contextmanager
def open_image(path: Path, pil: Any) -> Iterator[Any]:
    """An image file, or a sentence that names it; one that would unpack to gigabytes is refused."""
    with (
        reading(path, f"{path} cannot be read as an image. Remove or repair it."),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error", pil.DecompressionBombWarning)
        with pil.open(path) as file:
            yield file


class ImageFiles:
    """Images in files, read when asked for: shorter side to `size` · 8/7, then the middle square.

    That is the usual preparation of ImageNet's validation images (256, then 224). Images that
    already are `size` × `size` are left untouched.
    """

    def __init__(self, paths: Sequence[Path], size: int) -> None:
        self.paths = list(paths)
        self.size = size

    @property
    def shape(self) -> tuple[int, ...]:
        """`(n, 3, size, size)`."""
        return (len(self.paths), 3, self.size, self.size)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: Any) -> Tensor:
        return torch.stack([self.read(path) for path in self.only(index).paths])

    def only(self, index: Any) -> ImageFiles:
        """Some of the files, by slice or numbers."""
        paths = self.paths[index] if isinstance(index, slice) else [self.paths[i] for i in index]
        return ImageFiles(paths, self.size)

    def read(self, path: Path) -> Tensor:
        """One image as `(3, size, size)` in [0, 1]."""
        pil = require("PIL.Image", extra="vision", to=f"read {path.name}")
        with open_image(path, pil) as file:
            image = file.convert("RGB")
        array = np.asarray(self._square(image, pil.Resampling.BILINEAR, path))
        return torch.from_numpy(array.copy()).permute(2, 0, 1).float() / 255

    def _square(self, image: Any, resampling: Any, path: Path) -> Any:
        if image.size == (self.size, self.size):
            return image
        scale = round(self.size * 8 / 7) / min(image.size)
        wide, high = (max(self.size, round(side * scale)) for side in image.size)
        if wide * high > _MOST_PIXELS:
            raise InputError(
                f"{path} is {image.size[0]} × {image.size[1]} pixels, too narrow to take a square "
                "from its middle. Remove it."
            )
        left, top = (wide - self.size) // 2, (high - self.size) // 2
        resized = image.resize((wide, high), resampling)
        return resized.crop((left, top, left + self.size, top + self.size))

    def content(self) -> Iterator[bytes]:
        """The bytes that identify the images: their size and every file."""
        yield str(self.size).encode()
        for path in self.paths:
            with reading(path, f"{path} cannot be read: {{reason}}. Remove or repair it."):
                content = path.read_bytes()
            yield content
