"""Showing inputs to a network and finding its logits, whichever way it takes and gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from likewise.errors import InputError
from likewise.networks.normalise import inner


def call(net: nn.Module, inputs: Any) -> Any:
    """What the network says to a batch: tensors as they are, mappings by name, texts tokenised."""
    if isinstance(inputs, Mapping):
        return net(**inputs)
    if isinstance(inputs, (list, tuple)) and inputs and isinstance(inputs[0], (str, tuple, list)):
        tokenize = getattr(inner(net), "tokenize", None)
        if tokenize is None:
            raise InputError(
                f"{type(inner(net)).__name__} has no tokenizer, and was shown text. Use a text "
                "network, such as zoo:minilm."
            )
        device = next((p.device for p in net.parameters()), None)
        tokens = {key: value.to(device) for key, value in tokenize(list(inputs)).items()}
        return net(**tokens)
    return net(inputs)


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
