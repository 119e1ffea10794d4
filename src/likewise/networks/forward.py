"""Showing inputs to a network and finding its logits, whichever way it takes and gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from likewise.errors import InputError
from likewise.networks.normalise import inner
from likewise.networks.zoo.graph import check_features


def ready(net: nn.Module, inputs: Any) -> Any:
    """One batch as the network takes it: texts as its tokens, everything else as it is."""
    texts = isinstance(inputs, (list, tuple)) and inputs and isinstance(inputs[0], (str, tuple, list))
    if not texts:
        return inputs
    tokenize = getattr(inner(net), "tokenize", None)
    if tokenize is None:
        raise InputError(
            f"{type(inner(net)).__name__} has no tokenizer, and was shown text. Use a text network, such as zoo:minilm."
        )
    device = next((p.device for p in net.parameters()), None)
    return {key: value.to(device) for key, value in tokenize(list(inputs)).items()}


def call(net: nn.Module, inputs: Any) -> Any:
    """What the network says to one batch: tensors as they are, mappings by name, texts by token."""
    inputs = ready(net, inputs)
    if hasattr(inputs, "rows"):
        check_features(inner(net), inputs)
    return net(**inputs) if isinstance(inputs, Mapping) else net(inputs)


def logits(net: nn.Module, inputs: Any) -> Tensor:
    """The logits `(n, classes)` for one batch; of a graph, those of the nodes asked for."""
    output = call(net, inputs)
    if not isinstance(output, Tensor):
        output = _within(net, output)
    found: Tensor = inputs.rows(output) if hasattr(inputs, "rows") else output
    return found


def _within(net: nn.Module, output: Any) -> Tensor:
    found = getattr(output, "logits", None)
    if found is None and isinstance(output, Mapping):
        found = output.get("logits")
    if found is None and isinstance(output, (tuple, list)) and output:
        found = output[0]
    if not isinstance(found, Tensor) or found.ndim != 2:
        raise InputError(
            f"{type(inner(net)).__name__} gives {type(output).__name__} without logits "
            "(inputs, classes). Use a network that classifies."
        )
    return found
