"""Augmentations of torchvision: turned, blurred, recoloured, tilted and sheared images, each drawn for itself.

torchvision's transforms draw once per call, so each image of a batch is a call of its own, with random numbers from the
training's generator. How far they go is ours where no paper says it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Generator, Tensor

from likewise._base.optional import prepare_torchvision, require
from likewise.errors import InputError, brief


def rotation(images: Tensor, generator: Generator) -> Tensor:
    """Each image is turned by up to 15 degrees; what comes in is black."""
    return _each(images, generator, "RandomRotation", degrees=15)


def blur(images: Tensor, generator: Generator) -> Tensor:
    """Each image is blurred by a Gaussian of deviation 0.1 to 1 pixel, 3 pixels wide."""
    return _each(images, generator, "GaussianBlur", kernel_size=3, sigma=(0.1, 1.0))


def jitter(images: Tensor, generator: Generator) -> Tensor:
    """Brightness, contrast and saturation of each image change by up to 20 %, its hue by up to 5 % of the circle."""
    return _each(images, generator, "ColorJitter", brightness=0.2, contrast=0.2, saturation=0.2, hue=0.05)


def perspective(images: Tensor, generator: Generator) -> Tensor:
    """Every second image, at random, is seen from the side: corners move by up to a tenth of each side."""
    return _each(images, generator, "RandomPerspective", distortion_scale=0.2, p=0.5)


def affine(images: Tensor, generator: Generator) -> Tensor:
    """Each image is shifted by up to 10 %, scaled by 0.9 to 1.1 and sheared by up to 10 degrees."""
    return _each(images, generator, "RandomAffine", degrees=0, translate=(0.1, 0.1), scale=(0.9, 1.1), shear=10)


def _each(images: Tensor, generator: Generator, name: str, **options: Any) -> Tensor:
    """Every image of a batch, changed by a transform of torchvision that draws anew for each."""
    if not isinstance(images, Tensor) or images.ndim != 4:
        raise InputError(f"{name} is for images, and a batch is {brief(images)}. Leave it out.")
    prepare_torchvision()
    transform = getattr(require("torchvision.transforms.v2", extra="vision", to=f"augment with {name}"), name)(
        **options
    )
    seed = int(torch.randint(2**31, (), generator=generator))
    with torch.random.fork_rng(devices=[]):  # its transforms take no generator
        torch.manual_seed(seed)
        return torch.stack([transform(image) for image in images])
