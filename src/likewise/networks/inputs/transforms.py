"""What a network's makers do to an image before the network sees it: size, crop, interpolation.

A transform takes decoded images (PIL, RGB) and gives floats in [0, 1], `(n, 3, height, width)`. Normalisation is not
part of it but the network's own first part (`Normalised`), since attacks need [0, 1]. What does more than that, as a
processor that gives a mask with the pixels, gives everything as the network takes it: it is `whole`, and such a
network has no `Normalised`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from likewise._base.hashing import facts_digest, value_digest
from likewise._base.optional import require
from likewise._base.progress import warn
from likewise.data import Data, Images
from likewise.data.framing import Framing
from likewise.data.images import USUAL, Transformed, as_pil, as_tensor
from likewise.errors import InputError, LikewiseError, brief, first_line

Numbers = tuple[float, ...]
_LUMA = (0.299, 0.587, 0.114)  # of red, green and blue in grey, as Pillow has it


@dataclass(frozen=True, eq=False)
class Transform:
    """What turns a list of PIL images into what a network takes.

    `size` is `(height, width)`, None where it depends on the image; `crop` the share of the shorter side that is
    kept; `recipe` one line that says all of it, for the record. `mean` and `std` are what the network is to normalise
    by; a `whole` transform leaves nothing to normalise. `finish` is what it does to images that have their size. One
    that never `resizes` shows bytes and floats as they are.
    """

    apply: Callable[[list[Any]], Any]
    recipe: str
    size: tuple[int, int] | None = None
    crop: float | None = None
    interpolation: str | None = None
    mean: Numbers | None = None
    std: Numbers | None = None
    whole: bool = False
    finish: Callable[[list[Any]], Any] | None = None
    channels: int = 3
    resizes: bool = True

    def __call__(self, images: Any) -> Any:
        """A batch of PIL images, of any mode, or of floats `(n, c, h, w)` in [0, 1]."""
        if isinstance(images, Tensor) and not self.whole and self.framing.size is not None:
            return in_channels(self.framing.over(USUAL).tensor(images), self.channels)
        return self.apply(self._pictures(images))

    def sized(self, images: Any) -> Any:
        """A batch of images that have their size already."""
        if isinstance(images, Tensor) and not self.whole:
            return in_channels(images, self.channels)
        pictures = self._pictures(images)
        return self.finish(pictures) if self.finish is not None else as_batch(pictures, self.channels)

    @property
    def framing(self) -> Framing:
        """Size, crop and interpolation where they are a square from the middle."""
        square = self.size is not None and self.size[0] == self.size[1]
        return Framing(self.size[0] if self.size and square else None, self.crop, self.interpolation)

    def _pictures(self, images: Any) -> list[Any]:
        mode = "L" if self.channels == 1 else "RGB"
        pictures = as_pil(images) if isinstance(images, Tensor) else images
        return [image if image.mode == mode else image.convert(mode) for image in pictures]


def in_channels(images: Tensor, channels: int) -> Tensor:
    """Images in colour or in grey, `(n, channels, h, w)`."""
    if images.shape[1] == channels:
        return images
    if images.shape[1] == 1:
        return images.expand(-1, channels, -1, -1)
    return (images * torch.tensor(_LUMA).to(images).view(-1, 1, 1)).sum(1, keepdim=True)


def as_batch(images: list[Any], channels: int = 3) -> Tensor:
    """PIL images of one size as floats in [0, 1]."""
    width, height = images[0].size
    return as_tensor(images, (len(images), channels, height, width))


def transformed(data: Any, transform: Transform, label: str, *, asked: bool) -> Any:
    """Data with its images as a transform gives them, one that the person `asked` for or the network's own.

    The size that the person asked for (`size=` of the data) takes precedence over that of a network's own transform.
    Bytes and floats that have the size of the network are shown as they are, and so is whatever is not data of images.
    """
    images = _images(data)
    if images is None:
        if asked:
            what = f"a {type(data).__name__}, which is shown as it is"
            if isinstance(data, Data):
                what = f"{data.domain} inputs" if data.domain != "image" else f"a {type(data.inputs).__name__}"
            raise InputError(
                f"transform takes images, and the data is {what}. Give images: an address of some, or a list of PIL "
                "images."
            )
        return data
    if transform.whole and isinstance(images, Images) and images.shape[1] == 1 and transform.finish is transform.apply:
        transform = replace(transform, channels=1)  # a person's function receives grey images as they are
    if asked:
        return replace(data, inputs=Transformed(images, transform, transform.recipe))
    if isinstance(images, Images):
        _warn_of_resizing(images, transform, data.name, label)
    return replace(data, inputs=_by_network(transform, images))


def _by_network(transform: Transform, images: Any) -> Transformed:
    """Images by the transform of a network, of the size that was asked for."""
    if images.asked:
        framed = images.framed(images.asked.over(transform.framing))
        recipe = f"{framed.recipe}, {transform.recipe}" if transform.whole else framed.recipe
        return Transformed(framed, transform.sized, recipe, framed.shape[2:])
    if isinstance(images, Images) and (not transform.resizes or images.shape[2:] == transform.size):
        return Transformed(images, transform.sized, transform.recipe if transform.whole else "", images.shape[2:])
    return Transformed(images, transform, transform.recipe, transform.size)


def _images(data: Any) -> Any:
    """The images of data, None where it has none that could be brought to another size."""
    if not isinstance(data, Data) or data.domain != "image":
        return None
    if isinstance(data.inputs, Tensor):
        return Images(data.inputs)
    return data.inputs if hasattr(data.inputs, "pictures") else None


def _warn_of_resizing(images: Images, transform: Transform, name: str, label: str) -> None:
    """Warn where images in memory are resized without being asked to."""
    (height, width), size = images.shape[2:], transform.size
    if images.asked or size is None or (height, width) == size:
        return
    verb = "enlarged" if height * width < size[0] * size[1] else "reduced"
    warn(
        f"images of {width} × {height} are {verb} to {size[1]} × {size[0]} for {label}, by its own transform. "
        f"To show all networks one size, choose it with the data: '{name},size={height}'."
    )


def from_callable(transform: Any) -> Transform:
    """A person's own transform: a function of a PIL image that gives what the network inside takes.

    Images are RGB, and greyscale where the data holds arrays of one channel, as torchvision gives MNIST.

    An image processor of transformers is one too. What it gives is shown as it is, past `Normalised`.
    """
    if isinstance(transform, Transform):
        return transform
    if hasattr(transform, "to_json_string") and hasattr(transform, "model_input_names"):
        return replace(from_processor(transform), apply=partial(_processed, transform), whole=True)
    if not callable(transform):
        raise InputError(f"transform is {brief(transform)}. Give a function of a PIL image that gives a tensor.")
    name, apply = getattr(transform, "__name__", type(transform).__name__), partial(each, transform)
    return Transform(apply, f"{name} ({value_digest(transform)[:8]})", whole=True, finish=apply)


def each(transform: Callable[[Any], Any], images: list[Any]) -> Tensor:
    """What a function of one image gives for each of them, as one batch."""
    values = each_alone(transform, images)
    if isinstance(values, Tensor):
        return values
    shapes = list(dict.fromkeys(str(tuple(value.shape)) for value in values))
    raise InputError(
        f"the transform gives images of shapes {' and '.join(shapes[:2])}, which make no batch. Bring them to one size "
        "with the data, as in 'imagefolder:PATH,size=224', or show one at a time: batch_size=1."
    )


def each_alone(transform: Callable[[Any], Any], images: list[Any]) -> Tensor | list[Tensor]:
    """What a function of one image gives for each of them, as one batch where they are of one size."""
    values = [_one(transform, image) for image in images]
    values = [torch.from_numpy(value) if isinstance(value, np.ndarray) else value for value in values]
    wrong = next((value for value in values if not isinstance(value, Tensor)), None)
    if wrong is not None:
        raise InputError(
            f"the transform gives {brief(wrong)}, not a tensor. End it with torchvision.transforms.ToTensor(), for one."
        )
    return torch.stack(values) if len({value.shape for value in values}) == 1 else values


def _one(transform: Callable[[Any], Any], image: Any) -> Any:
    """What a person's function gives for one image, or a sentence that says why it fails."""
    try:
        return transform(image)
    except LikewiseError:
        raise
    except Exception as error:
        name, size = getattr(transform, "__name__", type(transform).__name__), " × ".join(map(str, image.size))
        raise InputError(
            f"the transform {name} fails on a {image.mode} image of {size}: {type(error).__name__}: "
            f"{first_line(error)}. Repair it: it receives a PIL image and gives a tensor."
        ) from error


def normalisation_of(transform: Transform | None, data: Any) -> tuple[Numbers, Numbers] | None:
    """The mean and deviation that a person's function normalises images by, None where it does anything else.

    It is tried on a black and a white image and on two of noise, as large as those of the data.
    """
    images = _images(data)
    if transform is None or transform.finish is not transform.apply or not isinstance(images, Images):
        return None
    shape = images.shape[1:]
    noise = torch.rand(2, *shape, generator=torch.Generator().manual_seed(0))
    tried = (torch.cat([torch.zeros(1, *shape), torch.ones(1, *shape), noise]) * 255).byte().float() / 255
    try:
        values = each(transform.apply.args[0], as_pil(tried))  # type: ignore[attr-defined]
    except LikewiseError:  # what is wrong with it shows where it is used
        return None
    if values.shape != tried.shape or not values.is_floating_point():
        return None
    low, high = values[:2, :, 0, 0].double()
    mean, std = -low / (high - low), 1 / (high - low)
    expected = (tried - mean.view(-1, 1, 1)) / std.view(-1, 1, 1)
    if not bool((std > 0).all()) or not torch.allclose(values.double(), expected, rtol=1e-5, atol=1e-5):
        return None
    return tuple(mean.tolist()), tuple(std.tolist())


def from_processor(processor: Any) -> Transform:
    """The transform that an image processor of transformers is.

    The processor itself is called, whatever it does. Where it resizes, scales to [0, 1] and normalises, normalisation
    is left to the network; where it does anything else (masks, patches, another order of the channels) it is `whole`.
    """
    pixels, whole = partial(_processed, processor, do_normalize=False), partial(_processed, processor)
    can_leave_out = hasattr(processor, "do_normalize")
    size = _size_of(pixels if can_leave_out else whole)
    crop, interpolation = _crop_of(processor, size), _interpolation(getattr(processor, "resample", None))
    size_text = f"{size[0]} × {size[1]}, " if size else ""
    facts = facts_digest(json.loads(processor.to_json_string()))[:8]
    recipe = f"{type(processor).__name__}: {size_text}{interpolation or 'not resized'} ({facts})"
    make = partial(Transform, recipe=recipe, size=size, crop=crop, interpolation=interpolation)
    mean, std = (_by_channel(processor, key) for key in ("image_mean", "image_std"))
    if not can_leave_out:
        return make(whole, whole=True)
    if _is_normalised(pixels, whole, (0.0,) * 3, (1.0,) * 3):
        return make(pixels)
    if _is_normalised(pixels, whole, mean, std):
        return make(pixels, mean=mean, std=std)
    return make(whole, whole=True, finish=partial(whole, do_resize=False, do_center_crop=False))


def _processed(processor: Any, images: list[Any], **options: Any) -> Any:
    """Pixels where a processor gives these alone, else all that it gives."""
    try:
        output = processor(images=images, return_tensors="pt", **options)
    except ValueError as error:
        raise InputError(
            f"{type(processor).__name__} makes no batch of {len(images)} images: {str(error).splitlines()[0]} "
            "Bring them to one size with the data, as in 'imagefolder:PATH,size=224'."
        ) from error
    output = {"pixel_values": output} if isinstance(output, Tensor) else output
    values = {key: value for key, value in output.items() if isinstance(value, Tensor)}
    return values["pixel_values"] if list(values) == ["pixel_values"] else values


def _noise(wide: int, high: int) -> list[Any]:
    pil: Any = require("PIL.Image", extra="vision", to="try an image processor")
    return [pil.fromarray(np.random.default_rng(0).integers(0, 256, (high, wide, 3), dtype=np.uint8))]


def _size_of(process: Callable[[list[Any]], Any]) -> tuple[int, int] | None:
    """Height and width of what a processor gives, where they are the same for a wide image and for a high one."""
    outputs = [process(_noise(*size)) for size in ((64, 48), (40, 56))]
    pixels = [value.get("pixel_values") if isinstance(value, Mapping) else value for value in outputs]
    sizes = {(value.shape[2], value.shape[3]) for value in pixels if isinstance(value, Tensor) and value.ndim == 4}
    return sizes.pop() if len(sizes) == 1 and all(isinstance(value, Tensor) for value in pixels) else None


def _is_normalised(
    pixels: Callable[[list[Any]], Any], whole: Callable[[list[Any]], Any], mean: Numbers, std: Numbers
) -> bool:
    """Whether a processor, tried on an image of noise, gives pixels in [0, 1] less the mean over the deviation."""
    plain, normalised = pixels(_noise(64, 48)), whole(_noise(64, 48))
    if not isinstance(plain, Tensor) or not isinstance(normalised, Tensor) or plain.shape != normalised.shape:
        return False
    # a high end well below 1 means bytes over something else than 255
    if plain.ndim != 4 or plain.shape[1] != 3 or not (plain.min() > -1e-3 and 0.5 < plain.max() < 1 + 1e-3):
        return False
    expected = (plain - torch.tensor(mean).view(-1, 1, 1)) / torch.tensor(std).view(-1, 1, 1)
    return torch.allclose(expected, normalised, atol=1e-4)


def _by_channel(processor: Any, key: str) -> Numbers:
    value = getattr(processor, key, None)
    return tuple(np.broadcast_to(1.0 if value is None else value, 3).astype(float).tolist())


def _crop_of(processor: Any, size: tuple[int, int] | None) -> float | None:
    """The share of the shorter side that a processor keeps, as far as it says; all of it where it does not crop."""
    share = getattr(processor, "crop_pct", None)
    if size is None or share:
        return share
    sizes = getattr(processor, "size", None)
    edge = sizes.get("shortest_edge") if isinstance(sizes, Mapping) else getattr(sizes, "shortest_edge", None)
    return min(1.0, min(size) / edge) if edge else 1.0


def _interpolation(resample: Any) -> str | None:
    pil: Any = require("PIL.Image", extra="vision", to="read an image processor")
    value = getattr(resample, "value", resample)
    if value is None or isinstance(value, str):
        return value
    return str(pil.Resampling(value).name.lower())


def resized(images: Tensor, size: tuple[int, ...]) -> Tensor:
    """Images in [0, 1] at another height and width, bilinear and antialiased."""
    if tuple(images.shape[2:]) == size:
        return images
    return interpolate(images, size, mode="bilinear", antialias=True).clamp(0, 1)
