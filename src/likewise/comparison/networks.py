"""From networks to their views: what `compare` does with addresses and modules before it scores them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from torch.nn import Module

from likewise.errors import InputError, quoted_list
from likewise.work.store import Store


def shown(
    views: Any,
    other: Any,
    data: Any,
    layers: str,
    reduce: Any,
    store: Any,
    head: str | Mapping[str, str] | None = None,
    keep_networks: bool = False,
    **how: Any,
) -> tuple[Any, Any]:
    """Networks as their views of the data; everything else as it is. `how` goes to `extract`.

    With `keep_networks`, views bring their network and the data along, for measures that look at networks.
    """
    given = views.values() if isinstance(views, Mapping) else (views, other)
    if not any(isinstance(each, (str, Module)) for each in given):
        return views, other  # arrays need neither data nor networks
    from likewise.data import Data, dataset

    inputs = dataset(data) if isinstance(data, str) else data

    def view(network: Any, name: str | None = None) -> Any:
        if not isinstance(network, (str, Module)):
            return network
        if data is None:
            raise InputError(
                f"{network if isinstance(network, str) else name or 'a network'!s} is a network, and "
                "compare needs to know what to show it. Pass data=, like data='cifar10:test[:1000]'."
            )
        from likewise.networks import network as build
        from likewise.views.extract import extract

        known = inputs if isinstance(inputs, Data) else None
        called = name or (network if isinstance(network, str) else None)
        built = build(network, data=known) if isinstance(network, str) else network
        own = head.get(str(called)) if isinstance(head, Mapping) else head
        found = extract(built, inputs, layers, reduce, store=store, name=called, head=own, **how)
        return found.of(built, inputs) if keep_networks else found

    if isinstance(views, Mapping) and isinstance(head, Mapping):
        _check_names(head, views)
    if isinstance(views, Mapping):
        if store is not None and data is not None and not isinstance(store, Store):
            with Store(store):  # the folder is ours before views are put into it
                pass
        return {name: view(network, name) for name, network in views.items()}, other
    return view(views), view(other)


def _check_names(head: Mapping[str, str], views: Mapping[str, Any]) -> None:
    """Refuse a classifier for a network that is not among those compared."""
    for name in head:
        if name not in views:
            raise InputError(
                f"head names a layer of {name!r}, and the networks are {quoted_list(list(views))}. "
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
    from likewise.views.extract import resolved

    return resolved(network)[1]


def _weights(address: str) -> PurePath | None:
    """The weights file an address names, or is."""
    weights = address.partition("@")[2]
    if not weights and address.endswith(".safetensors"):
        weights = address
    return PurePath(weights) if weights else None
