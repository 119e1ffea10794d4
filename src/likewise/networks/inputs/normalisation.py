"""What stands around a network: normalisation as its own first part, wrappers, and what is noted on it.

So every image network takes [0, 1]. `unwrapped` is the network inside of that, and of whatever else adds no layers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from likewise._base.hashing import NOTES
from likewise._base.progress import warn
from likewise.errors import InputError, brief

if TYPE_CHECKING:
    from likewise.networks.inputs.transforms import Transform

NAMES = "mean", "std"
OF_DATA = "of the data"  # noted as the normalisation of a network that was sized for data


class Normalised(nn.Module):
    """A network that is shown `(images - mean) / std`, channel by channel.

    The mean and deviation are in the state dict, so that saved weights keep them; one without them leaves them as they
    are. Layer names are those of the network inside (see `unwrapped`).

    Args:
        net: The network inside.
        mean: One number per channel, for images in [0, 1].
        std: One number per channel, none of them 0.
    """

    mean: Tensor
    std: Tensor
    any_channels = False  # whether one mean is for images of any number of channels

    def __init__(self, net: nn.Module, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        # the code, its sentences included, is part of the fingerprint of every network inside
        if len(mean) != len(std) or not all(value > 0 for value in std):
            raise InputError(
                f"cannot normalise by mean {list(mean)} and std {list(std)}. "
                "Give one of each a channel, and no deviation of 0."
            )
        self.net = net
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(-1, 1, 1))
        self.register_load_state_dict_pre_hook(_keep_own)  # type: ignore[no-untyped-call]

    def forward(self, images: Tensor) -> object:
        if images.ndim == 4 and images.shape[1] != len(self.mean) and not self.any_channels:
            raise InputError(
                f"{type(self.net).__name__} takes images of {len(self.mean)} channels and was "
                f"shown {tuple(images.shape)}. Give it images of its own kind, or build it with "
                f"channels={images.shape[1]}."
            )
        if images.dtype == torch.uint8:
            images = images.to(self.mean.dtype) / 255
        return self.net((images - self.mean) / self.std)


def _keep_own(net: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Fill in the mean and deviation of a network where saved weights have none."""
    for name in ("mean", "std"):
        state.setdefault(f"{prefix}{name}", getattr(net, name))


class NormalisedVideo(Normalised):
    """The same for a network of videos, `(n, channels, frames, height, width)`."""

    def __init__(self, net: nn.Module, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__(net, mean, std)
        self.mean, self.std = self.mean.unsqueeze(-1), self.std.unsqueeze(-1)

    def forward(self, images: Tensor) -> object:
        if images.ndim != 5 or images.shape[1] != len(self.mean):
            raise InputError(
                f"{type(self.net).__name__} takes videos, (n, {len(self.mean)}, frames, height, width), and was "
                f"shown {tuple(images.shape)}. Give it videos, or take a network of images."
            )
        return super().forward(images)


def normalised_by(net: nn.Module, mean: Any, std: Any) -> Normalised:
    """A network that normalises by a mean and deviation that a person gave, in place of its own.

    One number stands for all channels.
    """
    values = [_channel_values(name, value) for name, value in zip(NAMES, (mean, std), strict=True)]
    inside, transform = unwrapped(net), transform_of(net)
    if transform is not None and transform.whole:
        raise InputError(
            f"{type(inside).__name__} is shown what its own processor makes of an image, so mean and std mean nothing. "
            "Give transform, a function from a PIL image to what it takes."
        )
    if max(values[0]) > 1 or max(values[1]) > 10:
        shares = [[number / 255 for number in value] for value in values]
        given, smaller = (
            [typed_values(name, value, 6) for name, value in zip(NAMES, both, strict=True)] for both in (values, shares)
        )
        raise InputError(
            f"mean is {given[0]} and std {given[1]}, and images have values from 0 to 1. Divide both by 255: "
            f"mean={smaller[0]},std={smaller[1]}."
        )
    kernel = next((part for part in inside.modules() if isinstance(part, (nn.Conv2d, nn.Conv3d))), None)
    video = kernel if isinstance(kernel, nn.Conv3d) else None
    count = max(map(len, values))
    if count == 1 and video is not None:
        count = video.in_channels
    means, deviations = (entry * count if len(entry) == 1 else entry for entry in values)
    wrapper = normalised_around(inside, means, deviations, video=video is not None)
    wrapper.any_channels = count == 1 and video is None
    return wrapper


def normalised_around(net: nn.Module, mean: Sequence[float], std: Sequence[float], *, video: bool) -> Normalised:
    """A network that normalises where its weights are and in their precision.

    >>> normalised_around(nn.Conv2d(1, 1, 1).half(), [0.5], [0.5], video=False).mean.dtype
    torch.float16
    """
    wrapper = (NormalisedVideo if video else Normalised)(net, mean, std)
    floating = (value for value in net.parameters() if value.is_floating_point() and value.element_size() > 1)
    weight = next(floating, None)
    if weight is not None and not weight.is_meta:
        wrapper.mean, wrapper.std = wrapper.mean.to(weight), wrapper.std.to(weight)
    return wrapper


def _channel_values(name: str, value: Any) -> tuple[float, ...]:
    """One number per channel, or one for all: numbers, or as they are typed, "0.5", "0.485,0.456,0.406" or "1/255".

    >>> _channel_values("std", "1/4"), _channel_values("mean", (0.1, 0.2))
    ((0.25,), (0.1, 0.2))
    """
    entries = value.strip("()[],").split(",") if isinstance(value, str) else value
    try:
        listed = [entries] if isinstance(entries, (int, float)) else list(entries)
        numbers = tuple(float(Fraction(entry) if isinstance(entry, str) else entry) for entry in listed)
    except (TypeError, ValueError, ZeroDivisionError):
        numbers = ()
    if not numbers or not all(map(math.isfinite, numbers)) or (name == "std" and min(numbers) <= 0):
        more = " above 0" if name == "std" else ""
        raise InputError(f"{name} is {brief(value)}. Give a number{more}, or one per channel, as in {name}=0.5.")
    return numbers


def typed_values(name: str, value: Any, digits: int = 9) -> str:
    """One number per channel as they are typed in an address, one where all are equal.

    >>> typed_values("mean", [0.5, 0.5, 0.5]), typed_values("std", "1/4")
    ('0.5', '0.25')
    """
    numbers = _channel_values(name, value)
    return ",".join(f"{number:.{digits}g}" for number in (numbers[:1] if len(set(numbers)) == 1 else numbers))


def warn_replaced(net: nn.Module, label: str, instead: str) -> None:
    """Say that a normalisation which came with a network is replaced by what was asked for, perhaps for others."""
    outer = unwrapped(net, keep_normalisation=True)
    if not isinstance(outer, Normalised) or noted(net, "normalisation") == OF_DATA:
        return
    values = {name: getattr(outer, name).flatten().tolist() for name in ("mean", "std")}
    own = ",".join(f"{name}={typed_values(name, value, 6)}" for name, value in values.items())
    if own != instead:
        warn(
            f"{label} comes with a normalisation ({own}), and is shown images by {instead} in its place. Where that is "
            f"meant for other networks, add ',{instead}' to their addresses alone."
        )


def check_range(net: nn.Module, images: object, label: str) -> None:
    """Refuse images a network that normalises would take for something else.

    Noise may lead a little out of [0, 1]; bytes as floats and normalised images lead far.
    """
    net = unwrapped(net, keep_normalisation=True)
    if not isinstance(net, Normalised) or not isinstance(images, Tensor) or not images.numel():
        return
    if images.dtype == torch.uint8:
        return
    low, high = float(images.min()), float(images.max())
    if low < -0.5 or high > 1.5:
        raise InputError(
            f"the images shown to {label} run from {low:.4g} to {high:.4g}, not within [0, 1]. "
            "Divide bytes by 255, and leave normalisation to the network."
        )


def unwrapped(net: nn.Module, *, keep_normalisation: bool = False) -> nn.Module:
    """The network inside everything that adds no layers to look at.

    That is (Distributed)DataParallel, compilation by torch, PEFT around a network with adapters, and `Normalised`.

    Args:
        net: A network.
        keep_normalisation: Whether `Normalised` is left around it.

    Example:
        >>> unwrapped(nn.DataParallel(nn.Linear(2, 2)))
        Linear(in_features=2, out_features=2, bias=True)
    """
    while True:
        compiled = getattr(net, "_orig_mod", None)  # what torch.compile was given
        if isinstance(net, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
            net = net.module
        elif isinstance(compiled, nn.Module):
            net = compiled
        elif isinstance(net, Normalised) and not keep_normalisation:
            net = net.net
        elif (adapted := _adapted(net)) is not None:
            net = adapted
        else:
            return net


def _adapted(net: nn.Module) -> nn.Module | None:
    """The network that a wrapper of PEFT put adapters into; None where it is none, or changes the inputs instead."""
    if not _is_of_peft(net) or not hasattr(net, "peft_config"):
        return None
    tuner, inside = (net._modules.get(name) for name in ("base_model", "model"))
    return inside if tuner is None else tuner if _is_of_peft(tuner) else None


def _is_of_peft(module: nn.Module) -> bool:
    return any(kind.__module__.partition(".")[0] == "peft" for kind in type(module).__mro__)


class Notes(dict[str, Any]):
    """Facts about a network by name, kept on the network itself.

    A copy of a network (`copy.deepcopy`) keeps its notes, which a separate table of networks would lose. They are
    no part of its fingerprint or its state dict, and are left out where it is pickled.
    """

    def __deepcopy__(self, memo: Any) -> Notes:
        return Notes(self)

    def __reduce__(self) -> Any:
        return Notes, ()


def note(net: nn.Module, name: str, value: Any) -> None:
    """Note something on a network."""
    vars(unwrapped(net)).setdefault(NOTES, Notes())[name] = value


def noted(net: nn.Module, name: str) -> Any:
    """What was noted on a network, None where nothing was."""
    return vars(unwrapped(net)).get(NOTES, {}).get(name)


def record_transform(net: nn.Module, transform: Transform | None) -> None:
    """Note by which transform a network is shown images; None for the images as they are."""
    note(net, "transform", transform)


def transform_of(net: nn.Module) -> Transform | None:
    """The transform of a network's makers, None where it has none of its own."""
    transform: Transform | None = noted(net, "transform")
    return transform
