"""Looking inside a network while it runs, and leaving it as it was.

What a layer gives is handed on the moment it exists, before an in-place operation further on can
change it, and nothing else is kept. Modes, hooks and devices are put back whatever happens.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from likewise._base.machine import is_out_of_memory
from likewise.errors import ForwardError, LikewiseError
from likewise.networks.forward import call
from likewise.networks.normalise import unwrapped
from likewise.views.batches import Batch

Receive = Callable[[str, nn.Module, Any], None]


@contextmanager
def watch(
    modules: Mapping[str, nn.Module],
    receive: Receive,
    inputs_of: Mapping[str, nn.Module],
    *,
    first: Mapping[nn.Module, Callable[..., None]] | None = None,
) -> Iterator[Callable[[], None]]:
    """Hand on what these modules give, and what those in `inputs_of` are given, during one pass.

    The second call of a module is handed on as `name#2`; whoever watches several passes calls the result
    before each. Hooks in `first` get a call (module, arguments, arguments by name, output) before.
    """
    calls: Counter[str] = Counter()

    def hand_on(name: str, module: nn.Module, value: Any) -> None:
        calls[name] += 1
        receive(name if calls[name] == 1 else f"{name}#{calls[name]}", module, value)

    def after(name: str) -> Any:
        return lambda module, _args, output: hand_on(name, module, output)

    def before(name: str) -> Any:
        return lambda module, args, words: hand_on(name, module, args or words)

    hooks = []
    try:
        for module, on_call in (first or {}).items():
            hooks.append(module.register_forward_hook(on_call, with_kwargs=True))
        for name, module in modules.items():
            hooks.append(module.register_forward_hook(after(name)))
        for name, module in inputs_of.items():
            hooks.append(module.register_forward_pre_hook(before(name), with_kwargs=True))
        yield calls.clear
    finally:
        for hook in hooks:
            hook.remove()


def answer_to(network: nn.Module, inputs: Any, batch: Batch, number: int, label: str) -> Any:
    """The network's answer to a batch; where it fails, an error with the layer and the batch."""
    try:
        return call(network, inputs)
    except LikewiseError:
        raise
    except Exception as error:
        if is_out_of_memory(error):  # fewer inputs may fit
            raise
        first, last = batch.start, batch.start + batch.size - 1
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise ForwardError(
            f"{label} failed in {_failing_layer(network, error)} on batch {number} (inputs {first} "
            f"to {last}, {_shapes(inputs)}): {type(error).__name__}: {reason}. Check that the "
            "network takes inputs of this shape and type."
        ) from error


def _failing_layer(network: nn.Module, error: Exception) -> str:
    """The innermost layer on the traceback: found afterwards, so that a good pass costs nothing."""
    names = {id(part): name for name, part in unwrapped(network).named_modules() if name}
    parts = [frame.f_locals.get("self") for frame, _ in traceback.walk_tb(error.__traceback__)]
    layers = [part for part in parts if id(part) in names]
    return f"layer {names[id(layers[-1])]!r} ({type(layers[-1]).__name__})" if layers else "its forward pass"


def _shapes(inputs: Any) -> str:
    if isinstance(inputs, Tensor):
        return f"{tuple(inputs.shape)} {str(inputs.dtype).removeprefix('torch.')}"
    if isinstance(inputs, Mapping):
        return "; ".join(f"{key} {_shapes(value)}" for key, value in inputs.items())
    return type(inputs).__name__
