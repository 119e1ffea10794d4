"""From networks to their views: what `compare` does with addresses and modules before it scores them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from torch.nn import Module

from likewise.errors import InputError, quoted_list
from likewise.views import Reduction
from likewise.work.store import Store


@dataclass(frozen=True)
class Extraction:
    """How networks are shown data, and where their views are kept.

    With `keep_networks`, views bring their network and the data along, for measures that look at networks.
    """

    data: Any
    layers: str
    reduce: Reduction | None
    head: str | Mapping[str, str] | None
    batch_size: int
    device: Any
    store: Store | None
    progress: bool
    keep_networks: bool


def extract_all(networks: Mapping[str, Any], how: Extraction, *, own_names: bool) -> dict[str, Any]:
    """Networks as their views of the data, everything else as it is; under their own names where asked."""
    from likewise.data import Data, dataset
    from likewise.networks import network as load
    from likewise.views.extract import extract

    data = dataset(how.data) if isinstance(how.data, str) else how.data

    def view(name: str, network: Any) -> Any:
        if not isinstance(network, (str, Module)):
            return network
        called = (network if isinstance(network, str) else None) if own_names else name
        module = load(network, data=data if isinstance(data, Data) else None) if isinstance(network, str) else network
        found = extract(
            module,
            data,
            how.layers,
            how.reduce,
            how.store,
            batch_size=how.batch_size,
            device=how.device,
            name=called,
            head=how.head.get(str(called)) if isinstance(how.head, Mapping) else how.head,
            progress=how.progress,
        )
        return found.of(module, data) if how.keep_networks else found

    return {name: view(name, network) for name, network in networks.items()}


def check_networks(given: Mapping[str, Any], data: Any, head: str | Mapping[str, str] | None) -> None:
    """Refuse networks without data, and a classifier for a network that is not among those compared."""
    if data is None:
        network = next(each for each in given.values() if isinstance(each, (str, Module)))
        raise InputError(
            f"{network if isinstance(network, str) else type(network).__name__} is a network, and compare needs to "
            "know what to show it. Pass data=, like data='cifar10:test[:1000]'."
        )
    for name in head if isinstance(head, Mapping) else ():
        if name not in given:
            raise InputError(
                f"head names a layer of {name!r}, and the networks are {quoted_list(list(given))}. "
                "Give head={network: layer} by these names."
            )


def named_networks(networks: Iterable[Any]) -> dict[str, Any]:
    """Networks under short names: of their weights, else of their address.

    Where two weights files have one name, their folders tell them apart; two addresses stand in
    full. What repeats even then is numbered.

    >>> list(named_networks(["zoo:lenet", "zoo:lenet", "zoo:resnet20@runs/best.safetensors"]))
    ['lenet', 'lenet#2', 'best']
    >>> list(named_networks(["zoo:mlp@runs/a/weights.safetensors", "runs/b/weights.safetensors"]))
    ['a', 'b']
    >>> list(named_networks(["timm:resnet18", "torchvision:resnet18"]))
    ['timm:resnet18', 'torchvision:resnet18']
    """
    wanted = [(network, _address(network)) for network in networks]
    meant: dict[str, set[str]] = {}
    for _, address in wanted:
        meant.setdefault(_short(address), set()).add(address)
    found: dict[str, Any] = {}
    for network, address in wanted:
        short = _short(address)
        if len(meant[short]) > 1:
            weights = _weights(address)
            short = address if weights is None else weights.parent.name or short
        name, count = short, 2
        while name in found:
            name, count = f"{short}#{count}", count + 1
        found[name] = network
    return found


def _short(address: str) -> str:
    weights = _weights(address)
    return address.rpartition(":")[2] if weights is None else weights.stem


def _address(network: Any) -> str:
    """What a network is called where nobody named it."""
    if isinstance(network, str):
        return network
    if not isinstance(network, Module):
        return type(network).__name__
    from likewise.views.extract import network_and_name

    return network_and_name(network)[1]


def _weights(address: str) -> PurePath | None:
    """The weights file an address names, or is."""
    weights = address.partition("@")[2]
    if not weights and address.endswith(".safetensors"):
        weights = address
    return PurePath(weights) if weights else None
