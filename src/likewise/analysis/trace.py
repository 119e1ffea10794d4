"""What a network does in one pass: every call of a torch function and of a module, with shapes, in order.

Functions show what modules do not: an activation or a pooling written into `forward`. Modules show which functions
belong together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from likewise.networks.anatomy.outputs import first_tensor
from likewise.networks.forward import eval_mode, prepare_inputs
from likewise.networks.inputs.normalisation import unwrapped
from likewise.views.batches import Batch, answer_to

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Call:
    """A torch function that was called: its name, the shapes it took and gave, and the innermost module around it.

    `arguments` are those that are no tensors, by position or name; `weight` the shape of the second tensor; `source`
    identifies the tensor it took among those that exist at the same time.
    """

    name: str
    takes: Shape
    gives: Shape
    weight: Shape
    arguments: Mapping[int | str, Any]
    source: int
    module: str

    def argument(self, position: int, name: str, default: Any) -> Any:
        """An argument by its position or its name."""
        return self.arguments.get(name, self.arguments.get(position, default))


@dataclass
class ModuleCall:
    """A module that ran: its path, its class, the shapes it took and gave, and the calls within, first to last."""

    path: str
    kind: str
    takes: Shape
    source: int
    weights: int
    first: int
    gives: Shape = ()
    last: int = -1


@dataclass
class Trace:
    """One pass over `batch` inputs of a `shape`: the calls of functions and of modules, in order."""

    shape: Shape
    batch: int
    calls: list[Call] = field(default_factory=list)
    modules: list[ModuleCall] = field(default_factory=list)

    def around(self, index: int) -> list[ModuleCall]:
        """The modules that were running at a call, the innermost first."""
        return [module for module in reversed(self.modules) if module.first <= index < module.last]


def record_pass(network: nn.Module, batch: Batch, label: str) -> Trace:
    """What a network does with a batch; it is left as it was."""
    trace = Trace(tuple(batch.inputs.shape[1:]) if isinstance(batch.inputs, Tensor) else (), batch.size)
    hooks: list[Any] = []
    running: list[ModuleCall] = []

    def enter(path: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, words: Any) -> None:
            tensor = first_tensor(args) if args else first_tensor(words)
            weights = sum(1 for _ in module.parameters())
            kind, first = type(module).__name__, len(trace.calls)
            trace.modules.append(ModuleCall(path, kind, _shape(tensor), id(tensor), weights, first))
            running.append(trace.modules[-1])

        return hook

    def leave(_module: nn.Module, _args: Any, output: Any) -> None:
        call = running.pop()
        call.gives, call.last = _shape(first_tensor(output)), len(trace.calls)

    try:
        for path, module in unwrapped(network).named_modules():
            hooks.append(module.register_forward_pre_hook(enter(path), with_kwargs=True))
            hooks.append(module.register_forward_hook(leave))
        with eval_mode(network) as alone, torch.no_grad(), _FunctionLog(trace, running):
            answer_to(alone, prepare_inputs(alone, batch.inputs), batch, 1, label)
    finally:
        for hook in hooks:
            hook.remove()
    return trace


class _FunctionLog(TorchFunctionMode):
    """Appends every torch function that is called to the trace."""

    def __init__(self, trace: Trace, running: list[ModuleCall]) -> None:
        super().__init__()
        self.trace, self.running = trace, running

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        words = kwargs or {}
        result = func(*args, **words)
        output = first_tensor(result) if isinstance(result, (Tensor, tuple, list)) else None
        if output is None:
            return result
        everything = {**dict(enumerate(args)), **words}
        tensors = [value for value in everything.values() if isinstance(value, Tensor)]
        plain = {key: value for key, value in everything.items() if not isinstance(value, Tensor)}
        inputs, weight = (*tensors, None, None)[:2]
        name = getattr(func, "__name__", "").strip("_")
        module = self.running[-1].path if self.running else ""
        call = Call(name, _shape(inputs), _shape(output), _shape(weight), plain, id(inputs), module)
        self.trace.calls.append(call)
        return result


def _shape(value: Any) -> Shape:
    return tuple(value.shape) if isinstance(value, Tensor) else ()
