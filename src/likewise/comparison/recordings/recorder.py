"""From a network, or from arrays of any runtime, to a recording.

Layers are looked at in groups that fit in memory: their rows are needed whole, since similarities are of all inputs.
The similarities of blocks and of the last layer are kept, the values of every layer, so that the first one that differs
is named.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from warnings import catch_warnings, filterwarnings

import numpy as np
import torch
from torch import Tensor, nn

import likewise
from likewise._base.arrays import Array, plain_tensor
from likewise._base.hashing import digest
from likewise.comparison.recordings.recording import LayerSketch, Recording, WeightSketch
from likewise.comparison.recordings.sketches import FEWEST, WEIGHT_BINS, similarity_sketch, value_sketch
from likewise.data import Data, as_data
from likewise.data.inputs import data_name
from likewise.errors import InputError, brief
from likewise.measures.workspace import parse_memory
from likewise.networks.anatomy.quantised import plain_weights, present
from likewise.networks.names import network_and_name
from likewise.networks.sources.language import encoder_of, language_kind
from likewise.views.extract import extract_network
from likewise.views.layers import Layer, layers
from likewise.views.show import Show

CLASSES = 5  # the most likely ones that are kept


def record_layers(network: Any, name: str, show: Show, *, selected: Any = None, memory: int | None = None) -> Recording:
    """The layers of a network, without weights and answers."""
    inputs = as_probe(show.data)
    shown, choice = show.for_network(network)
    module = network_and_name(shown, name, data=inputs, device=show.device)[0]
    if inputs.domain == "text" and language_kind(module) is not None:  # its head gives a number per word and token
        module = encoder_of(module)
    choice = replace(choice, data=inputs)
    limit = parse_memory(None) if memory is None else memory
    sketches = sketched_layers(module, name, choice, selected, inputs.probe, len(inputs), limit)
    about = made_by(reduce=choice.reduce or _reduction(inputs))
    return Recording(name, inputs.probe, data_name(inputs), len(inputs), "", sketches, {}, {}, about)


def _reduction(data: Data) -> Any:
    """How tokens and maps become rows where nobody says so."""
    return "mean" if data.domain == "text" else "flatten"


def as_probe(data: Any) -> Data:
    """Data that has a hash: an address, data or an array."""
    inputs = as_data(data)
    if isinstance(inputs, Data):
        return inputs
    if isinstance(inputs, (np.ndarray, Tensor)):
        return Data("inputs", "image" if inputs.ndim == 4 else "text", torch.as_tensor(inputs))
    raise InputError(
        f"a recording is of inputs that can be shown again, and was given {brief(inputs)}. Give data or an array."
    )


def sketched_layers(
    net: nn.Module, name: str, show: Show, selected: Any, probe: str, n: int, memory: int
) -> dict[str, LayerSketch]:
    """The sketches of the layers of a network."""
    show = replace(show, reduce=show.reduce or _reduction(show.data))
    listed = {layer.name: layer for layer in layers(net, show.data, name=name)}
    if not listed:
        return {}  # a single layer, whose answers say it all
    names: Any = "all" if selected is None else selected
    chosen = list(listed) if names in ("all", ["all"]) else None
    groups = [names] if chosen is None else list(_groups([listed[one] for one in chosen], n, memory))
    sketches: dict[str, LayerSketch] = {}
    last = list(listed)[-1:]
    for group in groups:
        with catch_warnings():
            filterwarnings("ignore", message=r"\d+ layers of .* are left out")  # none of them was asked for
            views = extract_network(net, replace(show, layers=group, store=None), name, outputs=False)
        for layer, view in views.items() if isinstance(views, Mapping) else [(group, views)]:
            plain = layer.partition("#")[0]
            block = plain not in listed or listed[plain].block or plain in last
            sketches[layer] = sketch_of(
                view.values, probe, similar=block, block=plain in listed and listed[plain].block
            )
    return sketches


def _groups(listed: Sequence[Layer], n: int, memory: int) -> Iterator[Any]:
    """Layers that fit in memory together; all of them by one word where they do."""
    sizes = [4 * n * int(np.prod(layer.shape)) if layer.shape is not None else 0 for layer in listed]
    if sum(sizes) <= memory:
        yield "all"
        return
    group: list[str] = []
    room = memory
    for layer, size in zip(listed, sizes, strict=True):
        if group and size > room:
            yield group
            group, room = [], memory
        group.append(layer.name)
        room -= size
    yield group


def sketch_of(rows: Any, probe: str, *, similar: bool = True, block: bool = True) -> LayerSketch:
    """What is kept of the rows of one layer, (inputs, width)."""
    values = plain_tensor(rows, "a layer")
    values = values.reshape(len(values), -1).float()
    if not bool(values.isfinite().all()):
        raise InputError("a layer has NaN or infinite entries. Repair the network, or leave the layer out.")
    lengths = values.double().norm(dim=1)
    return LayerSketch(
        shape=(int(values.shape[1]),),
        norm=float(values.double().norm()),
        row=float(lengths.mean()),
        spread=float(lengths.std(correction=0)),
        block=block,
        values=value_sketch(values, probe),
        similarity=similarity_sketch(values, probe) if similar and len(values) >= FEWEST else None,
    )


def sketched_weights(net: nn.Module) -> dict[str, WeightSketch]:
    """The sketches of the weights of a network."""
    sketches = {}
    for name, value in plain_weights(net).items():
        values = present(net, name, value)
        if not values.numel() or not values.is_floating_point():
            continue
        rows = values.detach().float().reshape(1, -1)
        sketches[name] = WeightSketch(
            shape=tuple(values.shape),
            norm=float(rows.double().norm()),
            zeros=float((rows == 0).double().mean()),
            count=values.numel(),
            digest=digest([values.detach().float().cpu()])[:16],
            values=value_sketch(rows, name, bins=WEIGHT_BINS),
        )
    return sketches


def class_answers(logits: Tensor, labels: Tensor | None) -> dict[str, Array]:
    """The most likely classes of every input with their logarithms of probabilities, and the true one."""
    said = logits.double().log_softmax(dim=1)
    top = said.topk(min(CLASSES, said.shape[1]), dim=1)
    answers = {
        "top": top.indices.to(torch.int32),
        "log_p": top.values.float(),
        "classes": torch.tensor([said.shape[1]]),
    }
    answers |= {} if labels is None else {"labels": labels.to(torch.int32)}
    return {name: value.cpu().numpy() for name, value in answers.items()}


def record_arrays(
    layers: Mapping[str, Any], probe: str, *, name: str = "recorded", logits: Any = None, labels: Any = None
) -> Recording:
    """Record what another runtime gave: one array per layer, in the order of the forward pass.

    Args:
        layers: Activations by the names that layers have in the network it is compared with, (inputs, ...), reduced as
            that is: "flatten", or the mean over tokens.
        probe: The hash of the inputs: `recording.probe` of the network it is compared with, or
            `likewise.dataset(address).probe`.
        name: What the network is called.
        logits: What it answers, (inputs, classes).
        labels: The true class of every input.

    Returns:
        A recording, as `likewise.record` gives it.

    Example:
        >>> import numpy as np
        >>> rows = {"block1": np.random.default_rng(0).normal(size=(20, 8))}
        >>> record_arrays(rows, probe="made here", name="onnx")
        Recording('onnx', n=20, layers=1)
    """
    sketches = {layer: sketch_of(rows, probe) for layer, rows in layers.items()}
    counts = {len(plain_tensor(rows, layer)) for layer, rows in layers.items()}
    if len(counts) != 1:
        raise InputError(f"layers have {sorted(counts)} inputs. Give the same inputs to all, and at least one layer.")
    answers = {}
    if logits is not None:
        truth = None if labels is None else torch.as_tensor(labels)
        answers = class_answers(plain_tensor(logits, "logits").float(), truth)
    kind = "classes" if answers else ""
    return Recording(name, probe, "arrays", counts.pop(), kind, sketches, {}, answers, made_by())


def made_by(**facts: Any) -> dict[str, Any]:
    """The versions that made a recording, and what else is known."""
    return {
        **facts,
        "likewise": likewise.__version__,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
    }
