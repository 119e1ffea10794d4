"""Changes to images while training: each a function of the batch and a random generator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Generator, Tensor
from torch.nn import functional

from likewise.errors import InputError, did_you_mean

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


AUGMENTS: dict[str, Augment] = {"flip": flip, "crop": crop, "cutout": cutout, "noise": noise}


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
