"""What networks are called: short names of several, one address per revision, which of them are untrained."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from torch import nn

from likewise.data import Data
from likewise.data.inputs import domain_of
from likewise.errors import InputError
from likewise.networks.address import (
    SHOWING_TEXT,
    has_prefix,
    is_untrained,
    recipe,
    says_how_shown,
    split,
    without_showing,
)
from likewise.networks.address import network as load_network
from likewise.networks.building import is_placed, on_device
from likewise.networks.inputs.normalisation import unwrapped


def expanded(networks: Iterable[Any]) -> list[Any]:
    """Networks with one address per revision, where an address names several; everything else as it is.

    >>> expanded(["hf:org/name,part=text@step1000,step2000", "zoo:lenet"])
    ['hf:org/name,part=text@step1000', 'hf:org/name,part=text@step2000', 'zoo:lenet']
    """
    return [one for address in networks for one in _by_revision(address)]


def _by_revision(address: Any) -> list[Any]:
    if not isinstance(address, str) or "@" not in address or not has_prefix(address):
        return [address]
    revisions = split(address)[1]
    if len(revisions) < 2:
        return [address]
    bare, showing = without_showing(address)
    start, _, end = bare.partition("@")
    options = "".join(f",{word}" for word in end.split(",") if "=" in word) + showing
    return [f"{start}{options}@{revision}" for revision in revisions]


def named_networks(networks: Iterable[Any]) -> dict[str, Any]:
    """Networks under short names: of their weights or revision, else of their address.

    Where two weights files have one name, their folders tell them apart; two addresses stand in
    full, and so do those that say how images are shown. What repeats even then is numbered.

    >>> list(named_networks(["zoo:lenet", "zoo:lenet", "zoo:resnet20@runs/best.safetensors"]))
    ['lenet', 'lenet#2', 'best']
    >>> list(named_networks(["zoo:mlp@runs/a/weights.safetensors", "runs/b/weights.safetensors"]))
    ['a', 'b']
    >>> list(named_networks(["hf:openai-community/gpt2", "hf:runs/llama"]))
    ['gpt2', 'llama']
    >>> list(named_networks(["timm:resnet18", "torchvision:resnet18"]))
    ['timm:resnet18', 'torchvision:resnet18']
    >>> list(named_networks(["hf:org/name@v1.0", "hf:org/name@v2.0"]))
    ['v1.0', 'v2.0']
    """
    addresses = [(network, address_of(network)) for network in networks]
    by_short: dict[str, set[str]] = {}
    for _, address in addresses:
        by_short.setdefault(_short(address), set()).add(address)
    named: dict[str, Any] = {}
    for network, address in addresses:
        short = _short(address)
        if len(by_short[short]) > 1:
            weights = _weights(address)
            short = address if weights is None or says_how_shown(address) else weights.parent.name or short
        name, count = short, 2
        while name in named:
            name, count = f"{short}#{count}", count + 1
        named[name] = network
    return named


def untrained_networks(networks: Mapping[str, Any], *, own_names: bool) -> tuple[str, ...]:
    """Names of networks that were asked for by an address and have random weights."""
    addresses = {name: item for name, item in networks.items() if isinstance(item, str) and is_untrained(item)}
    return tuple(dict.fromkeys(addresses.values() if own_names else addresses))


def network_and_name(
    network: str | nn.Module, name: str | None = None, *, data: Any = None, device: Any = None
) -> tuple[nn.Module, str]:
    """The network an address means, sized for the data where it is untrained, and what it is called.

    One of an address is brought to the device, by default to the accelerator if there is one; a module stays where
    it is.
    """
    module = load_network(network, data=data if isinstance(data, Data) else None, domain=domain_of(data))
    called = name or (network if isinstance(network, str) else _module_name(module))
    if any(value.is_meta for value in module.parameters()) and not is_placed(module):
        raise InputError(
            f"{called!r} is on the device 'meta', where weights have no values. Build it outside of "
            "torch.device('meta'), or call to_empty(device='cpu') on it and load its weights."
        )
    return on_device(module, device) if isinstance(network, str) else module, called


def address_of(network: Any) -> str:
    """The name of a network by default: its address, or the class of what is no network."""
    if isinstance(network, str):
        return network
    return network_and_name(network)[1] if isinstance(network, nn.Module) else type(network).__name__


def _module_name(module: nn.Module) -> str:
    """A network that came from an address by that address, any other by its class."""
    origin = recipe(module)
    if origin is None:
        return type(unwrapped(module)).__name__
    state = origin.weights or origin.options.get("revision")
    return origin.network if state is None else f"{origin.network}@{state}"


def _short(address: str) -> str:
    address = re.sub(SHOWING_TEXT, "", address)
    revision, weights = _revision(address), _weights(address)
    if revision is not None:
        return revision
    if weights is not None:
        return weights.stem
    name, comma, options = address.rpartition(":")[2].partition(",")
    return PurePath(name).name + comma + options


def _revision(address: str) -> str | None:
    """The revision an address names, None where it names none or is a file.

    >>> _revision("hf:org/name@v1.0"), _revision("zoo:lenet@a.safetensors"), _revision("a.safetensors")
    ('v1.0', None, None)
    """
    if "@" not in address or not has_prefix(address):
        return None
    revision = split(address)[0].options.get("revision")
    return None if revision is None else str(revision)


def _weights(address: str) -> PurePath | None:
    """The weights file an address names, or is."""
    address = without_showing(address)[0]
    weights = address.partition("@")[2] if _revision(address) is None else ""
    if not weights and address.endswith(".safetensors"):
        weights = address
    return PurePath(weights) if weights else None
