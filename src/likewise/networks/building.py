"""The network of a parsed address: sized for data, built by its source, with weights and normalisation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from likewise._base.machine import accelerator, check_device, free_memory
from likewise._base.progress import warn
from likewise.data import Data
from likewise.data.inputs import channel_statistics
from likewise.errors import InputError, LikewiseError, first_line
from likewise.networks import weight_metadata
from likewise.networks import weights as files
from likewise.networks.forward import input_kind
from likewise.networks.inputs.normalisation import OF_DATA, normalised_around, normalised_by, note, unwrapped
from likewise.networks.sources.base import Loaded, NetworkAddress, Request, Source

_MANY = 10_000  # a size from which on a network is weighed before it is built


def build(source: Source, request: Request, seed: int) -> Loaded:
    """What a source builds, with a sentence where its library cannot use the options."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if not source.guarded:
            return source.build(request)
        with building(request):
            if any(isinstance(v, int) and v > _MANY for v in request.options.values()):
                _check_size(source, request)
            return source.build(request)


@contextmanager
def building(request: Request) -> Iterator[None]:
    """Turn whatever a library says to names, options and files it cannot use into a sentence."""
    try:
        yield
    except (LikewiseError, ImportError, Warning):
        raise
    except Exception as error:
        raise InputError(
            f"{request.address} cannot be built: {first_line(error)}. Check its name and options."
        ) from error


def _check_size(source: Source, request: Request) -> None:
    """Refuse a network larger than memory, judged by one without numbers in it."""
    with torch.device("meta"):
        net = source.build(replace(request, pretrained=False)).net
    values = [*net.parameters(), *net.buffers()]
    need, room = sum(v.numel() * v.element_size() for v in values), free_memory()
    if need > room:
        raise InputError(
            f"{request.address} would take {need / 1e9:,.0f} GB of memory, and {room / 1e9:,.0f} GB are "
            "free. Choose smaller options."
        )


def with_weights(loaded: Loaded, address: NetworkAddress, header: dict[str, Any], data: Data | None) -> nn.Module:
    """A network with the weights of its address and its normalisation: of the weights, its source or the data."""
    net, mean, std = loaded.net, loaded.mean, loaded.std
    if address.weights is not None:
        label = f"{address.weights} for {address}"
        state, saved = files.split_normalisation(files.read(address.weights))
        files.fit(net, state, label=label, renames=loaded.renames)
        own_mean, own_std = weight_metadata.declared_normalisation(header | saved, address.weights)
        if own_mean is not None and len(own_mean) == 1:
            return normalised_by(net, own_mean, own_std)
        mean, std = (mean, std) if own_mean is None else (own_mean, own_std)
    elif (
        data is not None
        and data.domain == "image"
        and mean is None
        and loaded.transform is None
        and input_kind(net) in (None, "image")
    ):
        mean, std = channel_statistics(data)
        note(net, "normalisation", OF_DATA)
    if mean is None or std is None:
        return net
    return normalised_around(net, mean, std, video=loaded.video)


def is_placed(net: nn.Module) -> bool:
    """Whether a library has put the parts of a network where they run, so that it cannot be moved."""
    inside: Any = unwrapped(net)
    rounded = getattr(inside, "is_loaded_in_8bit", False) or getattr(inside, "is_loaded_in_4bit", False)
    return bool(rounded) or any(hasattr(module, "_hf_hook") for module in inside.modules())


def on_device(net: nn.Module, device: Any = None) -> nn.Module:
    """A network that was built from an address, where it runs: on the device, by default the machine's accelerator."""
    if device is not None:
        check_device(device)
    if is_placed(net):
        if device is not None:
            raise InputError(f"the network was put on its devices while it was loaded. Leave out device={device}.")
        return net
    target = accelerator() if device is None else torch.device(device)
    if target is None:
        return net
    try:
        return net.to(target)
    except (RuntimeError, TypeError, NotImplementedError) as error:  # too little memory, or no float64 there
        net.to("cpu")
        if device is not None:
            raise InputError(
                f"the network cannot be moved to {device}: {first_line(error)}. Leave out device, or choose another."
            ) from error
        warn(f"the network runs on the CPU, since it cannot be moved to {target}: {first_line(error)}.")
        return net


def sizes_from(data: Data | None, address: NetworkAddress, pretrained: bool) -> dict[str, Any]:
    """The sizes that data asks of a network, as far as this one can be built with them; none without data."""
    if data is None:
        return {}
    sizes: dict[str, Any] = {"classes": len(data.classes)} if data.classes else {}
    if data.domain == "image":
        sizes |= {"channels": data.inputs.shape[1]}
        if not (pretrained and address.source.comes_trained):  # weights are made for one size
            sizes |= {"size": data.inputs.shape[2]}
    if data.domain == "graph":
        sizes |= {"features": data.inputs.graph.x.shape[1]}
    if data.class_tokens and address.weights is None:  # else the weights decide, by their header
        sizes |= {"class_tokens": data.class_tokens}
    _check_domain(address, data)
    accepted = address.source.accepts(address.name)
    return {name: value for name, value in sizes.items() if name in accepted}


def _check_domain(address: NetworkAddress, data: Data) -> None:
    """Refuse data of another kind than the architecture was made for, as far as that is known."""
    domain = address.source.domain(address.name)
    if domain in (None, data.domain):
        return
    example = {"image": "zoo:resnet20", "graph": "zoo:gcn", "text": "zoo:bert-tiny"}[data.domain]
    raise InputError(
        f"{address} takes {domain} inputs and {data.name!r} holds "
        f"{data.domain} inputs. Choose a network for these, such as {example}."
    )
