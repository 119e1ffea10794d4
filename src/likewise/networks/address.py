"""Network addresses: `zoo:resnet20@weights.safetensors`, `timm:resnet18`, `models.py:build`.

An address is `prefix:name[,option=value…][@weights]`. In place of the prefix there may be a Python
file, its function being the name. A weights file written here is an address too: it says itself
which network it belongs to.

Networks of a source that keeps revisions may name one in place of the weights, `hf:NAME@step1000`, and several
to be compared, `hf:NAME@step1000,step2000`. A file that exists, or whose name ends like one of weights, is weights.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from likewise._base.files import is_file
from likewise._base.registry import parse_value
from likewise.errors import InputError, UnknownNameError, did_you_mean, quoted_list
from likewise.networks.sources.base import PYTHON_FILE, SOURCES, NetworkInfo, Source
from likewise.networks.weights import is_weights_name
from likewise.networks.zoo.registry import ZOO

_LONGEST = 4096
_PARTS = re.compile(r"(?P<name>[^,@]*)(?P<options>(,[^,@]*)*)(@(?P<weights>.+))?")
_FILE = re.compile(r"(?P<file>.+\.py):(?P<rest>[^:]+(@.+)?)")


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


def find_source(prefix: str) -> Source | None:
    """The source of a prefix exactly as it is written, None where there is none."""
    name = PYTHON_FILE if prefix.endswith(PYTHON_FILE) else prefix
    if not name or name not in SOURCES:
        return None
    entry = SOURCES.get(name)
    return entry if entry.prefix == name else None


def parse(address: str) -> NetworkAddress:
    """Take an address apart, or say what is wrong with it.

    >>> parse("zoo:lenet,classes=100@a.safetensors")
    NetworkAddress(prefix='zoo', name='lenet', options={'classes': 100}, weights='a.safetensors')
    >>> parse("hf:org/name@step1000").options
    {'revision': 'step1000'}
    """
    parts, revisions = _split(address)
    if len(revisions) > 1:
        raise InputError(
            f"{address!r} names {len(revisions)} networks, one per revision ({quoted_list(revisions)}). Name one, "
            "or compare them: likewise.compare([address], data=...)."
        )
    return parts


def expand(addresses: Iterable[Any]) -> list[Any]:
    """One address per revision for those that name several; everything else as it is.

    >>> expand(["hf:org/name,part=text@step1000,step2000", "zoo:lenet"])
    ['hf:org/name,part=text@step1000', 'hf:org/name,part=text@step2000', 'zoo:lenet']
    """
    return [one for address in addresses for one in _each(address)]


def revision_of(address: str) -> str | None:
    """The revision an address names, None where it names none or is a file.

    >>> revision_of("hf:org/name@v1.0"), revision_of("zoo:lenet@a.safetensors"), revision_of("a.safetensors")
    ('v1.0', None, None)
    """
    if not _has_prefix(address):
        return None
    revision = _split(address)[0].options.get("revision")
    return None if revision is None else str(revision)


def _each(address: Any) -> list[Any]:
    if not isinstance(address, str) or not _has_prefix(address):
        return [address]
    revisions = _split(address)[1]
    if len(revisions) < 2:
        return [address]
    start, _, end = address.partition("@")
    options = "".join(f",{word}" for word in end.split(",") if "=" in word)
    return [f"{start}{options}@{revision}" for revision in revisions]


def _split(address: str) -> tuple[NetworkAddress, list[str]]:
    """The parts of an address, the first revision among its options, and all revisions it names after the @."""
    if len(address) > _LONGEST:
        raise InputError(
            f"{address[:40]!r}… has {len(address):,} signs, and an address has at most {_LONGEST:,}. Shorten it."
        )
    file = _FILE.fullmatch(address)
    prefix, colon, rest = address.partition(":")
    if file is not None:
        prefix, rest = file["file"], file["rest"]
    elif not colon or find_source(prefix) is None:
        raise _unknown(address, prefix if colon else "")
    parts = _PARTS.fullmatch(rest)
    if parts is None or not parts["name"]:
        raise InputError(
            f"{address!r} names no network. Write prefix:name, as in 'zoo:resnet20' or "
            "'zoo:resnet20@weights.safetensors'."
        )
    found = NetworkAddress(prefix, parts["name"], _options(parts["options"], address), parts["weights"])
    if found.weights is None or not found.source.has_revisions or is_weights_name(found.weights):
        return found, []
    return _with_revision(found, address)


def _with_revision(found: NetworkAddress, address: str) -> tuple[NetworkAddress, list[str]]:
    """The address with what stands after the @ as its revision; what has a = there is an option."""
    words = (found.weights or "").split(",")
    revisions = [word for word in words if "=" not in word]
    if not all(revisions) or not revisions or "revision" in found.options:
        raise InputError(
            f"{address!r} names no revision after the @. Write one, as in '{found}@main', or the path of a weights "
            f"file, as in '{found}@weights.safetensors'."
        )
    options = _options("".join(f",{word}" for word in words if "=" in word), address)
    both = found.options | options | {"revision": revisions[0]}
    return NetworkAddress(found.prefix, found.name, both), revisions


def is_untrained(address: str) -> bool:
    """Whether an address names a network with random weights.

    >>> is_untrained("zoo:lenet"), is_untrained("timm:resnet18"), is_untrained("timm:resnet18,pretrained=false")
    (True, False, True)
    >>> is_untrained("zoo:minilm")  # all but its classifier
    False
    """
    if is_checkpoint(address):
        return False
    parts = parse(address)
    return parts.weights is None and not (parts.source.is_trained(parts.name) and parts.options.get("pretrained", True))


def is_checkpoint(address: str) -> bool:
    """Whether an address is a weights file (or a training's folder) rather than a name."""
    if not address or _has_prefix(address) or _FILE.fullmatch(address):
        return False
    path = Path(address).expanduser()
    return path.suffix == ".safetensors" or is_file(path / "weights.safetensors")


def is_network(text: str) -> bool:
    """Whether a text can be nothing but a network's address (a weights file may be activations)."""
    if is_file(Path(text).expanduser()) or text.endswith(".safetensors"):
        return _has_prefix(text)
    return _has_prefix(text) or bool(_FILE.fullmatch(text)) or is_checkpoint(text)


def _has_prefix(text: str) -> bool:
    prefix, colon, _ = text.partition(":")
    return bool(colon) and find_source(prefix) is not None


def list_networks(pattern: str = "") -> list[NetworkInfo]:
    """The zoo; with a pattern, whatever matches it there and in the installed libraries.

    The pattern is matched against the name and against the whole address.

    >>> [network.address for network in list_networks("zoo:resnet2*")]
    ['zoo:resnet20', 'zoo:resnet20-b']
    """
    one = find_source(pattern.partition(":")[0] if pattern else "zoo")
    return [
        network
        for entry in (SOURCES if one is None else [one])
        for network in entry.names()
        if not pattern or fnmatch(network.address, pattern) or fnmatch(network.address.partition(":")[2], pattern)
    ]


def _unknown(address: str, prefix: str) -> UnknownNameError:
    prefixes = [name for name in SOURCES.names() if name != PYTHON_FILE]
    what = f"no networks come from {prefix!r}" if prefix else f"{address!r} has no prefix"
    if not prefix and "/" in address:
        what = f"{address!r} is no folder of a training or network, and has no prefix"
    hint = did_you_mean(prefix, prefixes)
    if not prefix and (names := _with_prefix(address)):
        hint = f" Did you mean {' or '.join(map(repr, names))}?"
    forms = ", ".join(f"{name}:NAME" for name in prefixes)
    return UnknownNameError(
        f"{what}.{hint} An address is {forms}, file.py:function, a .safetensors file or a training's folder."
    )


def _with_prefix(name: str) -> list[str]:
    """The addresses of networks of this name: in the zoo, else in the libraries that are installed."""
    if name in ZOO:
        return [f"zoo:{name}"]
    plain = re.fullmatch(r"[\w.-]+", name.partition(",")[0])
    return [network.address for network in list_networks(plain[0])] if plain else []


def _options(text: str, address: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for part in text.split(",")[1:]:
        name, equals, value = part.partition("=")
        if not equals or not name.isidentifier():
            raise InputError(f"{part!r} in {address!r} is no option. Write name=value, as in 'zoo:lenet,classes=100'.")
        options[name] = parse_value(value)
    return options
