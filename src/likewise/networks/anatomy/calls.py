"""Which call of a layer answers, by what a network does in a forward pass.

It is the call of a layer (`fc`, or `fc#2` for the second one) whose output is the answer, else the last call the answer
changes with when it is disturbed. The order in which layers are declared is no evidence, and a layer inside the last
block is no classifier.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn

from likewise.errors import InputError, NoClassifierError
from likewise.networks.anatomy.adapters import original_layer
from likewise.networks.anatomy.blocks import blocks
from likewise.networks.anatomy.layers import matrix, named_layers, watch, weighted_layers
from likewise.networks.anatomy.outputs import first_tensor, tensor_at
from likewise.networks.inputs.normalisation import unwrapped

Calls = Mapping[str, Tensor | None]  # what the calls of layers gave in a pass, in the order of the calls
Ask = Callable[[], Any]  # runs a pass and gives the output of the network


def record_calls(network: nn.Module, ask: Ask) -> tuple[Calls, Any]:
    """What layers with weights give in a pass, in the order of their last calls, and the output of the network."""
    calls: dict[str, Tensor | None] = {}

    def record(call: str, _module: nn.Module, output: Any) -> None:
        calls.pop(call, None)
        calls[call] = first_tensor(output)

    with watch(weighted_layers(unwrapped(network)), record, {}):
        output = ask()
    return calls, output


def call_that_answers(net: nn.Module, calls: Calls, output: Any, field: Any, ask: Ask | None) -> str | None:
    """The call that gave the answer, which is `field` of the output of a pass; None where there is no tensor.

    Where no call gave the answer itself (a softmax comes after it), the network is asked again with one call after
    the other disturbed.
    """
    answer = tensor_at(output, field)
    if answer is None:
        return None
    sources = [call for call, value in calls.items() if same_numbers(value, answer)]
    if sources:
        with suppress(InputError):
            return _linear_call(net, sources[-1])
    undisturbed = None if ask is None else tensor_at(ask(), field)
    if ask is None or undisturbed is None:
        return None
    layers = weighted_layers(net)
    for call in reversed(list(calls)):
        if not same_numbers(tensor_at(_disturbed(layers, call, ask), field), undisturbed):
            _linear_call(net, call)  # refused where it is no matrix
            block = next((name for name in blocks(named_layers(net)) if call.startswith(f"{name}.")), None)
            if block is None:
                return call
            raise no_classifier(net, f"the last layer its answer needs, {call!r}, is a part of the block {block!r}")
    raise no_classifier(net, "its answer changes with none of its layers")


def _linear_call(net: nn.Module, call: str) -> str:
    name = call.partition("#")[0]
    layer = net.get_submodule(name)
    if getattr(matrix(layer), "ndim", 0) != 2 or isinstance(original_layer(layer), nn.Embedding):
        raise no_classifier(net, f"the last layer its answer needs, {name!r}, is a {type(layer).__name__}")
    return call


def no_classifier(net: nn.Module, reason: str) -> NoClassifierError:
    """The refusal of a network whose classifier cannot be found."""
    error = NoClassifierError(
        f"{type(net).__name__} has no classifier that could be found: {reason}. Name the layer yourself: "
        "head='name' where it is asked for, or net.head_layer = 'name'."
    )
    error.reason = reason
    return error


def join_inputs(inputs: Sequence[Tensor]) -> Tensor:
    """The inputs of several classifiers as one: averaged where all are as wide, else side by side.

    >>> join_inputs([torch.zeros(1, 2), torch.ones(1, 2)]), join_inputs([torch.zeros(1, 2), torch.ones(1, 1)])
    (tensor([[0.5000, 0.5000]]), tensor([[0., 0., 1.]]))
    """
    distinct: list[Tensor] = []
    for value in inputs:
        if not any(same_numbers(value, other) for other in distinct):
            distinct.append(value)
    if len(distinct) == 1:
        return distinct[0]
    if len({value.shape for value in distinct}) == 1:
        return torch.stack(distinct).mean(dim=0)
    return torch.cat(distinct, dim=-1)


def same_numbers(value: Any, answer: Tensor) -> bool:
    """Whether a tensor holds the numbers of the answer, in whatever shape and precision."""
    if not isinstance(value, Tensor) or value.numel() != answer.numel():
        return False
    return torch.equal(value.to(answer).reshape(-1), answer.reshape(-1))


def _disturbed(layers: Mapping[str, nn.Module], call: str, ask: Ask) -> Any:
    """The output if one call of a layer gives something else; None where it cannot be changed."""
    name, _, number = call.partition("#")
    changed: list[Any] = []
    count = [0]

    def disturb(_module: nn.Module, _args: Any, output: Any) -> Any:
        count[0] += 1
        if count[0] != int(number or 1):
            return None
        changed.append(_other(output))
        return changed[-1]

    hook = layers[name].register_forward_hook(disturb)
    try:
        output = ask()
    finally:
        hook.remove()
    return None if any(value is None for value in changed) else output


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
