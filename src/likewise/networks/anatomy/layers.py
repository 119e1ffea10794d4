"""The layers of a network: their names, their weights, and their calls in a forward pass.

A linear layer is a matrix, one row per number it gives. So are convolutions (the window of each output in one row),
quantised layers, whose weights are unpacked on request, and the layers of graph networks.

A layer called several times in one pass has one name per call: `attention`, `attention#2`.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from likewise._base.optional import geometric
from likewise.networks.anatomy.adapters import is_adapted, merged_layer, original_layer
from likewise.networks.inputs.normalisation import unwrapped

Receive = Callable[[str, nn.Module, Any], None]
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_INPUT_WIDTHS = ("in_features", "in_channels", "num_features", "input_size", "embed_dim")


def named_layers(network: nn.Module) -> dict[str, nn.Module]:
    """Every layer of a network by name, without the network itself and what wraps it."""
    return submodules(unwrapped(network))


def submodules(module: nn.Module) -> dict[str, nn.Module]:
    """Every module inside a module by name, without what only parametrizes weights.

    >>> from torch.nn.utils.parametrizations import weight_norm
    >>> list(submodules(nn.Sequential(weight_norm(nn.Linear(2, 2)))))
    ['0']
    """
    return {name: layer for name, layer in module.named_modules() if name and "parametrizations" not in name.split(".")}


def weighted_layers(module: nn.Module) -> dict[str, nn.Module]:
    """The layers inside a module that hold weights themselves; one with an adapter of PEFT is one layer."""
    layers = submodules(module)
    inside = tuple(f"{name}." for name, layer in layers.items() if is_adapted(layer))
    return {name: layer for name, layer in layers.items() if has_weights(layer) and not name.startswith(inside)}


@contextmanager
def watch(
    modules: Mapping[str, nn.Module],
    receive: Receive,
    inputs_of: Mapping[str, nn.Module],
    *,
    first: Mapping[nn.Module, Callable[..., None]] | None = None,
) -> Iterator[Callable[[], None]]:
    """Pass on the outputs of `modules`, and the inputs of those in `inputs_of`, to `receive(call, module, value)`.

    Outputs are passed on at once, before an in-place operation further on can change them; hooks are removed whatever
    happens. The second call of a module is named `name#2`; to watch several passes, call the result before
    each. Hooks in `first` get a call (module, arguments, arguments by name, output) before.
    """
    calls: Counter[str] = Counter()

    def pass_on(name: str, module: nn.Module, value: Any) -> None:
        calls[name] += 1
        receive(name if calls[name] == 1 else f"{name}#{calls[name]}", module, value)

    def after(name: str) -> Any:
        return lambda module, _args, output: pass_on(name, module, output)

    def before(name: str) -> Any:
        return lambda module, args, words: pass_on(name, module, args or words)

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


def has_weights(layer: nn.Module) -> bool:
    """Whether a layer holds weights itself, not only in the modules inside it."""
    has_parameters = any(True for _ in layer.parameters(recurse=False))
    return has_parameters or is_parametrized(layer) or _is_quantised(layer) or is_adapted(layer)


def has_matrix(layer: nn.Module) -> bool:
    """Whether a layer has weights of more than one axis, so that it does more than scale."""
    weight: Any = getattr(layer, "weight", None)
    return _is_quantised(layer) or (isinstance(weight, Tensor) and weight.ndim > 1)


def is_linear(layer: nn.Module) -> bool:
    """Whether a layer is a matrix: linear, a convolution whose window is one pixel, or quantised."""
    layer = original_layer(layer)
    if isinstance(layer, nn.Embedding):
        return False
    kinds = (nn.Linear, *_CONVOLUTIONS)
    return (isinstance(layer, kinds) or _is_quantised(layer)) and getattr(matrix(layer), "ndim", 0) == 2


def matrix(layer: nn.Module) -> Any:
    """The weights of a linear layer `(rows, width)`; of other layers, whatever they have."""
    weight = weights(layer)[0]
    if isinstance(weight, Tensor) and weight.ndim > 2 and set(weight.shape[2:]) == {1}:
        return weight.flatten(1)
    return weight


def windows(layer: nn.Module) -> Any:
    """The same with the windows of a convolution in one row, however large they are."""
    weight = weights(layer)[0]
    return weight.flatten(1) if isinstance(layer, _CONVOLUTIONS) and weight.ndim > 2 else matrix(layer)


def weights(layer: nn.Module) -> tuple[Any, Any]:
    """Weight and bias of a layer, each None where it has none."""
    layer = merged_layer(layer)
    if hasattr(layer, "propagate"):
        return _convolution_weights(layer)
    weight: Any = getattr(layer, "weight", None)
    bias: Any = getattr(layer, "bias", None)
    if _is_quantised(layer):
        return weight().dequantize(), bias() if callable(bias) else bias
    return weight, bias


def _is_quantised(layer: nn.Module) -> bool:
    """Whether the weights of a layer are no parameters, but unpacked by a method."""
    return inspect.ismethod(getattr(layer, "weight", None))


def _convolution_weights(layer: Any) -> tuple[Tensor | None, Tensor | None]:
    """Weight and bias by which a graph convolution maps a node whose neighbours are all like it.

    GraphSAGE has weights for the node and for its neighbours, which then add up; GAT has as many as
    heads, which then average.
    """
    kinds = geometric("read a graph convolution").nn.conv
    if isinstance(layer, kinds.SAGEConv):
        root = layer.lin_r.weight if layer.root_weight else 0
        return layer.lin_l.weight + root, layer.lin_l.bias
    weight = getattr(getattr(layer, "lin", None), "weight", None)
    if isinstance(layer, kinds.GATConv) and not layer.concat and weight is not None:
        weight = weight.unflatten(0, (layer.heads, -1)).mean(dim=0)
    return weight, layer.bias


def input_width(layer: nn.Module) -> int | None:
    """The width of what a layer takes, where its weights tell."""
    for name in _INPUT_WIDTHS:
        width = getattr(layer, name, None)
        if isinstance(width, int):
            return width
    shape = getattr(layer, "normalized_shape", None)
    return int(shape[-1]) if isinstance(shape, tuple) and shape else None


def without_shared(net: nn.Module, names: Iterable[str]) -> list[str]:
    """Names of layers without those that share their weights with an earlier one."""
    first: dict[Any, str] = {}
    for name in names:
        weight = getattr(net.get_submodule(name), "weight", None)
        first.setdefault(id(weight) if isinstance(weight, Tensor) else name, name)
    return list(first.values())
