"""What is penultimate: the input of the layer that answers, found by what the network does.

The one answer to that question, for extraction and for class similarity. A layer that was named or that the
network declares (`anatomy/layers.py`) is believed. Otherwise the network is watched in a forward pass: the call of
a layer (`fc`, or `fc#2` for the second one) whose output is the answer, else the last call the answer changes with.
The order in which layers are declared is no evidence, and a layer inside the last block is no classifier. Several
classifiers of timm answer together; then all they are given is penultimate (`join_inputs`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn

from likewise.errors import ForwardError, InputError
from likewise.networks.anatomy.blocks import blocks
from likewise.networks.anatomy.classifier import head, last_that_matters
from likewise.networks.anatomy.layers import has_matrix, named_head, named_layers, no_classifier, watch, weighted_parts
from likewise.networks.forward import answer_field, first_tensor, possible_answers, tensor_at, why_no_logits
from likewise.networks.inputs.normalisation import unwrapped

Calls = dict[str, Tensor | None]


def answering_call(network: nn.Module, ask: Callable[[], Any]) -> str:
    """The call of the layer that answers: the layer the network declares, else found by a pass that `ask` starts."""
    named = named_head(network)
    if named is not None:
        return named
    found = None
    with suppress(ForwardError):  # where this fails, the pass itself will, and says so better
        calls, whole = recorded_calls(network, ask)
        found = find_call(network, calls, whole, ask)
    return found if found is not None else head(network).layer_name


def recorded_calls(network: nn.Module, ask: Callable[[], Any]) -> tuple[Calls, Any]:
    """What layers with weights give in a pass that `ask` starts, in the order of their last calls, and its answer."""
    calls: Calls = {}

    def record(call: str, _module: nn.Module, output: Any) -> None:
        calls.pop(call, None)
        calls[call] = first_tensor(output)

    with watch(weighted_parts(unwrapped(network)), record, {}):
        whole = ask()
    return calls, whole


def find_call(
    network: nn.Module,
    calls: Mapping[str, Tensor | None],
    whole: Any,
    ask: Callable[[], Any] | None,
) -> str | None:
    """The call that answered `whole`, from what a pass recorded; None where there is no tensor.

    Where no call gave the answer itself (a softmax comes after it), the network is asked again with
    one call after the other disturbed.
    """
    net = unwrapped(network)
    reason = why_no_logits(net, whole)
    if reason:
        raise no_classifier(net, reason)
    field = answer_among(net, calls, whole, type(net).__name__)
    answer = tensor_at(whole, field)
    if answer is None:
        return None
    giving = [call for call, output in calls.items() if same(output, answer)]
    if giving:
        with suppress(InputError):
            return last_that_matters(net, giving, lambda call: True)
    if ask is None:
        return None
    layers, undisturbed = weighted_parts(net), tensor_at(ask(), field)
    if undisturbed is None:
        return None

    def matters(call: str) -> bool:
        return not same(tensor_at(_answer_disturbed(layers, call, ask), field), undisturbed)

    found = last_that_matters(net, calls, matters)
    within = next((name for name in blocks(named_layers(net)) if found.startswith(f"{name}.")), None)
    if within is not None:
        raise no_classifier(net, f"the last layer its answer needs, {found!r}, is a part of the block {within!r}")
    return found


def answer_among(net: nn.Module, calls: Mapping[str, Tensor | None], whole: Any, label: str) -> Any:
    """The field of `whole` that holds the answer: by the classifier, else what a layer made of another field."""
    try:
        return answer_field(net, whole, label)
    except InputError:
        rows = possible_answers(whole)
        for field, value in rows.items():
            widths = {other.shape[1] for key, other in rows.items() if key != field}
            makers = (net.get_submodule(call.partition("#")[0]) for call, given in calls.items() if same(given, value))
            if any(has_matrix(part) and getattr(part, "in_features", None) in widths for part in makers):
                return field
        raise


def join_inputs(given: Sequence[Tensor]) -> Tensor:
    """What several classifiers are given, as one: averaged where all are as wide, else side by side.

    >>> join_inputs([torch.zeros(1, 2), torch.ones(1, 2)]), join_inputs([torch.zeros(1, 2), torch.ones(1, 1)])
    (tensor([[0.5000, 0.5000]]), tensor([[0., 0., 1.]]))
    """
    distinct: list[Tensor] = []
    for value in given:
        if not any(same(value, other) for other in distinct):
            distinct.append(value)
    if len(distinct) == 1:
        return distinct[0]
    if len({value.shape for value in distinct}) == 1:
        return torch.stack(distinct).mean(dim=0)
    return torch.cat(distinct, dim=-1)


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


def same(value: Any, answer: Tensor) -> bool:
    """Whether a tensor holds the numbers of the answer, in whatever shape and precision."""
    if not isinstance(value, Tensor) or value.numel() != answer.numel():
        return False
    return torch.equal(value.to(answer).reshape(-1), answer.reshape(-1))
