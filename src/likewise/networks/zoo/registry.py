"""The registry of the zoo, its addresses, and what its image networks have in common."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeVar

from torch import Tensor, nn

from likewise._base.registry import Registry, module_of
from likewise.data import Domain
from likewise.errors import InputError, OptionError
from likewise.networks.sources.base import Loaded, NetworkInfo, Request, Source
from likewise.networks.sources.base import source as network_source


@dataclass(frozen=True)
class Architecture:
    """One entry of the zoo: what `architecture` was given, and the class or function that builds it."""

    name: str
    domain: Domain
    build: Callable[..., nn.Module]
    summary: str
    source: str = ""
    renames: tuple[tuple[str, str], ...] = ()
    typed_options: tuple[str, ...] = ()
    trained: bool = False

    @property
    def options(self) -> list[str]:
        """What may be asked for, as `classes` or `size`."""
        return [one.name for one in inspect.signature(self.build).parameters.values() if one.kind != one.VAR_KEYWORD]

    def make(self, **options: Any) -> nn.Module:
        """Build it, or say which option it does not have."""
        for name in options:
            if name not in self.options:
                raise OptionError(f"zoo:{self.name} has no option {name!r}. It takes {', '.join(self.options)}.")
            self._check_number(name, options[name])
        return self.build(**options)

    def _check_number(self, name: str, value: Any) -> None:
        """Sizes are whole numbers of at least 1; of depth and features, networks judge themselves."""
        least = 0 if name == "class_tokens" else 1
        if type(inspect.signature(self.build).parameters[name].default) is not int:
            return
        if not isinstance(value, int) or isinstance(value, bool):
            raise InputError(f"{name} of zoo:{self.name} is {value!r}. Give a whole number of at least {least}.")
        if value < least and name not in ("depth", "features"):
            raise InputError(f"{name} of zoo:{self.name} is {value}. Give at least {least}.")


ZOO: Registry[Architecture] = Registry("network", group="likewise.networks", modules=("likewise.networks.zoo.*",))
B = TypeVar("B", bound=Callable[..., nn.Module])


def architecture(
    name: str,
    *,
    summary: str,
    domain: Domain = "image",
    source: str = "",
    renames: tuple[tuple[str, str], ...] = (),
    typed_options: tuple[str, ...] = (),
    aliases: tuple[str, ...] = (),
    trained: bool = False,
    **defaults: Any,
) -> Callable[[B], B]:
    """Put a class or function that builds a network into the zoo.

    Args:
        name: Its name: the address is `zoo:NAME`.
        summary: One line on what it is.
        domain: What it takes: "image", "text" or "graph".
        source: Its paper.
        renames: Regular expressions from the keys of published weights to the keys used here.
        typed_options: Options that the header of a weights file may not set, since they lead to other files.
        aliases: Other names.
        trained: Whether it comes with published weights, all but its classifier.
        **defaults: Other defaults than those of the class or function.
    """

    def register(build: B) -> B:
        make = partial(build, **defaults) if defaults else build
        entry = Architecture(name, domain, make, summary, source, renames, typed_options, trained)
        ZOO.add(name, entry, aliases, module=module_of(build))
        return build

    return register


@network_source("zoo")
class Zoo(Source):
    """`zoo:NAME`: the architectures written here, untrained."""

    comes_trained: ClassVar[bool] = False

    def build(self, request: Request) -> Loaded:
        entry = ZOO.get(request.name)
        return Loaded(entry.make(**request.options), renames=entry.renames)

    def is_trained(self, name: str) -> bool:
        return ZOO.get(name).trained

    def accepts(self, name: str) -> Collection[str]:
        return ZOO.get(name).options

    def names(self) -> Iterator[NetworkInfo]:
        return (NetworkInfo(f"zoo:{entry.name}", entry.domain, entry.summary) for entry in ZOO)

    def domain(self, name: str) -> Domain | None:
        return ZOO.get(name).domain

    def header_options(self, name: str) -> Collection[str]:
        entry = ZOO.get(name)
        return set(entry.options) - set(entry.typed_options)


class ImageNetwork(nn.Module):
    """What image networks of the zoo share: a check of what they are shown, and a named head.

    `size` is None where any size will do. `head_layer` names the layer whose input is the
    penultimate representation, None where there is no such layer.
    """

    head_layer: ClassVar[str | None] = "fc"

    def __init__(self, channels: int, size: int | None = None) -> None:
        super().__init__()
        self.channels, self.size = channels, size

    def forward(self, images: Tensor) -> Tensor:
        """Logits `(n, classes)` of images `(n, channels, size, size)` in [0, 1]."""
        shape = tuple(images.shape)
        expected = (self.channels, self.size or shape[-1], self.size or shape[-1])
        if len(shape) != 4 or shape[1:] != expected:
            size = "any size" if self.size is None else f"{self.size} × {self.size} pixels"
            raise InputError(
                f"{type(self).__name__} was built for square images of {self.channels} channels "
                f"and {size}, and was shown {shape}. Build it for these images: channels=, size=."
            )
        return self.answer(images)

    def answer(self, images: Tensor) -> Tensor:
        raise NotImplementedError

    answer.__doc__ = "Logits of images that were checked."  # beside it: the code is part of networks' fingerprints
