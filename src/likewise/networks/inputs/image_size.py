"""The size of the images a network takes, and batches made for another network brought to it."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn.functional import interpolate

from likewise.networks.address import recipe
from likewise.networks.inputs.normalisation import transform_of, unwrapped
from likewise.networks.zoo.registry import ImageNetwork


def resize_for(net: nn.Module, inputs: Any) -> Any:
    """A batch of images in [0, 1], made for another network, as this one takes it: at its size, in its channels.

    The whole image is kept: it is resized (bilinear, antialiased), not cropped. Inputs that are no images, and images
    for a network that takes any size, stay as they are.
    """
    if not isinstance(inputs, Tensor) or inputs.ndim != 4 or not inputs.is_floating_point():
        return inputs
    transform, size = transform_of(net), input_size(net)
    if transform is not None and transform.whole:
        return transform(inputs)
    inputs = inputs if size is None else resized(inputs, size)
    return inputs if transform is None else transform.sized(inputs)


def resized(images: Tensor, size: tuple[int, ...]) -> Tensor:
    """Images in [0, 1] at another height and width, bilinear and antialiased."""
    if tuple(images.shape[2:]) == size:
        return images
    return interpolate(images, size, mode="bilinear", antialias=True).clamp(0, 1)


def input_size(net: nn.Module) -> tuple[int, int] | None:
    """The height and width of the images a network takes, None where it takes any or nothing says so."""
    transform, origin, inside = transform_of(net), recipe(net), unwrapped(net)
    if transform is not None and transform.resizes and transform.size is not None:
        return transform.size
    declared = None if origin is None else origin.options.get("size")
    side = inside.size if isinstance(inside, ImageNetwork) else declared
    return (side, side) if isinstance(side, int) else None
