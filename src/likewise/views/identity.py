"""Which network, which inputs: hashes that tell whether a view would come out the same again.

A view is found again in a store by the network's weights and code, not by its name: the same
address may hold other weights tomorrow.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn


def fingerprint(network: nn.Module) -> str:
    """A hash of a network's structure, its weights, and all else that decides what it gives."""
    from likewise._base.hashing import Description  # who has arrays needs no networks

    # an activation given as a function shows where it lies in memory, another place each time
    content = hashlib.sha256(re.sub(r"0x[0-9a-f]+", "", repr(network)).encode())
    description = Description()
    description.network(network)
    content.update(description.hexdigest().encode())
    # not the state dict: buffers that are left out of it (means to normalise by) count too
    for key, value in [*network.named_parameters(), *network.named_buffers()]:
        content.update(key.encode())
        content.update(as_bytes(value))
    return content.hexdigest()[:16]


def digest(facts: Mapping[str, Any]) -> str:
    """A hash of named facts, whatever their order."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:24]


class ProbeHash:
    """A hash of inputs as they come, the same however they are cut into batches."""

    def __init__(self) -> None:
        self._parts: dict[str, Any] = {}

    def update(self, inputs: Any, key: str = "") -> None:
        """Take in one batch: a tensor, a list, a mapping of them, or an object of tensors."""
        if isinstance(inputs, Tensor):
            self._part(f"{key}{inputs.dtype}{tuple(inputs.shape[1:])}").update(as_bytes(inputs))
        elif isinstance(inputs, Mapping):
            for name in sorted(inputs):
                self.update(inputs[name], f"{key}/{name}")
        elif isinstance(inputs, (list, tuple)):
            for entry in inputs:
                self._part(key).update(repr(entry).encode())
        elif hasattr(inputs, "to_dict"):  # a graph
            self.update(inputs.to_dict(), key)
        else:
            self._part(key).update(repr(inputs).encode())

    def hexdigest(self) -> str:
        return digest({key: part.hexdigest() for key, part in self._parts.items()})[:16]

    def _part(self, key: str) -> Any:
        return self._parts.setdefault(key, hashlib.sha256())


def as_bytes(value: Tensor) -> memoryview:
    """The bytes of a tensor, of any dtype, without a copy where it lies in order on the CPU."""
    flat = value.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().data
