"""What is penultimate: the input of the layer that answers, found by what the network does.

The one answer to that question, for extraction and for class similarity. A layer that was named or that the
network declares is believed. Otherwise the network is watched in a forward pass: the call of a layer (`fc`,
or `fc#2` for the second one) whose output is the answer, else the last call the answer changes with. The
order in which layers are declared is no evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn

from likewise.errors import ForwardError, InputError
from likewise.networks.forward import first_tensor
from likewise.networks.heads import (
    declared_head,
    head,
    last_declared,
    last_that_matters,
)
from likewise.networks.normalise import unwrapped
from likewise.networks.parts import weighted_parts
from likewise.views.hooks import watch

Calls = dict[str, Tensor | None]


def answering_call(network: nn.Module, ask: Callable[[], Any], layer: str | None = None) -> str:
    """The call of the layer that answers: the layer named, else found by a pass that `ask` starts."""
    named = named_head(network, layer)
    if named is not None:
        return named
    found = None
    with suppress(ForwardError):  # where this fails, the pass itself will, and says so better
        calls: Calls = {}

        def record(call: str, _module: nn.Module, output: Any) -> None:
            calls.pop(call, None)  # in the order of the last calls
            calls[call] = first_tensor(output)

        with watch(weighted_parts(unwrapped(network)), record, {}):
            whole = ask()
        found = find_call(network, calls, whole, ask)
    return found if found is not None else head(network).layer_name


def named_head(network: nn.Module, layer: str | None = None) -> str | None:
    """The classifier that was named, or that the network declares; None where neither is."""
    named = layer if layer is not None else declared_head(network)
    return None if named is None else head(network, layer=named).layer_name


def find_call(
    network: nn.Module,
    calls: Mapping[str, Tensor | None],
    whole: Any,
    ask: Callable[[], Any] | None,
) -> str | None:
    """The call that answered `whole`, from what a pass recorded; None where there is no tensor.

    Where no call gave the answer itself (a softmax comes after it), the network is asked again with
    one call after the other disturbed. Where the last that matters is no linear layer, a linear
    layer beside the answer counts, as the pooled state of encoders of text.
    """
    answer = first_tensor(whole)
    if answer is None:
        return None
    net = unwrapped(network)
    giving = [call for call, output in calls.items() if same(output, answer)]
    if giving:
        with suppress(InputError):
            return last_that_matters(net, giving, lambda call: True)
    if ask is None:
        return None
    layers, whole = weighted_parts(net), ask()
    undisturbed = first_tensor(whole)
    if undisturbed is None:
        return None

    def matters(call: str) -> bool:
        return not same(first_tensor(_answer_disturbed(layers, call, ask)), undisturbed)

    try:
        return last_that_matters(net, calls, matters)
    except InputError:
        guess = last_declared(net)
        if guess is None or guess not in calls or matters(guess):
            raise
        if _all_same(_answer_disturbed(layers, guess, ask), whole):
            raise
        return guess


def _answer_disturbed(layers: Mapping[str, nn.Module], call: str, ask: Callable[[], Any]) -> Any:
    """The answer if one call of a layer gives something else; None where it cannot be changed."""
    name, _, number = call.partition("#")
    changed: list[Any] = []
    seen = [0]

    def disturb(_module: nn.Module, _args: Any, output: Any) -> Any:
        seen[0] += 1
        if seen[0] != int(number or 1):
            return None
        changed.append(_other(output))
        return changed[-1]

    hook = layers[name].register_forward_hook(disturb)
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
    return not isinstance(other, Tensor) or same(one, other)


def same(value: Any, answer: Tensor) -> bool:
    """Whether a tensor holds the numbers of the answer, in whatever shape and precision."""
    if not isinstance(value, Tensor) or value.numel() != answer.numel():
        return False
    return torch.equal(value.to(answer).reshape(-1), answer.reshape(-1))
