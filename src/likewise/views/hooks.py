"""Looking inside a network while it runs, and leaving it as it was.

What a layer gives is handed on the moment it exists, before an in-place operation further on can
change it, and nothing else is kept. Modes, hooks and devices are put back whatever happens.
"""

from __future__ import annotations

import dataclasses
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from likewise.errors import ForwardError, InputError, LikewiseError
from likewise.networks.forward import call
from likewise.views.batches import Batch
from likewise.views.layers import bare

Receive = Callable[[str, nn.Module, Any], None]


@contextmanager
def at_rest(network: nn.Module, device: Any = None) -> Iterator[nn.Module]:
    """The network in evaluation mode, without gradients, on the device; as it was afterwards."""
    modes = [(part, part.training) for part in network.modules()]
    home = _only_device(network, device)
    try:
        for part, _ in modes:
            part.training = False
        with torch.no_grad():
            yield _alone(network).to(device) if home is not None else _alone(network)
    finally:
        for part, mode in modes:
            part.training = mode
        if home is not None:
            network.to(home)


@contextmanager
def watched(
    modules: Mapping[str, nn.Module],
    receive: Receive,
    inputs_of: Mapping[str, nn.Module],
    *,
    first: Mapping[nn.Module, Callable[..., None]] | None = None,
) -> Iterator[Callable[[], None]]:
    """Hand on what these modules give (and what those are given); call the result before each pass.

    The second call of a module within one pass is handed on as `name#2`. Hooks in `first` are told
    of a call (module, arguments, arguments by name, output) before it is handed on.
    """
    calls: Counter[str] = Counter()

    def given(name: str, module: nn.Module, value: Any) -> None:
        calls[name] += 1
        receive(name if calls[name] == 1 else f"{name}#{calls[name]}", module, value)

    def after(name: str) -> Any:
        return lambda module, _args, output: given(name, module, output)

    def before(name: str) -> Any:
        return lambda module, args, words: given(name, module, args or words)

    hooks = []
    try:
        for module, told in (first or {}).items():
            hooks.append(module.register_forward_hook(told, with_kwargs=True))
        for name, module in modules.items():
            hooks.append(module.register_forward_hook(after(name)))
        for name, module in inputs_of.items():
            hooks.append(module.register_forward_pre_hook(before(name), with_kwargs=True))
        yield calls.clear
    finally:
        for hook in hooks:
            hook.remove()


def answered(network: nn.Module, inputs: Any, batch: Batch, number: int, label: str) -> Any:
    """The network's answer to a batch; where it fails, an error with the layer and the batch."""
    try:
        return call(network, inputs)
    except LikewiseError:
        raise
    except Exception as error:
        first, last = batch.start, batch.start + batch.size - 1
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise ForwardError(
            f"{label} failed in {_failing_layer(network, error)} on batch {number} (inputs {first} "
            f"to {last}, {_described(inputs)}): {type(error).__name__}: {reason}. Check that the "
            "network takes inputs of this shape and type."
        ) from error


def first_tensor(output: Any) -> Tensor | None:
    """The tensor an output means: itself, the first of a tuple, the logits or states by name."""
    if isinstance(output, Tensor):
        return output
    if isinstance(output, Mapping):
        named = [output[key] for key in ("logits", "last_hidden_state") if key in output]
        return first_tensor([*named, *output.values()])
    if isinstance(output, (list, tuple)):
        found = (first_tensor(entry) for entry in output)
        return next((tensor for tensor in found if tensor is not None), None)
    if dataclasses.is_dataclass(output) or isinstance(output, SimpleNamespace):
        return first_tensor(dict(vars(output)))
    return None


def _alone(network: nn.Module) -> nn.Module:
    """Without DataParallel, whose copies would each see a part of the batch, and uncompiled."""
    while isinstance(network, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
        network = network.module
    compiled = getattr(network, "_orig_mod", None)
    return _alone(compiled) if isinstance(compiled, nn.Module) else network


def _only_device(network: nn.Module, device: Any) -> torch.device | None:
    """Where the network has to be brought back to: None where it stays."""
    if device is None:
        return None
    try:
        usable = torch.empty(0, device=device).device.type != "meta"  # it would lose the weights
    except (RuntimeError, AssertionError, NotImplementedError):
        usable = False
    if not usable:
        raise InputError(
            f"device {str(device)!r} cannot be used here. Leave it out, or name one that torch has, such as 'cpu'."
        )
    homes = {value.device for value in [*network.parameters(), *network.buffers()]}
    if len(homes) > 1:
        raise InputError(
            f"the network lies on {len(homes)} devices, so it cannot be moved to {device}. Leave out device."
        )
    home = next(iter(homes), None)
    return None if home == torch.device(device) else home


def _failing_layer(network: nn.Module, error: Exception) -> str:
    """The innermost layer on the traceback: found afterwards, so that a good pass costs nothing."""
    names = {id(part): name for name, part in bare(network).named_modules() if name}
    found = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        part = frame.f_locals.get("self")
        if id(part) in names:
            found = part
    if found is None:
        return "its forward pass"
    return f"layer {names[id(found)]!r} ({type(found).__name__})"


def _described(inputs: Any) -> str:
    if isinstance(inputs, Tensor):
        return f"{tuple(inputs.shape)} {str(inputs.dtype).removeprefix('torch.')}"
    if isinstance(inputs, Mapping):
        return "; ".join(f"{key} {_described(value)}" for key, value in inputs.items())
    return type(inputs).__name__
