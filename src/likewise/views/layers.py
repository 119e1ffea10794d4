"""The layers of a network: names, what they are, what they give, how many parameters they hold."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import nn

from likewise.data import Data, as_data
from likewise.data.inputs import domain_of
from likewise.errors import ForwardError, InputError, brief
from likewise.networks import network as load_network
from likewise.networks.address import is_checkpoint, is_untrained, parse
from likewise.networks.anatomy.blocks import blocks
from likewise.networks.anatomy.layers import named_layers, watch
from likewise.networks.anatomy.outputs import first_tensor
from likewise.networks.forward import device_of, eval_mode, input_kind, prepare_inputs, transform_for
from likewise.networks.inputs.normalisation import transform_of, unwrapped
from likewise.networks.names import network_and_name
from likewise.views.batches import Batch, answer_to, batches

T = TypeVar("T")
Calls = dict[str, tuple[int, ...] | None]
_SIZES = ((3, 32, 32), (3, 224, 224), (1, 28, 28), (3, 64, 64), (1, 8, 8), (3, 8, 112, 112))  # the last is a video


@dataclass(frozen=True)
class Layer:
    """One layer, or one call of it.

    Attributes:
        name: Its name in the network; a second call in one pass ends in #2.
        kind: Its class.
        shape: What it gives for one input, None where unknown.
        parameters: How many parameters it holds.
        block: Whether it is one of the blocks of the network.
    """

    name: str
    kind: str
    shape: tuple[int, ...] | None
    parameters: int
    block: bool


def layers(network: str | nn.Module, data: Any = None, *, name: str | None = None) -> list[Layer]:
    """The layers of a network in the order they answer, one entry per call.

    Published weights are not fetched: names and shapes need none.

    Args:
        network: An address or a module.
        data: What shows the shapes, two inputs of which are enough. By default zeros of a size the network takes; where
            none fits, shapes stay unknown.
        name: What messages call the network.

    Example:
        >>> for layer in layers(nn.Sequential(nn.Linear(4, 3), nn.ReLU()), torch.zeros(2, 4)):
        ...     print(layer.name, layer.kind, layer.shape, layer.parameters)
        0 Linear (3,) 15
        1 ReLU (3,) 0
    """
    module, seen = on_two_inputs(network, data, _calls, name=name)
    modules, calls = named_layers(module), seen or {}
    in_blocks = set(blocks(modules))
    entries = []
    for call in calls or modules:
        layer = call.partition("#")[0]
        parameters = sum(value.numel() for value in modules[layer].parameters())
        kind = type(modules[layer]).__name__
        entries.append(Layer(call, kind, calls.get(call), parameters, layer in in_blocks))
    return entries


def on_two_inputs(
    network: str | nn.Module, data: Any, look: Callable[[nn.Module, Batch, str], T], *, name: str | None = None
) -> tuple[nn.Module, T | None]:
    """A network, and what `look(network, batch, label)` sees in a pass over two inputs of `data`.

    Without data they are zeros of a size the network takes, and None is seen where none fits. Published weights are
    not fetched.
    """
    if data is None:
        return _tried(network, look)
    inputs = as_data(data)
    module = _built(network, inputs)
    label = repr(network_and_name(module, name or (network if isinstance(network, str) else None))[1])
    few = transform_for(module, inputs[:2] if isinstance(inputs, (Data, torch.Tensor)) else inputs, label)
    return module, look(module, next(batches(few, 2, device=_device(module))), label)


def _calls(network: nn.Module, batch: Batch, label: str) -> Calls:
    """What every call in one pass gives for one input."""
    shapes: Calls = {}

    def receive(name: str, _module: nn.Module, output: Any) -> None:
        value = first_tensor(output)
        shapes[name] = None if value is None else tuple(value.shape[1:])

    with eval_mode(network) as alone, watch(named_layers(network), receive, {}):
        answer_to(alone, prepare_inputs(alone, batch.inputs), batch, 1, label)
    return shapes


def _built(network: str | nn.Module, data: Any = None) -> nn.Module:
    """The network, without published weights where an address names some: they change no name and no shape."""
    if isinstance(network, nn.Module):
        return network
    if not isinstance(network, str):
        raise InputError(
            f"{brief(network)} is no network. Give an address, as in 'zoo:resnet20', or a torch.nn.Module."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what libraries say of random weights
        if is_untrained(network):
            return load_network(network, data=data if isinstance(data, Data) else None, domain=domain_of(data))
        return load_network(network, domain=domain_of(data), pretrained=False)


def _tried(network: str | nn.Module, look: Callable[[nn.Module, Batch, str], T]) -> tuple[nn.Module, T | None]:
    """The network, and what is seen of it on zeros; first without memory for its weights, in a tenth of the time."""
    if isinstance(network, str) and _is_of_library(network):
        # what has to look at numbers fails without them, in any way, and is tried with them
        with suppress(Exception):
            with torch.device("meta"):
                module = _built(network)
            seen = next(_passes(module, look), None)
            if seen:
                return module, seen
    module = _built(network)
    return module, next(_passes(module, look), None)


def _is_of_library(address: str) -> bool:
    """Whether a network is built by a library and takes no weights from a file."""
    parts = None if is_checkpoint(address) else parse(address)
    return parts is not None and parts.weights is None and parts.source.guarded


def _passes(network: nn.Module, look: Callable[[nn.Module, Batch, str], T]) -> Iterator[T]:
    for inputs in _guesses(network):
        try:
            yield look(network, Batch(inputs, None, 0), "the network")
        except (ForwardError, ValueError):
            continue


def _device(net: nn.Module) -> torch.device | None:
    """Where its weights are, also where none of them has values."""
    return device_of(net, next((value.device for value in net.parameters()), None))


def _guesses(network: nn.Module) -> Iterator[Any]:
    """Inputs the network may take: its own words on it first."""
    if input_kind(network) == "text":
        yield ["one sentence", "another"]
        return
    for size in [*own_sizes(network), *_SIZES]:
        yield torch.zeros(2, *size, device=_device(network))


def own_sizes(network: nn.Module) -> list[tuple[int, ...]]:
    """The sizes of images, (channels, height, width), that a network says it takes."""
    transform, config = transform_of(network), getattr(unwrapped(network), "default_cfg", None) or {}
    sizes: list[tuple[int, ...]] = [(transform.channels, *transform.size)] if transform and transform.size else []
    return [*sizes, tuple(config["input_size"])] if "input_size" in config else sizes
