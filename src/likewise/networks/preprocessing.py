"""Data as a network is shown it: what it takes of it, images by its own transform, everything else as it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor, nn
from torch.nn.functional import interpolate

from likewise._base.warnings import warn
from likewise.data import Data, Images
from likewise.data.images import Transformed
from likewise.errors import InputError
from likewise.networks.forward import KINDS, takes
from likewise.networks.load import recipe
from likewise.networks.normalise import transform_of, unwrapped
from likewise.networks.transforms import Transform, from_callable
from likewise.networks.zoo.registry import ImageNetwork


def shown_to(net: nn.Module, data: Any, label: str, transform: Any = None) -> Any:
    """The data as a network is shown it: images by the transform that is given, else by its own.

    The size that the person asked for (`size=` of the data) goes before that of a network's own transform. Bytes and
    floats that have the size of the network are shown as they are. A network without a transform, and whatever is not
    data of images, is shown the data as it is.
    """
    if isinstance(data, Data):
        kind = takes(net)
        if kind is not None and kind not in data.domains and data.domain != "text":  # text says what it needs
            raise InputError(
                f"{label} takes {KINDS[kind]}, and {data.name!r} holds {KINDS[data.domain]}. Choose another network, "
                f"or data of {KINDS[kind]}."
            )
        data = data.of_kind(kind)
    own = transform_of(net) if transform is None else from_callable(transform)
    if own is None:
        return data
    images = _images(data)
    if images is None:
        if transform is not None:
            raise InputError(
                f"transform takes images, and the data is {_described(data)}. Give images: an address of some, or a "
                "list of PIL images."
            )
        return data
    if transform is not None:
        return replace(data, inputs=Transformed(images, own, own.recipe))
    if isinstance(images, Images):
        _say_resized(images, own, data.name, label)
    return replace(data, inputs=_by_own(own, images))


def fitted(net: nn.Module, inputs: Any) -> Any:
    """A batch of images in [0, 1], made for another network, as this one takes it: at its size, in its channels.

    The whole image is kept: it is resized (bilinear, antialiased), not cropped. Inputs that are no images, and images
    for a network that takes any size, stay as they are.
    """
    if not isinstance(inputs, Tensor) or inputs.ndim != 4 or not inputs.is_floating_point():
        return inputs
    own, size = transform_of(net), input_size(net)
    if own is not None and own.whole:
        return own(inputs)
    inputs = inputs if size is None else resized(inputs, size)
    return inputs if own is None else own.sized(inputs)


def resized(images: Tensor, size: tuple[int, ...]) -> Tensor:
    """Images in [0, 1] at another height and width, bilinear and antialiased."""
    if tuple(images.shape[2:]) == size:
        return images
    return interpolate(images, size, mode="bilinear", antialias=True).clamp(0, 1)


def input_size(net: nn.Module) -> tuple[int, int] | None:
    """The height and width of the images a network takes, None where it takes any or nothing says so."""
    own, made, inside = transform_of(net), recipe(net), unwrapped(net)
    if own is not None and own.resizes and own.size is not None:
        return own.size
    declared = None if made is None else made.options.get("size")
    side = inside.size if isinstance(inside, ImageNetwork) else declared
    return (side, side) if isinstance(side, int) else None


def _by_own(own: Transform, images: Any) -> Transformed:
    if images.asked:
        framed = images.framed(images.asked.over(own.framing))
        recipe = f"{framed.recipe}, {own.recipe}" if own.whole else framed.recipe
        return Transformed(framed, own.sized, recipe, framed.shape[2:])
    if isinstance(images, Images) and (not own.resizes or images.shape[2:] == own.size):
        return Transformed(images, own.sized, own.recipe if own.whole else "", images.shape[2:])
    return Transformed(images, own, own.recipe, own.size)


def _images(data: Any) -> Any:
    """The images of data, None where it has none that could be brought to another size."""
    if not isinstance(data, Data) or data.domain != "image":
        return None
    if isinstance(data.inputs, Tensor):
        return Images(data.inputs)
    return data.inputs if hasattr(data.inputs, "pictures") else None


def _described(data: Any) -> str:
    if isinstance(data, Data):
        return f"{data.domain} inputs" if data.domain != "image" else f"a {type(data.inputs).__name__}"
    return f"a {type(data).__name__}, which is shown as it is"


def _say_resized(images: Images, own: Transform, name: str, label: str) -> None:
    """Say so where images that lie in memory are brought to another size that nobody asked for."""
    given, size = images.shape[2:], own.size
    if images.asked or size is None or given == size:
        return
    how = "enlarged" if given[0] * given[1] < size[0] * size[1] else "reduced"
    warn(
        f"images of {given[1]} × {given[0]} are {how} to {size[1]} × {size[0]} for {label}, by its own transform. "
        f"To show all networks one size, choose it with the data: '{name},size={given[0]}'."
    )
