"""Changes to images while training: each a function of the batch and a random generator."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor
from torch.nn import functional

from likewise.errors import InputError, brief, did_you_mean
from likewise.networks.training.warps import affine, blur, jitter, perspective, rotation

Augment = Callable[[Any, Generator], Any]


def flip(images: Tensor, generator: Generator) -> Tensor:
    """Every second image, at random, is mirrored."""
    flipped = torch.rand(len(images), generator=generator).to(images.device) < 0.5
    return torch.where(flipped[:, None, None, None], images.flip(-1), images)


def crop(images: Tensor, generator: Generator) -> Tensor:
    """Each image is shifted by up to an eighth of its side; what comes in is black."""
    n, _, high, wide = images.shape
    room = max(1, high // 8)
    padded = functional.pad(images, (room, room, room, room))
    shifts = torch.randint(0, 2 * room + 1, (2, n), generator=generator).to(images.device)
    rows = shifts[0][:, None] + torch.arange(high, device=images.device)
    columns = shifts[1][:, None] + torch.arange(wide, device=images.device)
    every = torch.arange(n, device=images.device)[:, None, None]
    return padded.permute(0, 2, 3, 1)[every, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def resized_crop(images: Tensor, generator: Generator) -> Tensor:
    """A part of each image, 8 to 100 % of its area and 3:4 to 4:3 in shape, enlarged to the size of the whole."""
    n, _, high, wide = images.shape
    return enlarged(images, *boxes(n, high, wide, generator))


def boxes(n: int, high: int, wide: int, generator: Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Top, left, height and width of the part of each image, drawn as torchvision's RandomResizedCrop does.

    Of ten boxes the first that fits is taken. Where none does, it is the largest in the middle.
    """
    tries = 10
    area = high * wide * torch.empty(tries, n).uniform_(0.08, 1, generator=generator)
    shape = torch.empty(tries, n).uniform_(math.log(3 / 4), math.log(4 / 3), generator=generator).exp()
    tall, broad = (area / shape).sqrt().round(), (area * shape).sqrt().round()
    fits = (tall >= 1) & (tall <= high) & (broad >= 1) & (broad <= wide)
    first = fits.int().argmax(dim=0, keepdim=True)
    any_fits = fits.any(dim=0)
    tall = torch.where(any_fits, tall.gather(0, first)[0], min(high, round(wide * 4 / 3)))
    broad = torch.where(any_fits, broad.gather(0, first)[0], min(wide, round(high * 4 / 3)))
    top, left = (
        torch.where(any_fits, (torch.rand(n, generator=generator) * (room + 1)).floor(), (room / 2).floor())
        for room in (high - tall, wide - broad)
    )
    return top, left, tall, broad


def enlarged(images: Tensor, top: Tensor, left: Tensor, tall: Tensor, broad: Tensor) -> Tensor:
    """A part of each image, bilinearly enlarged to the size of the whole."""
    n, _, high, wide = images.shape
    rows, columns = _places(high, top, tall)[:, :, None], _places(wide, left, broad)[:, None, :]
    grid = torch.stack([columns.expand(n, high, wide), rows.expand(n, high, wide)], dim=-1).to(images)
    return functional.grid_sample(images, grid, padding_mode="border", align_corners=False)


def _places(size: int, start: Tensor, length: Tensor) -> Tensor:
    """Where each pixel of the enlarged side comes from `(n, size)`, -1 to 1 over the whole; never beyond the part."""
    start, length = start[:, None], length[:, None]
    pixels = (torch.arange(size) + 0.5) * length / size - 0.5
    pixels = start + torch.minimum(pixels.clamp(min=0), length - 1)
    return (2 * pixels + 1) / size - 1


def cutout(images: Tensor, generator: Generator) -> Tensor:
    """A square of half the side is blacked out somewhere in each image."""
    n, _, high, wide = images.shape
    centre = torch.rand(2, n, generator=generator).to(images.device)
    rows = torch.arange(high, device=images.device)[None, :, None]
    columns = torch.arange(wide, device=images.device)[None, None, :]
    near_row = (rows - centre[0][:, None, None] * high).abs() < high / 4
    near_column = (columns - centre[1][:, None, None] * wide).abs() < wide / 4
    return images * ~(near_row & near_column)[:, None]


def noise(images: Tensor, generator: Generator) -> Tensor:
    """Gaussian noise of deviation 0.05, kept within [0, 1]."""
    values = torch.randn(images.shape, generator=generator).to(images.device)
    return (images + 0.05 * values).clamp(0, 1)


@dataclass(frozen=True)
class Noise:
    """Gaussian noise as an augmentation of a training, for each image of another variance.

    Attributes:
        variance: The largest variance, for pixels from 0 to 255; each image has one drawn from 0 to this.

    Example:
        >>> Noise(1000)(torch.zeros(2, 3, 8, 8), torch.Generator().manual_seed(0)).shape
        torch.Size([2, 3, 8, 8])
    """

    variance: float = 1000.0

    def __post_init__(self) -> None:
        if not 0 <= self.variance < math.inf:
            raise InputError(f"Noise was given variance = {self.variance}. Give 0 or more, as in Noise(1000).")

    def __call__(self, images: Tensor, generator: Generator) -> Tensor:
        if not isinstance(images, Tensor) or images.ndim != 4:
            raise InputError(f"Noise is for images, and a batch is {brief(images)}. Leave it out.")
        deviation = (self.variance * torch.rand(len(images), 1, 1, 1, generator=generator)).sqrt() / 255
        values = deviation * torch.randn(images.shape, generator=generator)
        return (images + values.to(images.device)).clamp(0, 1)


AUGMENTS: dict[str, Augment] = {
    "flip": flip,
    "crop": crop,
    "resized-crop": resized_crop,
    "cutout": cutout,
    "noise": noise,
    "rotation": rotation,
    "blur": blur,
    "jitter": jitter,
    "perspective": perspective,
    "affine": affine,
}


def select(names: Sequence[str | Augment]) -> list[Augment]:
    """The functions of these names; functions stand for themselves."""
    unknown = [name for name in names if isinstance(name, str) and name not in AUGMENTS]
    if unknown:
        raise InputError(
            f"no augmentation named {unknown[0]!r}.{did_you_mean(unknown[0], AUGMENTS)} "
            f"There are {', '.join(AUGMENTS)}."
        )
    return [AUGMENTS[name] if isinstance(name, str) else name for name in names]


def mix(
    images: Tensor, labels: Tensor, classes: int, generator: Generator, *, mixup: float, cutmix: float
) -> tuple[Tensor, Tensor]:
    """Images mixed with each other, and the shares of their classes as soft labels `(n, classes)`.

    `mixup` and `cutmix` are the α of the Beta distribution the share is drawn from; where both are
    given, each batch takes one of them at random.
    """
    soft = functional.one_hot(labels, classes).to(images.dtype)
    paste = bool(cutmix) and (not mixup or float(torch.rand((), generator=generator)) < 0.5)
    share = _beta(cutmix if paste else mixup, generator)
    partner = torch.randperm(len(images), generator=generator).to(images.device)
    if paste:
        images, share = _paste(images, images[partner], share, generator)
    else:
        images = share * images + (1 - share) * images[partner]
    return images, share * soft + (1 - share) * soft[partner]


def _beta(alpha: float, generator: Generator) -> float:
    # torch's sampler takes no generator, so it is seeded from ours
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(torch.randint(2**31, (), generator=generator)))
        return float(torch.distributions.Beta(alpha, alpha).sample())


def _paste(images: Tensor, partners: Tensor, share: float, generator: Generator) -> tuple[Tensor, float]:
    high, wide = images.shape[2:]
    tall, broad = (round(side * (1 - share) ** 0.5) for side in (high, wide))
    top = int(torch.randint(high - tall + 1, (), generator=generator))
    left = int(torch.randint(wide - broad + 1, (), generator=generator))
    mixed = images.clone()
    window = (..., slice(top, top + tall), slice(left, left + broad))
    mixed[window] = partners[window]
    return mixed, 1 - tall * broad / (high * wide)
