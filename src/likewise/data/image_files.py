"""Images in files: decoded when asked for, and once for all networks.

A folder's files belong together: they are decoded into one cache, and have one size of their own, which no single file
decides. Headers are read only where that size is wanted.

Whatever a file holds becomes an upright RGB image of 8 bits. Photographs that say how the camera was held (EXIF) are
turned upright, as people see them; the loaders of timm and torchvision leave them lying. Greyscale of 16 bits is scaled
to 8, not clipped. Transparency is left out, as those loaders do: what counts is the colour that is stored.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from likewise._base.files import reading
from likewise._base.machine import free_memory
from likewise._base.optional import require
from likewise.data.framing import Framing
from likewise.data.images import AS_THEY_ARE, USUAL, as_tensor, default_framing
from likewise.errors import InputError

_16_BITS = 65_535
_SHARE = 0.25  # of free memory, for decoded images: the next network need not decode them again


@dataclass
class Decoded:
    """What is known of files that belong together: their sizes and hashes, and decoded images for the next network.

    As many images are kept as there is room for; what comes later is decoded each time. Where something else than files
    has the images, `give` gives the PIL image of a key.
    """

    keys: Sequence[Any]
    room: int = field(default_factory=lambda: int(free_memory() * _SHARE))
    images: dict[Any, Any] = field(default_factory=dict)
    hashes: dict[Any, bytes] = field(default_factory=dict)
    give: Callable[[Any], Any] | None = None

    @cached_property
    def framing(self) -> Framing:
        """What all of them are shown at by default, however few are asked for."""
        return default_framing({self._size(key) for key in self.keys})

    def image(self, key: Any) -> Any:
        """One image: PIL, RGB, upright, as large as it is."""
        if key in self.images:
            return self.images[key]
        image = self._read(key)
        need = _bytes(image.size)
        if need <= self.room:
            self.room -= need
            self.images[key] = image
        return image

    def need(self, key: Any) -> int:
        """The bytes that an image takes once it is decoded."""
        return _bytes(self._size(key))

    def _read(self, key: Any) -> Any:
        if self.give is None:
            return decode(key, self.content(key))
        image = as_rgb(self.give(key), f"image {key}")
        self.hashes.setdefault(key, sha256(f"{image.size}".encode() + image.tobytes()).digest())
        return image

    def hash(self, key: Any) -> bytes:
        """A hash of one file."""
        if key not in self.hashes:
            _ = self.content(key) if self.give is None else self.image(key)
        return self.hashes[key]

    def content(self, path: Path) -> bytes:
        """The bytes of one file."""
        with reading(path, f"{path} cannot be read: {{reason}}. Remove or repair it."):
            content = path.read_bytes()
        self.hashes.setdefault(path, sha256(content).digest())
        return content

    def _size(self, key: Any) -> tuple[int, int]:
        if key in self.images or self.give is not None:
            width, height = self.image(key).size
            return width, height
        file = None if isinstance(key, Path) else BytesIO(self.content(key))
        with open_image(key, file) as image:
            width, height = image.size
            return width, height


def _bytes(size: tuple[int, int]) -> int:
    return 4 * size[0] * size[1]  # Pillow takes four bytes per pixel of RGB


class ImageFiles:
    """Images in files, decoded when asked for, and kept for the next network where memory allows.

    Args:
        paths: The files.
        size: The side of the squares they are shown as: by default their own where all are squares of one size, else
            224 after 256.
        asked: The size that the person asked for, which takes precedence over the transforms of networks.
        decoded: What other images of the same files have decoded already.
    """

    def __init__(
        self,
        paths: Sequence[Any],
        size: int | None = None,
        asked: Framing = AS_THEY_ARE,
        decoded: Decoded | None = None,
    ) -> None:
        self.paths, self.size, self.asked = list(paths), size, asked
        self._decoded = Decoded(self.paths) if decoded is None else decoded

    @classmethod
    def from_pil(cls, count: int, give: Callable[[int], Any]) -> ImageFiles:
        """PIL images of any mode and size, read when asked for.

        Args:
            count: How many there are.
            give: Gives the image of a number.
        """
        numbers = range(count)
        return cls(numbers, decoded=Decoded(numbers, give=give))

    @property
    def shape(self) -> tuple[int, ...]:
        """`(n, 3, size, size)` as they are shown."""
        size = self.asked.size or self.size or self._framing.size or 0
        return (len(self.paths), 3, size, size)

    @property
    def recipe(self) -> str:
        """How they are brought to size."""
        return self._framing.recipe

    @property
    def _framing(self) -> Framing:
        return self.asked.over(self._decoded.framing if self.size is None else Framing(self.size).over(USUAL))

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: Any) -> Tensor:
        return as_tensor(self._squares(index), self.shape)

    def _squares(self, index: Any) -> list[Any]:
        framing, squares = self._framing, []
        for path in self.only(index).paths:
            image = self._decoded.image(path)
            untouched = self.asked.crop is None and image.size == (framing.size, framing.size)
            squares.append(image if untouched else framing.image(image, str(path)))
        return squares

    def only(self, index: Any) -> ImageFiles:
        """Some of the files, by slice or numbers.

        Args:
            index: A slice, or numbers.
        """
        paths = self.paths[index] if isinstance(index, slice) else [self.paths[i] for i in index]
        return ImageFiles(paths, self.size, self.asked, self._decoded)

    def framed(self, framing: Framing) -> ImageFiles:
        """The same images, to be shown at another size.

        Args:
            framing: Size, crop and interpolation.
        """
        return ImageFiles(self.paths, self.size, framing.over(self.asked), self._decoded)

    def pictures(self, index: Any) -> list[Any]:
        """Some of the images for a transform, at the size that was asked for, else at their own: PIL, RGB.

        Args:
            index: A slice, or numbers.
        """
        if self.asked:
            return self._squares(index)
        return [self._decoded.image(path) for path in self.only(index).paths]

    def decoded(self) -> bool:
        """Whether all of them are decoded already."""
        return all(path in self._decoded.images for path in self.paths)

    def fit_in_memory(self) -> bool:
        """Whether all of them will be kept once they are decoded, judged by the size of the first that is not."""
        missing = [path for path in self.paths if path not in self._decoded.images]
        return not missing or self._decoded.need(missing[0]) * len(missing) <= self._decoded.room

    def content(self) -> Iterator[bytes]:
        """The bytes that identify the images: a hash of every file, whatever size they are shown at."""
        return map(self._decoded.hash, self.paths)


@contextmanager
def open_image(path: Path, file: Any = None) -> Iterator[Any]:
    """An image file, or a sentence that names it; one that would unpack to gigabytes is refused."""
    pil: Any = require("PIL.Image", extra="vision", to=f"read {path.name}")
    with reading(path, f"{path} cannot be read as an image. Remove or repair it."), warnings.catch_warnings():
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
    if image.getexif().get(0x0112) not in (None, 1):
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
