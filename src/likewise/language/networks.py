"""From an address to a language model: the network with its head, which representations are read without."""

from __future__ import annotations

from typing import Any

from torch import nn

from likewise.networks.address import has_prefix, network, parse, recipe
from likewise.networks.building import on_device
from likewise.networks.sources.language import LM, NoLanguageModelError, language_kind

_PREFIXES = ("hf", "gguf")


def language_network(net: Any, *, data: Any = None, device: Any = None) -> nn.Module:
    """The language model that an address names, with its head; a module as it is, unless it is an encoder of ours."""
    if isinstance(net, str):
        whole = has_prefix(net) and parse(net).prefix in _PREFIXES and "part" not in parse(net).options
        return on_device(network(net, part=LM) if whole else network(net), device)
    origin = recipe(net)
    if origin is None or language_kind(net) is not None or origin.network.partition(":")[0] not in _PREFIXES:
        return net
    options = {name: value for name, value in origin.options.items() if name != "part"}
    return on_device(network(origin.network, part=LM, **options), device)


def as_language_model(net: Any, *, device: Any = None) -> nn.Module | None:
    """The language model that an address or a module is, None where it is none."""
    if isinstance(net, nn.Module):
        return net if language_kind(net) is not None else None
    try:
        loaded = language_network(net, device=device)
    except NoLanguageModelError:
        return None
    return loaded if language_kind(loaded) is not None else None
