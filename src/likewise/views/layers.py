"""The layers of a network: names, what they are, what they give, how many parameters they hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from likewise.data import Data, as_data
from likewise.errors import ForwardError
from likewise.networks.forward import at_rest, first_tensor, ready
from likewise.networks.normalise import unwrapped
from likewise.networks.shown import shown_to
from likewise.networks.transforms import transform_of
from likewise.views.batches import Batch, batches, domain_of
from likewise.views.extract import network_and_name
from likewise.views.hooks import answer_to, watch
from likewise.views.selection import blocks, named_layers

_SIZES = ((3, 32, 32), (3, 224, 224), (1, 28, 28), (3, 64, 64), (1, 8, 8))


@dataclass(frozen=True)
class Layer:
    """One layer, or one call of it; `shape` is what it gives for one input, None where unknown."""

    name: str
    kind: str
    shape: tuple[int, ...] | None
    parameters: int
    block: bool


def layers(network: str | nn.Module, data: Any = None, *, name: str | None = None) -> list[Layer]:
    """The layers of a network in the order they answer, one entry a call.

    Shapes show in a pass over two inputs of `data`; without data over zeros of a size the network
    takes, and where none fits they stay unknown.

    >>> for layer in layers(nn.Sequential(nn.Linear(4, 3), nn.ReLU()), torch.zeros(2, 4)):
    ...     print(layer.name, layer.kind, layer.shape, layer.parameters)
    0 Linear (3,) 15
    1 ReLU (3,) 0
    """
    shown = as_data(data)
    module, called = network_and_name(network, name, domain=domain_of(shown))
    parts = named_layers(module)
    if data is not None:
        few = shown_to(module, shown[:2] if isinstance(shown, (Data, torch.Tensor)) else shown, repr(called))
        calls = _calls(module, next(batches(few, 2)), repr(called))
    else:
        calls = next(_tried(module, repr(called)), {})
    names = list(calls) or list(parts)
    in_blocks = set(blocks(parts))
    found = []
    for entry in names:
        part = parts[entry.partition("#")[0]]
        held = sum(value.numel() for value in part.parameters())
        kind, block = type(part).__name__, entry.partition("#")[0] in in_blocks
        found.append(Layer(entry, kind, calls.get(entry), held, block))
    return found


def _calls(network: nn.Module, batch: Batch, label: str) -> dict[str, tuple[int, ...] | None]:
    """What every call in one pass gives for one input."""
    shapes: dict[str, tuple[int, ...] | None] = {}

    def receive(name: str, _module: nn.Module, output: Any) -> None:
        value = first_tensor(output)
        shapes[name] = None if value is None else tuple(value.shape[1:])

    with at_rest(network) as alone, watch(named_layers(network), receive, {}):
        answer_to(alone, ready(alone, batch.inputs), batch, 1, label)
    return shapes


def _tried(network: nn.Module, label: str) -> Iterator[dict[str, tuple[int, ...] | None]]:
    for inputs in _guesses(network):
        try:
            yield _calls(network, Batch(inputs, None, 0), label)
        except (ForwardError, ValueError):
            continue


def _guesses(network: nn.Module) -> Iterator[Any]:
    """Inputs the network may take: its own words on it first."""
    if hasattr(network, "tokenize"):
        yield ["one sentence", "another"]
        return
    transform, own = transform_of(network), getattr(unwrapped(network), "default_cfg", None) or {}
    sizes = [(transform.channels, *transform.size)] if transform and transform.size else []
    sizes += [tuple(own["input_size"])] if "input_size" in own else []
    for size in [*sizes, *_SIZES]:
        yield torch.zeros(2, *size)
