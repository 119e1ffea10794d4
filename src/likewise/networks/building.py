"""From an address to a network: `likewise.network("zoo:resnet20@weights.safetensors")`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from likewise.data.dataset import Data
from likewise.data.images import ImageFiles
from likewise.errors import InputError
from likewise.networks import weights as files
from likewise.networks.address import Address, is_checkpoint, parse
from likewise.networks.hf import from_hf
from likewise.networks.normalise import Normalised, inner
from likewise.networks.sources import (
    Built,
    Wish,
    accepted,
    from_file,
    from_timm,
    from_torchvision,
    from_zoo,
)
from likewise.networks.zoo.registry import ZOO

_SOURCES = {"zoo": from_zoo, "timm": from_timm, "torchvision": from_torchvision, "hf": from_hf}


@dataclass(frozen=True)
class Recipe:
    """How a network was made: enough to make it again and put weights into it."""

    network: str
    options: dict[str, Any] = field(default_factory=dict)
    weights: str | None = None


_recipes: WeakKeyDictionary[nn.Module, Recipe] = WeakKeyDictionary()


def network(
    address: str | nn.Module,
    *,
    data: Data | None = None,
    seed: int | None = None,
    untrained: bool = False,
    **options: Any,
) -> nn.Module:
    """The network an address names, ready to be shown inputs; a module is given back as it is.

    timm, torchvision and transformers networks come with their published weights, unless the
    address names others (`@weights`) or says `pretrained=false`; `untrained`, as training asks for,
    is without them unless the address says `pretrained=true`. What is drawn at random is drawn
    from `seed`, 0 where none is given. With `data`, an untrained network is built to its measure:
    as many classes and channels, as large, normalised by its mean and deviation.

    >>> network("zoo:lenet", classes=3)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 3])
    """
    if isinstance(address, nn.Module):
        if options:
            raise InputError(
                f"{type(address).__name__} is built already: {', '.join(options)} cannot be chosen "
                "any more. Give the options where it is built."
            )
        return address
    found, known = _found(str(address))
    chosen = found.options | options
    pretrained = bool(chosen.pop("pretrained", found.weights is None and not untrained))
    seed = chosen.pop("seed", seed)
    if found.prefix != "zoo" and not untrained and (pretrained or found.weights is not None):
        data = None  # trained weights have a measure of their own
    wanted = _measure(found, data) | known.get("options", {}) | chosen
    built = _build(found, Wish(found.name, wanted, pretrained, str(address)), seed or 0)
    net = _weighted(built, found, known, data)
    _recipes[inner(net)] = Recipe(_whole(found), wanted, found.weights)
    return net.eval()


def recipe(net: nn.Module) -> Recipe | None:
    """How `network` made this network, None where it did not."""
    return _recipes.get(inner(net))


def save(net: nn.Module, path: str | Path) -> None:
    """Write a network's weights with what is needed to build it again: its address is the path."""
    made = recipe(net)
    about = {} if made is None else {"network": made.network, "options": made.options}
    files.save(net, path, about=about)


def _found(address: str) -> tuple[Address, dict[str, Any]]:
    if not is_checkpoint(address):
        found = parse(address)
        return found, files.facts(found.weights) if found.weights else {}
    path = Path(address).expanduser()
    path = path / "weights.safetensors" if path.is_dir() else path
    if not path.is_file():
        raise files.not_there(path)
    known = files.facts(path)
    if "network" not in known:
        raise InputError(
            f"{path} does not say which network it belongs to. Name it: 'zoo:resnet20@{path}'."
        )
    made = parse(known["network"])
    return Address(made.prefix, made.name, made.options, str(path)), known


def _build(found: Address, wish: Wish, seed: int) -> Built:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        source = _SOURCES.get(found.prefix)
        return source(wish) if source is not None else from_file(found.prefix, wish)


def _weighted(built: Built, found: Address, known: dict[str, Any], data: Data | None) -> nn.Module:
    net, mean, std = built.net, built.mean, built.std
    if found.weights is not None:
        label = f"{found.weights} for {_short(found)}"
        files.fit(net, files.read(found.weights), label=label, renames=built.renames)
        mean, std = known.get("mean", mean), known.get("std", std)
    elif data is not None and data.domain == "image" and mean is None:
        mean, std = channel_statistics(data)
    if mean is None or std is None:
        return net
    return Normalised(net, mean, std)


def _measure(found: Address, data: Data | None) -> dict[str, Any]:
    """What the data asks of a network, as far as it can be asked of this one."""
    if data is None:
        return {}
    wanted: dict[str, Any] = {"classes": len(data.classes)}
    if data.domain == "image":
        wanted |= {"channels": data.inputs.shape[1], "size": data.inputs.shape[2]}
    if data.domain == "graph":
        wanted |= {"features": data.inputs.graph.x.shape[1]}
    _check_domain(found, data)
    able = accepted(found.prefix, found.name)
    return {name: value for name, value in wanted.items() if name in able}


def _check_domain(found: Address, data: Data) -> None:
    """Refuse data of another kind than the architecture was made for, as far as that is known."""
    if found.prefix != "zoo" or ZOO.get(found.name).domain == data.domain:
        return
    example = {"image": "zoo:resnet20", "graph": "zoo:gcn", "text": "zoo:bert-tiny"}[data.domain]
    raise InputError(
        f"{_short(found)} takes {ZOO.get(found.name).domain} inputs and {data.name!r} holds "
        f"{data.domain} inputs. Choose a network for these, such as {example}."
    )


def channel_statistics(data: Data) -> tuple[list[float], list[float]]:
    """Mean and standard deviation of each channel to four decimals, over the first images."""
    limit = 1000 if isinstance(data.inputs, ImageFiles) else 10_000
    total = square = torch.zeros(data.inputs.shape[1], dtype=torch.float64)
    count = 0
    for images, _ in data[:limit].batches(1000):
        values = images.double()
        total = total + values.sum(dim=(0, 2, 3))
        square = square + values.square().sum(dim=(0, 2, 3))
        count += values.numel() // values.shape[1]
    mean = total / count
    std = (square / count - mean.square()).clamp(min=1e-8).sqrt()
    return [round(v, 4) for v in mean.tolist()], [round(v, 4) for v in std.tolist()]


def _whole(found: Address) -> str:
    """The address with the whole path of a Python file: it holds wherever it is read again."""
    is_file = found.prefix not in _SOURCES
    prefix = str(Path(found.prefix).expanduser().resolve()) if is_file else found.prefix
    return f"{prefix}:{found.name}"


def _short(found: Address) -> str:
    return f"{found.prefix}:{found.name}"
