"""The registry of sources, and what sources share.

A source builds the networks of one prefix: `zoo:resnet20`, `timm:resnet18`. It is a class in a file of this
folder, or of a plug-in by the entry-point group `likewise.sources`:

    @source("mylib")
    class MyLib(Source):
        def build(self, request): return Loaded(mylib.make(request.name, **request.options))
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from torch import nn

from likewise._base.registry import Registry, module_of
from likewise.data import Domain
from likewise.errors import MissingDataError, OptionError, UnknownNameError, did_you_mean
from likewise.networks.inputs.transforms import Transform

SIZES = frozenset({"classes", "channels", "size"})


@dataclass(frozen=True)
class Request:
    """What is asked of a source: a name, options, its published weights or none, and by which address.

    `typed` is False where a weights file named the network: nothing may be downloaded then. `domain` is the kind of
    inputs it will be shown, where that is known.
    """

    prefix: str
    name: str
    options: dict[str, Any]
    pretrained: bool
    address: str
    typed: bool = True
    domain: str | None = None


@dataclass(frozen=True)
class Loaded:
    """A network as its source gives it, with the mean and deviation its images are normalised by.

    `transform` is how its makers bring images to size; a network trained on data as it is has none.
    `renames` are regular expressions from the keys of published weights to the keys of the network. `settled` are
    options that the source has chosen, `commit` is the state of the repository it was read from, `address` the
    name under which it is found from anywhere, where that is another: a path in it is made absolute. `video` says
    that its inputs have frames.
    """

    net: nn.Module
    mean: Sequence[float] | None = None
    std: Sequence[float] | None = None
    renames: Sequence[tuple[str, str]] = ()
    transform: Transform | None = None
    video: bool = False
    settled: Mapping[str, Any] = field(default_factory=dict)
    commit: str | None = None
    address: str | None = None


@dataclass(frozen=True)
class NetworkInfo:
    """A network that can be asked for.

    Attributes:
        address: Its address, such as "zoo:resnet20".
        domain: What it takes: "image", "text", "graph" or "video".
        summary: One line on what it is.
    """

    address: str
    domain: str
    summary: str


class Source:
    """Where the networks of one prefix come from; all but `build` may stay as it is."""

    prefix: ClassVar[str]
    comes_trained: ClassVar[bool] = True  # with published weights, unless the address asks otherwise
    has_revisions: ClassVar[bool] = False  # NAME@REVISION names a state of its repository
    guarded: ClassVar[bool] = True  # sizes are checked first, and errors of a library become a sentence
    sized_by: ClassVar[Collection[str]] = ()  # which of classes, channels, size and features data decides
    allowed_in_headers: ClassVar[Collection[str] | None] = None  # options; None: no header may name this source

    def build(self, request: Request) -> Loaded:
        """The network asked for."""
        raise NotImplementedError

    def is_trained(self, name: str) -> bool:
        """Whether a network has published weights where nothing else is asked for."""
        return self.comes_trained

    def accepts(self, name: str) -> Collection[str]:
        """The sizes of a network that data decides."""
        return self.sized_by

    def names(self) -> Iterator[NetworkInfo]:
        """Every network there is, for `likewise networks`."""
        return iter(())

    def domain(self, name: str) -> Domain | None:
        """What kind of inputs a network takes, None where that is not known before it is built."""
        return None

    def header_options(self, name: str) -> Collection[str] | None:
        """The options a header of a weights file may set; None where no header may name this source.

        A header is written by a stranger: nothing here may run code, fetch or read another file.
        """
        return self.allowed_in_headers

    def is_elsewhere(self, name: str) -> bool:
        """Whether a name has the source fetch or read something, which a header may not ask for."""
        return False


SOURCES: Registry[Source] = Registry(
    "source", group="likewise.sources", modules=("likewise.networks.zoo.registry", "likewise.networks.sources.*")
)
PYTHON_FILE = ".py"  # the prefix in the registry of all addresses whose prefix is a Python file
S = TypeVar("S", bound=type[Source])


def source(prefix: str) -> Callable[[S], S]:
    """Declare the source of all addresses with this prefix."""

    def register(kind: S) -> S:
        kind.prefix = prefix
        SOURCES.add(prefix, kind(), module=module_of(kind))
        return kind

    return register


@dataclass(frozen=True)
class NetworkAddress:
    """The parts of a network address; the prefix of a function in a Python file is that file."""

    prefix: str
    name: str
    options: dict[str, Any] = field(default_factory=dict)
    weights: str | None = None

    def __str__(self) -> str:
        """The network alone, without options and weights."""
        return f"{self.prefix}:{self.name}"

    @property
    def source(self) -> Source:
        """Where the network comes from."""
        return SOURCES.get(PYTHON_FILE if self.prefix.endswith(PYTHON_FILE) else self.prefix)


# What the sources on libraries share.


def check_known(request: Request, names: Collection[str], library: str) -> None:
    """Refuse a name the library does not have."""
    if request.name not in names:
        raise UnknownNameError(f"{library} has no network {request.name!r}.{did_you_mean(request.name, names)}")


def translate(options: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """Options under the names a library gives them."""
    return {names.get(name, name): value for name, value in options.items()}


@contextmanager
def weights_only() -> Iterator[None]:
    """Has torch read tensors alone, whatever the library that calls it asks for."""
    names = ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    before = {name: os.environ.pop(name, None) for name in names}
    os.environ[names[0]] = "1"
    try:
        yield
    finally:
        del os.environ[names[0]]
        os.environ.update({name: value for name, value in before.items() if value is not None})


def fetch(make: Callable[[], nn.Module], request: Request) -> nn.Module:
    """Make the network, or say what to do about weights that cannot be had."""
    try:
        with weights_only():
            return make()
    except OSError as error:
        raise MissingDataError(
            f"the weights of {request.address} are not here and cannot be downloaded "
            f"({type(error).__name__}). Add '@weights.safetensors', or take it untrained: "
            f"'{request.address},pretrained=false'."
        ) from error
    except TypeError as error:
        if "unexpected keyword argument" not in str(error):
            raise
        raise OptionError(f"{request.address} cannot be built so: {error}. Leave it out.") from error
