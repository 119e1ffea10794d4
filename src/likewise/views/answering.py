"""Which layer answers: found by asking the network, not by the order in which it was written down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from likewise.errors import InputError
from likewise.networks.heads import last_that_matters, weighted_parts
from likewise.views.capture import first_tensor, watched
from likewise.views.selection import bare


def answering_layer(network: nn.Module, ask: Callable[[], Any], guess: str | None) -> str | None:
    """The classifier, by what the network does when asked rather than by how it was written down.

    That is the guess, if what it gives is the answer; otherwise the last layer with weights that
    the answer changes with. Where that is no linear layer, the guess counts if something beside the
    answer changes with it. None where the network gives no tensor.
    """
    layers = weighted_parts(bare(network))
    given: dict[str, Tensor | None] = {}

    def receive(name: str, _module: nn.Module, output: Any) -> None:
        name = name.partition("#")[0]
        given.pop(name, None)  # in the order of last calls
        given[name] = first_tensor(output)

    with watched(layers, receive, {}):
        whole = ask()
    answer = first_tensor(whole)
    if answer is None or (guess is not None and _same(given.get(guess), answer)):
        return guess

    def matters(name: str) -> bool:
        return not _same(first_tensor(_asked_disturbed(layers[name], ask)), answer)

    try:
        return last_that_matters(bare(network), given, matters)
    except InputError:
        # a pooled state beside the states themselves, as encoders of text give it
        if guess not in given or matters(guess):
            raise
        if _all_same(_asked_disturbed(layers[guess], ask), whole):
            raise
        return guess


def _asked_disturbed(layer: nn.Module, ask: Callable[[], Any]) -> Any:
    """What the network answers if a layer gives something else; None where it cannot be changed."""
    changed = []

    def disturb(_module: nn.Module, _args: Any, output: Any) -> Any:
        changed.append(_other(output))
        return changed[-1]

    hook = layer.register_forward_hook(disturb)
    try:
        answer = ask()
    finally:
        hook.remove()
    return None if any(value is None for value in changed) else answer


def _other(output: Any) -> Any:
    """The same kind of output with other values, None where there are none."""
    if isinstance(output, Tensor) and output.is_floating_point():
        # not a shift, which a softmax would not show
        ramp = torch.linspace(0, 1, output.numel(), dtype=output.dtype, device=output.device)
        return ramp.reshape(output.shape) - output
    if type(output) is tuple:  # a recurrent layer's, with its states
        others = [_other(entry) for entry in output]
        if any(other is not None for other in others):
            pairs = zip(others, output, strict=True)
            return tuple(entry if other is None else other for other, entry in pairs)
    return None


def _all_same(one: Any, other: Any) -> bool:
    if isinstance(other, Mapping) and isinstance(one, Mapping):
        return all(_all_same(one.get(key), value) for key, value in other.items())
    if isinstance(other, (list, tuple)) and isinstance(one, (list, tuple)):
        return all(_all_same(a, b) for a, b in zip(one, other, strict=False))
    return not isinstance(other, Tensor) or _same(one, other)


def _same(value: Any, answer: Tensor) -> bool:
    if not isinstance(value, Tensor) or value.numel() != answer.numel():
        return False
    return torch.equal(value.reshape(-1), answer.reshape(-1))
