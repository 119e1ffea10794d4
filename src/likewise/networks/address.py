"""Network addresses: `zoo:resnet20@weights.safetensors`, `timm:resnet18`, `models.py:build`.

An address is `prefix:name[,option=value…][@weights]`. In place of the prefix there may be a Python
file, its function being the name. A weights file written here is an address too: it says itself
which network it belongs to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from likewise._base.files import is_file
from likewise._base.options import parse_value
from likewise.errors import InputError, UnknownNameError, did_you_mean
from likewise.networks.sources.base import PYTHON_FILE, SOURCES, Source, find_source
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


def parse(address: str) -> NetworkAddress:
    """Take an address apart, or say what is wrong with it.

    >>> parse("zoo:lenet,classes=100@a.safetensors")
    NetworkAddress(prefix='zoo', name='lenet', options={'classes': 100}, weights='a.safetensors')
    """
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
    return NetworkAddress(prefix, parts["name"], _options(parts["options"], address), parts["weights"])


def is_untrained(address: str) -> bool:
    """Whether an address names a network with random weights.

    >>> is_untrained("zoo:lenet"), is_untrained("timm:resnet18"), is_untrained("timm:resnet18,pretrained=false")
    (True, False, True)
    """
    if is_checkpoint(address):
        return False
    parts = parse(address)
    return parts.weights is None and not (parts.source.comes_trained and parts.options.get("pretrained", True))


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


def _unknown(address: str, prefix: str) -> UnknownNameError:
    prefixes = [name for name in SOURCES.names() if name != PYTHON_FILE]
    what = f"no networks come from {prefix!r}" if prefix else f"{address!r} has no prefix"
    hint = did_you_mean(prefix, prefixes)
    if not prefix and address in ZOO:
        hint = f" Did you mean 'zoo:{address}'?"
    forms = ", ".join(f"{name}:NAME" for name in prefixes)
    return UnknownNameError(f"{what}.{hint} An address is {forms}, file.py:function or a .safetensors file.")


def _options(text: str, address: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for part in text.split(",")[1:]:
        name, equals, value = part.partition("=")
        if not equals or not name.isidentifier():
            raise InputError(f"{part!r} in {address!r} is no option. Write name=value, as in 'zoo:lenet,classes=100'.")
        options[name] = parse_value(value)
    return options
