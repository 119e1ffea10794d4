"""How an image becomes a square: the shorter side to `size` / `crop`, then the middle `size` × `size`.

That is the usual preparation of ImageNet's validation images (224 after 256 is size=224, crop=0.875). Any of the three
may be left open: then the network's own transform decides, else the data.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from torch import Tensor
from torch.nn.functional import interpolate

from likewise._base.optional import require
from likewise.errors import InputError, did_you_mean

INTERPOLATIONS = ("bilinear", "bicubic", "nearest", "lanczos", "box", "hamming")
_MOST_PIXELS = 178_956_970  # what Pillow takes for an attack
_LARGEST = 8192


@dataclass(frozen=True)
class Framing:
    """Size in pixels, the share of the shorter side that is kept, and the interpolation; None where it is open.

    Example:
        >>> Framing(64).over(Framing(224, 0.875, "bicubic"))
        Framing(size=64, crop=0.875, interpolation='bicubic')
    """

    size: int | None = None
    crop: float | None = None
    interpolation: str | None = None

    def __post_init__(self) -> None:
        if self.size is not None and not (type(self.size) is int and 1 <= self.size <= _LARGEST):
            raise InputError(f"size is {self.size!r}. Give whole pixels from 1 to {_LARGEST}, as in size=224.")
        crop = self.crop
        if crop is not None and not (isinstance(crop, (int, float)) and not isinstance(crop, bool) and 0 < crop <= 1):
            raise InputError(f"crop is {crop!r}. Give the share of the shorter side to keep, as in crop=0.875.")
        name = self.interpolation
        if name is not None and name not in INTERPOLATIONS:
            raise InputError(
                f"no interpolation is called {name!r}.{did_you_mean(str(name), INTERPOLATIONS)} "
                f"Choose one of {', '.join(INTERPOLATIONS)}."
            )

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) is not None for field in fields(self))

    def over(self, other: Framing) -> Framing:
        """This, and what it leaves open from the other."""
        values = {name: getattr(self, name) for name in FRAMING}
        return Framing(**{k: getattr(other, k) if value is None else value for k, value in values.items()})

    @property
    def text(self) -> str:
        """As it is written in an address."""
        return "".join(f",{name}={getattr(self, name)}" for name in FRAMING if getattr(self, name) is not None)

    @property
    def recipe(self) -> str:
        """One line for the record."""
        return f"{self.size} × {self.size}, crop {self.crop:g}, {self.interpolation}"

    def image(self, image: Any, label: str) -> Any:
        """A PIL image as a square."""
        size, edge = self._sizes()
        if image.size == (size, size) == (edge, edge):
            return image
        wide, high = _resized(image.size[0], image.size[1], edge)
        if wide * high > _MOST_PIXELS:
            raise InputError(
                f"{label} is {image.size[0]} × {image.size[1]} pixels, too narrow to take a square "
                "from its middle. Remove it."
            )
        pil: Any = require("PIL.Image", extra="vision", to="resize images")
        left, top = round((wide - size) / 2), round((high - size) / 2)
        resized = image.resize((wide, high), pil.Resampling[str(self.interpolation).upper()])
        return resized.crop((left, top, left + size, top + size))

    def tensor(self, images: Tensor) -> Tensor:
        """Floats `(n, c, h, w)` as squares, by torch, antialiased."""
        size, edge = self._sizes()
        high, wide = images.shape[2:]
        if (high, wide) == (size, size) == (edge, edge):
            return images
        wide, high = _resized(wide, high, edge)
        smooth = {"bicubic": "bicubic", "lanczos": "bicubic", "nearest": "nearest-exact"}
        mode = smooth.get(str(self.interpolation), "bilinear")
        resized = interpolate(images, (high, wide), mode=mode, antialias=mode != "nearest-exact").clamp(0, 1)
        left, top = round((wide - size) / 2), round((high - size) / 2)
        return resized[:, :, top : top + size, left : left + size]

    def _sizes(self) -> tuple[int, int]:
        """The side of the square, and that of the image it is cut from."""
        if self.size is None or self.crop is None or self.interpolation is None:
            raise InputError(f"{self} is open. Give size, crop and interpolation.")
        return self.size, round(self.size / self.crop)


FRAMING = tuple(field.name for field in fields(Framing))


def _resized(wide: int, high: int, edge: int) -> tuple[int, int]:
    """Width and height with the shorter side at `edge`, rounded as torchvision does."""
    return (edge, edge * high // wide) if wide <= high else (edge * wide // high, edge)
